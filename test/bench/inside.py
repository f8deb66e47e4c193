# SPDX-License-Identifier: Apache-2.0
"""One process, alternating rounds: the same loop of small ops alone, under libkprof, under torch.profiler. Prints JSON.

usage: inside.py ops ROUNDS OPS [shapes] | inside.py step ROUNDS OPS | inside.py wait ROUNDS OPS
Runs under LD_PRELOAD with KPROF_STEP=api and wait=2,warmup=0,active=1: of every three steps the last is recorded.
"""
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule


def loop(count):
    """`count` ops on small tensors, as recorded: one event each."""
    a, b, out = torch.ones(8), torch.ones(8), torch.empty(8)
    begin = time.perf_counter_ns()
    for _ in range(count // 4):
        torch.add(a, b, out=out)
        torch.mul(a, b, out=out)
        torch.neg(a, out=out)
        torch.sqrt(b, out=out)
    return (time.perf_counter_ns() - begin) / (count // 4 * 4)


def ops(rounds, count, shapes):
    """ns per op: alone, under us, under torch.profiler; and torch.profiler's stop + export per op."""
    step = ctypes.CDLL(None).kprof_step
    alone, ours, theirs, stops = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            first = loop(count)  # step 3n: nothing records
            step()
            profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=shapes)
            profiler.start()
            second = loop(count)  # step 3n + 1: torch.profiler
            begin = time.perf_counter_ns()
            profiler.stop()
            profiler.export_chrome_trace(os.path.join(folder, "trace.json"))
            stop = (time.perf_counter_ns() - begin) / count
            del profiler
            step()
            third = loop(count)  # step 3n + 2: libkprof
            step()
            time.sleep(0.05)
            if number:  # the first round warms everything up
                for line, value in zip((alone, theirs, ours, stops), (first, second, third, stop)):
                    line.append(value)
    median = statistics.median
    return {"alone": median(alone), "ours": median(ours), "theirs": median(theirs), "their stop": median(stops),
            "added ratio": median((o - a) / (t - a) for a, o, t in zip(alone, ours, theirs)),
            "rounds": [[round(x, 1) for x in line] for line in (alone, ours, theirs)]}


def step_that_ends(rounds, count):
    """ms that the step call which ends a cycle keeps the training thread: ours, and torch.profiler's with its export."""
    step = ctypes.CDLL(None).kprof_step
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            loop(8)
            step()
            with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                         on_trace_ready=lambda p: p.export_chrome_trace(os.path.join(folder, "trace.json"))) as profiler:
                profiler.step()
                loop(count)
                begin = time.perf_counter_ns()
                profiler.step()
                theirs.append((time.perf_counter_ns() - begin) / 1e6)
            step()
            loop(count)
            begin = time.perf_counter_ns()
            step()
            ours.append((time.perf_counter_ns() - begin) / 1e6)
            time.sleep(0.3)
    return {"ours": max(ours), "theirs": statistics.median(theirs), "ours median": statistics.median(ours)}


def main():
    what, rounds, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    if what == "ops":
        said = ops(rounds, count, "shapes" in sys.argv)
    elif what == "step":
        said = step_that_ends(rounds, count)
    else:
        loop(count)
        said = {"alone": min(loop(count) for _ in range(rounds))}
    print(json.dumps(said))


main()
