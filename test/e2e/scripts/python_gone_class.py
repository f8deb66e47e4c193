# SPDX-License-Identifier: Apache-2.0
"""A method of C is first called on an object whose class is gone, and its memory used anew, when the next call site is met.

usage: python_gone_class.py TORCH
"""
import ctypes
import gc
import os
import sys

torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)


def first():
    gone = type("Gone" + "x" * 40, (list,), {})
    gone().append(1)


def again():
    [].append(1)


def work():
    first()
    gc.collect()
    held = [bytearray(b"\xee" * n) for n in range(800, 1800, 8) for _ in range(40)]  # where the class was: a word of it is no address
    again()
    torch.mini_op(b"aten::add")
    return held


for _ in range(6):
    work()
    step()
print("done")
