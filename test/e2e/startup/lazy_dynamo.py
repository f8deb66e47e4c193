# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo comes when something is compiled, not with the first step of an optimizer (LAZY_DYNAMO=1; conftest.py says for which tests).

An optimizer imports it to say what is not to be compiled. That takes as long as most of torch, and where nothing is compiled it says nothing.
"""
import importlib
import importlib.machinery
import sys
import types

import lazy_torch

NAME = "torch._dynamo"


def is_here():
    return type(sys.modules.get(NAME)) is not Lazy


def the_real():
    if not is_here():
        del sys.modules[NAME]
        vars(sys.modules["torch"]).pop("_dynamo", None)
        sys.meta_path.remove(Finder)
        lazy_torch.load(lazy_torch.META)
    return importlib.import_module(NAME)


class Lazy(types.ModuleType):
    """What an optimizer asks of the module; whoever asks for more has the real one."""

    @staticmethod
    def graph_break(*args, **kwargs):
        if is_here():
            the_real().graph_break(*args, **kwargs)

    @staticmethod
    def disable(function, *how, **more):
        real = []

        def disabled(*args, **kwargs):
            if not real and is_here():
                real.append(the_real().disable(function, *how, **more))
            return (real[0] if real else function)(*args, **kwargs)

        return disabled

    def __getattr__(self, name):
        if name.startswith("__") and (name != "__path__" or "ready" not in vars(self)):  # who looks at all modules asks so
            raise AttributeError(name)
        return getattr(the_real(), name)


class Finder:
    """Also the loader of what it finds."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, Finder) if name == NAME else None

    @staticmethod
    def create_module(spec):
        return Lazy(spec.name)

    @staticmethod
    def exec_module(module):
        module.ready = True


sys.meta_path.insert(0, Finder)
