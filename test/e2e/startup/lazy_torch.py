# SPDX-License-Identifier: Apache-2.0
"""What torch has for compilers and for few programs comes when something asks for it, not with `import torch` (LAZY_DYNAMO=1; see conftest.py).

It says how operators behave on the device "meta", and a third of the import is that: no program of these tests has such a tensor.
An operator there fails with NotImplementedError, unless torch._dynamo or torch.export was asked for, which bring all of it.
"""
import importlib
import importlib.machinery
import os
import sys
import types

META = "torch._meta_registrations"
packages = {"torch.distributions", "torch.export", "torch.masked"}
names = {META, "torch.distributed._meta_registrations", "torch._native", *packages}
kinds = {}  # by name: a class of module that knows more than Lazy
COMPILERS = DYNAMO, INDUCTOR = "torch._dynamo", "torch._inductor"  # lazy_dynamo.py; one brings the other
EXPORTS = "torch._export", "torch.export"  # so do these
TENSOR = "torch.distributed.tensor"


def is_late(name):
    return isinstance(sys.modules.get(name), Lazy)


def forget(name):
    """The next import of it brings the real one. Returns what was there, if it was late."""
    names.discard(name)
    if not is_late(name):
        return None
    late = sys.modules.pop(name)
    if late.parts:
        package, _, own = name.rpartition(".")
        vars(sys.modules[package]).pop(own, None)
        for part in late.parts:
            del sys.modules[part.__name__]
    return late


def load(name):
    forgotten = []
    if is_late(name):
        forgotten = [forget(one) for one in next((those for those in (COMPILERS, EXPORTS) if name in those), (name,))]
        if name in (*COMPILERS, *EXPORTS, TENSOR):
            load(META)
    module = importlib.import_module(name)
    for late in filter(None, forgotten):
        late.came()
    return module


class Lazy(types.ModuleType):
    parts = ()

    def came(self):
        """The real one is there."""

    def __getattr__(self, name):
        if name.startswith("__") and (name != "__path__" or "ready" not in vars(self)):  # who looks at all modules asks so
            raise AttributeError(name)
        return getattr(load(self.__name__), name)


class Here:
    """Loads what is there: a part of a package that came as the part was asked for."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


class Finder:
    """Also the loader of what it finds."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        package = name.rpartition(".")[0]
        if package in kinds and is_late(package):  # it may bring the part, or import it at another time
            path = load(package).__path__
            if name not in sys.modules:
                return importlib.machinery.PathFinder.find_spec(name, path, target)
        if name in sys.modules and package in (*packages, *kinds):
            return importlib.machinery.ModuleSpec(name, Here(sys.modules[name]))
        return importlib.machinery.ModuleSpec(name, Finder) if name in names else None

    @staticmethod
    def create_module(spec):
        return kinds.get(spec.name, Lazy)(spec.name)

    @staticmethod
    def exec_module(module):
        module.ready = True
        if module.__name__ == "torch.export":  # brought it, and what follows needs that it is there
            importlib.import_module("torch.fx")
        if module.__name__ == META:  # makes it what torch.Generator needs
            torch = sys.modules["torch"]
            torch._C._set_generator_metaclass(importlib.import_module("torch._custom_class_base").CustomClassBaseMeta)


sys.meta_path.insert(0, Finder)
if "/simgpu/" not in os.environ.get("LD_PRELOAD", ""):
    sys.modules.setdefault("cuda.bindings", None)  # torch does without, and without a GPU asks it nothing
