# SPDX-License-Identifier: Apache-2.0
"""One process, alternating rounds: the same loop of small ops alone, under libkprof, under torch.profiler. Prints JSON.

usage: inside.py ops ROUNDS OPS [shapes] [stack] | inside.py step ROUNDS TURNS | inside.py train TURNS | inside.py wait ROUNDS OPS
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


def low(values):
    """Mean of the fastest third: what others do on the machine only ever adds."""
    return statistics.mean(sorted(values)[:max(1, len(values) // 3)])


def compare(loop, rounds, count, **options):
    """ns per event of `loop`: alone, under us, under torch.profiler; and what its stop() takes, an event."""
    step = ctypes.CDLL(None).kprof_step
    alone, ours, theirs, stops, our_stops = [], [], [], [], []
    for number in range(rounds + 1):
        first = loop(count)  # step 3n: nothing records
        step()
        profiler = profile(activities=[ProfilerActivity.CPU], **options)
        profiler.start()
        second = loop(count)  # step 3n + 1: torch.profiler
        begin = time.perf_counter_ns()
        profiler.stop()
        stop = (time.perf_counter_ns() - begin) / count
        del profiler
        step()
        third = loop(count)  # step 3n + 2: libkprof
        begin = time.perf_counter_ns()
        step()
        our_stop = (time.perf_counter_ns() - begin) / count
        time.sleep(0.05)
        if number:  # the first round warms everything up
            for line, value in zip((alone, theirs, ours, stops, our_stops), (first, second, third, stop, our_stop)):
                line.append(value)
    median = statistics.median
    said = averages(alone, ours, theirs)
    said.update({"their stop": median(stops), "our stop": median(our_stops)})
    added = [(o - a + s) for a, o, s in zip(alone, ours, our_stops)], [(t - a + s) for a, t, s in zip(alone, theirs, stops)]
    said["added ratio with the stop"] = median(added[0]) / median(added[1])
    return said


def averages(alone, ours, theirs):
    median = statistics.median
    return {"alone": median(alone), "ours": median(ours), "theirs": median(theirs),
            "added ratio": median(o - a for a, o in zip(alone, ours)) / median(t - a for a, t in zip(alone, theirs)),
            "added ratio of the fastest third": (low(ours) - low(alone)) / (low(theirs) - low(alone)),
            "rounds": [[round(x, 1) for x in line] for line in (alone, ours, theirs)]}


class Training:
    """A small transformer layer with AdamW: about 1,000 ops a turn."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.TransformerEncoderLayer(32, nhead=4, dim_feedforward=64, batch_first=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.input = torch.randn(4, 8, 32)

    def turns(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            self.model(self.input).square().mean().backward()
            self.optimizer.step()


def step_that_ends(rounds, turns):
    """What the step call which ends a cycle keeps the training thread: ours, and torch.profiler's with its export."""
    step = ctypes.CDLL(None).kprof_step
    training = Training()
    training.turns(2)
    ours, theirs, per_op = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        for _ in range(rounds):
            step()
            with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                         on_trace_ready=lambda p: p.export_chrome_trace(path)) as profiler:
                profiler.step()
                training.turns(turns)
                begin = time.perf_counter_ns()
                profiler.step()
                theirs.append((time.perf_counter_ns() - begin) / 1e6)
            with open(path) as file:
                recorded = sum(event.get("cat") in ("cpu_op", "user_annotation") for event in json.load(file)["traceEvents"])
            per_op.append(theirs[-1] * 1e6 / recorded)
            step()
            training.turns(turns)
            begin = time.perf_counter_ns()
            step()
            ours.append((time.perf_counter_ns() - begin) / 1e6)
            time.sleep(0.3)
    return {"ours": max(ours), "theirs": statistics.median(theirs), "ours median": statistics.median(ours), "ops": recorded,
            "their ns per op": statistics.median(per_op)}


def main():
    what, rounds, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    torch.set_num_threads(1)
    if what == "ops":
        said = compare(loop, rounds, count, record_shapes="shapes" in sys.argv, with_stack="stack" in sys.argv)
    elif what == "step":
        said = step_that_ends(rounds, count)
    elif what == "train":
        said = Training().turns(rounds)
    else:
        loop(count)
        said = {"alone": min(loop(count) for _ in range(rounds))}
    print(json.dumps(said))


main()
