# SPDX-License-Identifier: Apache-2.0
"""Forks with every warning shown: from Python 3.12 on os.fork() warns when the process has threads. Any Python from 3.8.

usage: fork_counted.py TORCH|-
"""
import ctypes
import os
import sys
import threading
import warnings

warnings.simplefilter("always")
if sys.argv[1] != "-":
    ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so")).mini_op(b"aten::add")
kept = [bytearray(100) for _ in range(1000)]


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


for _ in range(20):
    fork()
print("alone", file=sys.stderr)
ended = threading.Event()
thread = threading.Thread(target=ended.wait)
thread.start()
fork()  # there is a thread of the program's own
ended.set()
thread.join()
print(threading.active_count(), flush=True)
