# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo comes when something is compiled, not with the first step of an optimizer (LAZY_DYNAMO=1; conftest.py says for which tests).

An optimizer imports it to say what is not to be compiled. That takes as long as most of torch, and where nothing is compiled it says nothing.
torch.profiler imports torch._inductor, and all of torch._dynamo with it, to ask whether compiled code uses CUDA graphs: it does not.
"""
import sys
import types

import lazy_torch

NAME, INDUCTOR = lazy_torch.DYNAMO, lazy_torch.INDUCTOR


class Dynamo(lazy_torch.Lazy):
    """What an optimizer asks of the module; whoever asks for more has the real one."""

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


class InductorsConfig(types.ModuleType):
    """What torch.profiler asks of it; whoever asks for more has the real one."""

    triton = types.SimpleNamespace(cudagraphs=False)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(lazy_torch.load(INDUCTOR).config, name)


class Inductor(lazy_torch.Lazy):
    def __init__(self, name):
        super().__init__(name)
        self.config = sys.modules[f"{name}.config"] = InductorsConfig(f"{name}.config")


lazy_torch.names.update((NAME, INDUCTOR))
lazy_torch.kinds.update({NAME: Dynamo, INDUCTOR: Inductor})
