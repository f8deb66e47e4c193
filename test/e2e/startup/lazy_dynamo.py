# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo comes when something is compiled, not with the first step of an optimizer (LAZY_DYNAMO=1; conftest.py says for which tests).

An optimizer imports it to say what is not to be compiled. That takes as long as most of torch, and where nothing is compiled it says nothing.
torch.profiler imports torch._inductor, and all of torch._dynamo with it, to ask whether compiled code uses CUDA graphs: it does not.
torchvision imports one name of torch._dynamo.utils, which it seldom calls.
"""
import functools
import importlib
import sys
import types

import lazy_torch

NAME, INDUCTOR, EXPORT = lazy_torch.DYNAMO, lazy_torch.INDUCTOR, lazy_torch.EXPORTS[0]


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


class Package(lazy_torch.Lazy):
    """Has parts. Another module of it brings all of it (lazy_torch.Finder)."""

    def __init__(self, name, **parts):
        super().__init__(name)
        self.__path__ = []
        self.parts = [Part(name, part, **known) for part, known in parts.items()]
        vars(self).update(zip(parts, self.parts))


def is_compile_supported(device):
    return lazy_torch.load(NAME).utils.is_compile_supported(device)


class Late(type):
    """Classes of a package that comes late. As long as it does, nothing is one of theirs."""

    def __new__(cls, package, name, part=""):
        return super().__new__(cls, name, (), {"package": package, "part": part})

    def __init__(cls, *_):
        pass

    def real(cls):
        lazy_torch.load(cls.package)
        return getattr(importlib.import_module(cls.package + cls.part), cls.__name__)

    def __instancecheck__(cls, thing):
        return not lazy_torch.is_late(cls.package) and isinstance(thing, cls.real())

    def __call__(cls, *args, **keywords):
        return cls.real()(*args, **keywords)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(cls.real(), name)


class Dynamo(Package):
    """What is asked of the module though nothing is compiled; whoever asks for more has the real one."""

    OptimizedModule = Late(NAME, "OptimizedModule")

    def __init__(self, name):
        self.allowed = []
        inside = "._trace_wrapped_higher_order_op"
        super().__init__(name, utils={"is_compile_supported": is_compile_supported}, eval_frame={"OptimizedModule": self.OptimizedModule},
                         _trace_wrapped_higher_order_op={"TransformGetItemToIndex": Late(name, "TransformGetItemToIndex", inside)})

    def came(self):
        for function in self.allowed:
            lazy_torch.load(NAME).allow_in_graph(function)

    def allow_in_graph(self, function):
        if not lazy_torch.is_late(NAME):
            return lazy_torch.load(NAME).allow_in_graph(function)
        self.allowed.append(function)
        return function

    @staticmethod
    def assume_constant_result(function):
        function._dynamo_marked_constant = True
        return function

    @staticmethod
    def graph_break(*args, **kwargs):
        if not lazy_torch.is_late(NAME):
            lazy_torch.load(NAME).graph_break(*args, **kwargs)

    @staticmethod
    def disable(function=None, *how, **more):
        if function is None:
            return functools.partial(Dynamo.disable, **more)
        real = []

        def disabled(*args, **kwargs):
            if not real and not lazy_torch.is_late(NAME):
                real.append(lazy_torch.load(NAME).disable(function, *how, **more))
            return (real[0] if real else function)(*args, **kwargs)

        return disabled


class Inductor(Package):
    def __init__(self, name):
        super().__init__(name, config={"triton": types.SimpleNamespace(cudagraphs=False)})


class Export(Package):
    """Tensors of torch.distributed say that they may be exported."""

    def __init__(self, name):
        super().__init__(name, wrappers={"mark_subclass_constructor_exportable_experimental": lambda function: function})


class Tensor(Package):
    """Whether a tensor lies on several processes is asked where none does."""

    DTensor = Late(lazy_torch.TENSOR, "DTensor")


lazy_torch.kinds.update({NAME: Dynamo, INDUCTOR: Inductor, EXPORT: Export, lazy_torch.TENSOR: Tensor})
lazy_torch.names.update(lazy_torch.kinds)
