# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo comes when something is compiled, not with the first step of an optimizer (LAZY_DYNAMO=1; conftest.py says for which tests).

An optimizer imports it to say what is not to be compiled. That takes as long as most of torch, and where nothing is compiled it says nothing.
"""
import lazy_torch

NAME = lazy_torch.DYNAMO


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


lazy_torch.names.add(NAME)
lazy_torch.kinds[NAME] = Dynamo
