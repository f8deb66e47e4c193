# SPDX-License-Identifier: Apache-2.0
"""small.py FOLDER - functions, exceptions, generators and a thread around ops of a torch of one file, in a few milliseconds."""
import ctypes
import os
import sys
import threading

sys.setswitchinterval(100)  # a new thread runs once the one that made it waits for it: the same calls in every run
torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)


def op(name):
    torch.mini_op(name)


def numbers(n):
    yield from range(n)


def work():
    total = 0
    for i in numbers(5):
        op(b"aten::mul")
        try:
            total += int("x" if i == 3 else str(i))
        except ValueError:
            total += 100
    return total


for _ in range(4):
    other = threading.Thread(target=work)
    other.start()
    other.join()
    print(work(), sys.getprofile(), threading.active_count())
    step()
print("ends")
sys.exit(7)
