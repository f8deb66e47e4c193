# SPDX-License-Identifier: Apache-2.0
"""Writes COUNT traces, each when the one before is there, and prints what the process and its folder have after some and after all.

usage: windows_flat.py TORCH FOLDER COUNT keep|window|day
keep: of the ring by kprof_keep; window: of kprof_start and kprof_stop; day: COUNT steps, 40 traces of the ring in between
"""
import ctypes
import glob
import json
import os
import sys
import time

torch, folder, count, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
op, kprof = ctypes.CDLL(os.path.join(torch, "libtorch_cpu.so")).mini_op, ctypes.CDLL(None)


def traces():
    return set(glob.glob(os.path.join(folder, "*.pt.trace.json.gz")))


def one():
    before = traces()
    if how == "window":
        assert kprof.kprof_start() == 0
    for _ in range(200):
        op(b"aten::ring")
    assert (kprof.kprof_stop if how == "window" else kprof.kprof_keep)() == 0
    while not traces() - before:
        op(b"aten::ring")
        time.sleep(0.0005)


def state():
    while len(traces()) > 3:  # the oldest goes when the newest has its name
        time.sleep(0.01)
    with open("/proc/self/status") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))  # without the spool's pages
    spools = [os.stat(path).st_blocks // 2 for path in glob.glob(os.path.join(folder, "*.kprof"))]
    return {"own_kb": own, "descriptors": len(os.listdir("/proc/self/fd")), "traces": len(traces()), "files": len(os.listdir(folder)),
            "spool_kb": sum(spools)}


def steps(number):
    """A step each half of a millisecond, then a trace."""
    for _ in range(number):
        op(b"aten::ring")
        assert kprof.kprof_step() == 0
        time.sleep(0.0004)
    one()


op(b"aten::ring")
early, per_trace = None, count
if how == "day":
    per_trace, count = count // 40, 40
for i in range(count):
    if how == "day":
        steps(per_trace)
    else:
        one()
    if i == max(count // 10, 4):
        early = state()
print(json.dumps([early, state()]))
