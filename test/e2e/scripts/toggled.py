# SPDX-License-Identifier: Apache-2.0
"""Switches CPU and CUDA off and on while a window records, by torch.profiler or by libkprof.

usage: toggled.py torch TRACE.json [EXECUTION_TRACE.json] | toggled.py kprof
"""
import sys

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

QUEUED = 10
has_gpu = torch.cuda.is_available()


def settle():
    if has_gpu:
        torch.cuda.synchronize()


def part(name, x):
    with record_function(name):
        y = torch.softmax((x + 1).relu(), -1)
        (y * y).sum().item()
    settle()


def queued(op):
    for _ in range(QUEUED):
        op()


def work(toggle, x):
    part("all", x)
    queued(x.sigmoid)  # on the device when CUDA goes off
    toggle("cuda", False)
    queued(x.cos)  # when it goes on again
    toggle("cuda", True)
    queued(x.erf)
    settle()
    toggle("cuda", False)
    part("no cuda", x)
    toggle("cuda", True)
    part("cuda again", x)
    ends_off = record_function("open when cpu goes off").__enter__()
    toggle("cpu", False)
    ends_off.__exit__(None, None, None)
    part("no cpu", x)
    begins_off = record_function("begun while cpu is off").__enter__()
    toggle("cpu", True)
    x.neg()
    begins_off.__exit__(None, None, None)
    part("cpu again", x)
    for activity in ("cpu", "cuda"):
        toggle(activity, False)
    part("nothing", x)
    for activity in ("cuda", "cpu"):
        toggle(activity, True)
    part("both again", x)


def by_torch(x, path, execution_trace=None):
    observer = ExecutionTraceObserver().register_callback(execution_trace) if execution_trace else None
    activities = {"cpu": ProfilerActivity.CPU, "cuda": ProfilerActivity.CUDA}
    with profile(activities=list(activities.values()) if has_gpu else [ProfilerActivity.CPU],
                 execution_trace_observer=observer) as traced:
        work(lambda name, on: traced.toggle_collection_dynamic(on, [activities[name]]) if has_gpu or name == "cpu" else None, x)
    traced.export_chrome_trace(path)


def by_kprof(x):
    import ctypes
    kprof = ctypes.CDLL(None)
    assert kprof.kprof_toggle(b"gpu", 0) == -22
    assert kprof.kprof_start() == 0

    def toggle(name, on):
        assert kprof.kprof_toggle(name.encode(), int(on)) == 0

    work(toggle, x)
    settle()  # torch.profiler does so when it ends, and records it
    assert kprof.kprof_stop() == 0


def main():
    x = torch.ones(64, 64, device="cuda" if has_gpu else "cpu")
    part("warm-up", x)
    if sys.argv[1] == "torch":
        by_torch(x, *sys.argv[2:])
    else:
        by_kprof(x)


if __name__ == "__main__":
    main()
