# SPDX-License-Identifier: Apache-2.0
"""Ops from several places, beside each the return addresses that the C compiler's unwinder sees there: DIR/unwound.json."""
import ctypes
import json
import os
import sys
import threading

import torch

gcc = ctypes.CDLL("libgcc_s.so.1")
TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
gcc._Unwind_GetIP.restype = ctypes.c_size_t
gcc._Unwind_GetIP.argtypes = [ctypes.c_void_p]
unwound = {}


def note(where):
    """The op and the unwinder are called from the same Python frame: all that is around its interpreter is the same."""
    frames = []

    @TAKE
    def take(context, _):
        frames.append(gcc._Unwind_GetIP(context))
        return 0

    with torch.no_grad(), torch.profiler.record_function(f"at {where}"):
        torch.ones(1)
    gcc._Unwind_Backtrace(take, None)
    unwound[where] = frames
    return 1


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        note("forward")
        return x * x

    @staticmethod
    def backward(context, up):
        note("backward")
        return 2 * context.saved_tensors[0] * up


class Item:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        if "sorted" not in unwound:
            note("sorted")
        return self.n < other.n


def recurse(n):
    return recurse(n - 1) if n else note("recursion")


def nested(n):
    """C between each two Python calls."""
    return sum(map(nested, [n - 1])) if n else note("nested")


x = torch.ones(4, requires_grad=True)
linear = torch.nn.Linear(4, 4)
note("module")
recurse(20)
nested(6)
sorted([Item(3), Item(1), Item(2)])
Square.apply(linear(x)).sum().backward()
thread = threading.Thread(target=note, args=["thread"])
thread.start()
thread.join()
with open(os.path.join(sys.argv[1], "unwound.json"), "w") as out:
    json.dump(unwound, out)
print("done")
