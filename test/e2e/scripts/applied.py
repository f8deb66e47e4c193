# SPDX-License-Identifier: Apache-2.0
"""Python autograd functions applied to all kinds of values: which of them does a profiler show, and how?"""
import collections

import torch
from torch.utils.checkpoint import checkpoint

OTHERS = [None, True, False, 7, -3, 2**62, -2**63, 2.5, 1e300, float("inf"), float("nan"), 1 + 2j, "text", b"bytes", torch.float32, torch.device("cpu"), len, slice(1),
          [1, 2], [1, 2.5], [True, False], [None, 1], [1, None], [None], [], (), {}, [[1, 2], [3]], [[1], [2.5]], (1, (2, 3)), (1, "a"), {1: 2}, {"a": 1}, {1: "a"},
          [(1, 2), (3, 4)], [(1, 2), (3,)], list(range(30)), list(range(31)), [1.5, 2.0], [1 + 2j], torch.Size([2, 3]), collections.OrderedDict({1: 2}), (None,),
          [True, 1], range(3), {1, 2}, [torch.ones(1)], (torch.ones(1),)]


class Whole(int):
    pass


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *others):
        ctx.others = len(others)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return (gradient * 2,) + (None,) * ctx.others


class Outer(torch.autograd.Function):
    """Applies another inside of itself, before an op that has no Python."""

    @staticmethod
    def forward(ctx, x, scale):
        return Twice.apply(x.detach(), "inner", scale) * scale

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def main():
    parameter = torch.nn.Parameter(torch.ones(4, 5))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for _ in range(8):
        loss = Twice.apply(parameter, *OTHERS, Whole(5), torch.ones(2, 2), parameter).sum()
        for one in OTHERS:
            Twice.apply(torch.ones(3), one)
        loss = loss + Outer.apply(parameter, 3).sum() + checkpoint(lambda x: x * 2, parameter, use_reentrant=True).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
