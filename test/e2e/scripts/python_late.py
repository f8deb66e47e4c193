# SPDX-License-Identifier: Apache-2.0
"""Trains on in a function of atexit, where CPython takes no calls for its main thread any more. Any Python from 3.8.

usage: python_late.py TORCH
"""
import atexit
import ctypes
import os
import sys
import threading
import time

torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)


def steps(count):
    for _ in range(count):
        torch.mini_op(b"aten::add")
        step_of_ours()
        time.sleep(0.02)


@atexit.register
def train_on():
    """Windows begin and end here, in a thread, while the main thread waits; and a library comes."""
    ctypes.CDLL("libutil.so.1")
    go.set()
    gone.wait()
    steps(10)
    print("trained")


def other():
    go.wait()
    steps(10)
    gone.set()


go, gone = threading.Event(), threading.Event()
threading.Thread(target=other, daemon=True).start()  # 3.12 makes none at its end
steps(5)
