# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo comes when something is compiled, not with the first step of an optimizer (LAZY_DYNAMO=1; conftest.py says for which tests).

An optimizer imports it to say what is not to be compiled. That takes as long as most of torch, and where nothing is compiled it says nothing.
torch.profiler imports torch._inductor, and all of torch._dynamo with it, to ask whether compiled code uses CUDA graphs: it does not.
torchvision imports one name of torch._dynamo.utils, which it seldom calls.
"""
import importlib
import sys
import types

import lazy_torch

NAME, INDUCTOR = lazy_torch.DYNAMO, lazy_torch.INDUCTOR


class Part(types.ModuleType):
    """A module of a package that comes late: what it is asked for often; whoever asks for more has the real one."""

    def __init__(self, package, name, **known):
        super().__init__(f"{package}.{name}")
        self.package = package
        vars(self).update(known)
        sys.modules[self.__name__] = self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        lazy_torch.load(self.package)
        return getattr(importlib.import_module(self.__name__), name)


def is_compile_supported(device):
    return lazy_torch.load(NAME).utils.is_compile_supported(device)


class Dynamo(lazy_torch.Lazy):
    """What is asked of the module though nothing is compiled; whoever asks for more has the real one."""

    def __init__(self, name):
        super().__init__(name)
        self.parts = [Part(name, "utils", is_compile_supported=is_compile_supported)]

    @staticmethod
    def graph_break(*args, **kwargs):
        if not lazy_torch.is_late(NAME):
            lazy_torch.load(NAME).graph_break(*args, **kwargs)

    @staticmethod
    def disable(function, *how, **more):
        real = []

        def disabled(*args, **kwargs):
            if not real and not lazy_torch.is_late(NAME):
                real.append(lazy_torch.load(NAME).disable(function, *how, **more))
            return (real[0] if real else function)(*args, **kwargs)

        return disabled


class Inductor(lazy_torch.Lazy):
    def __init__(self, name):
        super().__init__(name)
        self.config = Part(name, "config", triton=types.SimpleNamespace(cudagraphs=False))
        self.parts = [self.config]


lazy_torch.names.update((NAME, INDUCTOR))
lazy_torch.kinds.update({NAME: Dynamo, INDUCTOR: Inductor})
