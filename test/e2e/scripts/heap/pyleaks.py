# SPDX-License-Identifier: Apache-2.0
"""Leaks at known lines: tensors, lists, and blocks of C with the GIL released, and on a thread that never ran Python."""
import ctypes
import sys


def keep(thing):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def leak_lists():
    for _ in range(7):
        keep([None] * 30_000)  # lists


def leak_tensors():
    import torch
    ctypes.CDLL(None).kprof_start()  # the import's own blocks are many, and no leak at a line
    ones = torch.ones(1000, 50)
    for _ in range(11):
        keep(torch.add(ones, 1))  # tensors


def leak_in_c(path):
    library = ctypes.CDLL(path)
    library.leak_here(123_456)  # released
    library.leak_on_thread(234_567)
    library.leak_in_handler()  # leaves 345,678 bytes


if sys.argv[1] == "lists":
    leak_lists()
elif sys.argv[1] == "tensors":
    leak_tensors()
else:
    leak_in_c(sys.argv[2])
