# SPDX-License-Identifier: Apache-2.0
"""Ops of the torch of one file; behind each its times go to standard output. usage: ring_logged.py TORCH"""
import ctypes
import os
import sys
import time

op = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so")).mini_op
while True:
    begun = time.time_ns()
    op(b"aten::ring")
    os.write(1, b"%d %d\n" % (begun, time.time_ns()))
    time.sleep(0.001)
