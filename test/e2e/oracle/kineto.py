# SPDX-License-Identifier: Apache-2.0
"""The oracle: runs an unmodified script under torch.profiler, one profiler step after each optimizer's step.

usage: kineto.py --out TRACE [--schedule wait,warmup,active,repeat] [--shapes] [--tables JSON_IN JSON_OUT] SCRIPT ARGS...
Without --schedule everything from here to the script's end is recorded. --tables: a list of {"key_averages": {...},
"table": {...}} in, the list of the tables' texts out. --nesting: [[parent or null, name, count], ...] of the stepped window,
from the profiler's own tree (traces before 2.4 have whole microseconds, too coarse to find parents by time).
Works from torch 1.13 on.
"""
import argparse
import collections
import json
import os
import runpy
import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule


def step_after_every_optimizer(step):
    made = torch.optim.Optimizer.__init__

    def stepping(inner):
        def wrapper(*args, **kwargs):
            result = inner(*args, **kwargs)
            step()
            return result

        wrapper.hooked = True  # torch's own wrapper is inside already
        wrapper.steps_profiler = True
        return wrapper

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        cls = type(self)
        if not getattr(cls.step, "steps_profiler", False):
            cls.step = stepping(cls.step)

    torch.optim.Optimizer.__init__ = init


def nesting(profiler):
    """(name of the parent, name) of every op and range that began within the steps."""
    roots = profiler.profiler.kineto_results.experimental_event_tree()
    nodes, stack = [], [(None, root) for root in roots]
    while stack:
        parent, node = stack.pop()
        kind = node.typed[0] if hasattr(node, "typed") else node.tag  # tag: 1.13
        if kind.name == "TorchOp":
            nodes.append((parent, node))
        stack += [(node, child) for child in node.children]
    steps = [node for _, node in nodes if node.name.startswith("ProfilerStep#")]
    low, high = min(node.start_time_ns for node in steps), max(node.end_time_ns for node in steps)
    pairs = collections.Counter()
    for parent, node in nodes:
        if low <= node.start_time_ns < high and node not in steps:
            pairs[None if parent is None or parent in steps else parent.name, node.name] += 1
    return [[*pair, count] for pair, count in pairs.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--schedule")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--tables", nargs=2)
    parser.add_argument("--nesting")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    plan = None
    if options.schedule:
        plan = schedule(**dict(zip(("wait", "warmup", "active", "repeat"), map(int, options.schedule.split(",")))))

    def ready(profiler):
        profiler.export_chrome_trace(options.out)
        if options.nesting:
            with open(options.nesting, "w") as file:
                json.dump(nesting(profiler), file)
        if options.tables:
            with open(options.tables[0]) as file:
                wanted = json.load(file)
            texts = [profiler.key_averages(**item.get("key_averages", {})).table(**item.get("table", {})) for item in wanted]
            with open(options.tables[1], "w") as file:
                json.dump(texts, file)

    profiler = profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready, record_shapes=options.shapes)
    step_after_every_optimizer(profiler.step)
    sys.argv = options.rest
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    profiler.start()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        profiler.stop()


if __name__ == "__main__":
    main()
