# SPDX-License-Identifier: Apache-2.0
"""Lightning and transformers bring packages for what no program of these tests does with them (LAZY_DYNAMO=1): all metrics, all of torchvision.

The class of a metric is enough for Lightning: whoever asks torchmetrics for more has all of it. Transformers does without torchvision where it is
not found, so that a program that trains on pictures with transformers imports torchvision first.
"""
import importlib
import importlib.machinery
import logging
import sys
import types

import lazy_torch


class Metrics(types.ModuleType):
    """torchmetrics, whose own code runs when something is asked for that is not in one of these parts."""

    parts = {"__version__": "__about__", "Metric": "metric", "MetricCollection": "collections"}
    _logger = logging.getLogger("torchmetrics")

    def __getattr__(self, name):
        if name == "Metric":
            importlib.import_module(f"{self.__name__}.utilities")  # first: both need one another
        if name in Metrics.parts:
            return getattr(importlib.import_module(f"{self.__name__}.{Metrics.parts[name]}"), name)
        if name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = types.ModuleType
        self.__spec__.loader.run(self)
        return getattr(self, name)


class Onnx(lazy_torch.Lazy):
    """Tells torch.onnx of torchvision's operators, where something is exported to ONNX. Has no modules."""

    __path__ = ()

    @staticmethod
    def _register_custom_op():
        pass


class Finder:
    """Finds a package as usual, and changes how it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "transformers":
            sys.modules.setdefault("torchvision", None)
        if name not in changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec:
            changes[name](spec.loader)
        return spec


def metrics_late(loader):
    loader.run = loader.exec_module
    loader.create_module = lambda spec: Metrics(spec.name)
    loader.exec_module = lambda module: None


def without(*names):
    """What of torch a package asks for, and does without."""
    def change(loader):
        run = loader.exec_module

        def exec_module(module):
            run(module)
            vars(module).update({f"is_torch_{name}_available": lambda: False for name in names})

        loader.exec_module = exec_module

    return change


changes = {"torchmetrics": metrics_late, "transformers.utils.import_utils": without("distributed", "flex_attn"),
           "accelerate.utils.imports": without("distributed")}
lazy_torch.names.add("torchvision.ops._register_onnx_ops")
lazy_torch.kinds["torchvision.ops._register_onnx_ops"] = Onnx
sys.meta_path.insert(0, Finder)
