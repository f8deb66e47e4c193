# SPDX-License-Identifier: Apache-2.0
"""The oracle: runs an unmodified script under torch.profiler, one profiler step after each optimizer's step.

usage: kineto.py --out TRACE [--schedule wait,warmup,active,repeat] [--shapes] [--tables JSON_IN JSON_OUT] SCRIPT ARGS...
Without --schedule everything from here to the script's end is recorded. --tables: a list of {"key_averages": {...},
"table": {...}} in, the list of the tables' texts out. Works from torch 1.13 on.
"""
import argparse
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--schedule")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--tables", nargs=2)
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    plan = None
    if options.schedule:
        plan = schedule(**dict(zip(("wait", "warmup", "active", "repeat"), map(int, options.schedule.split(",")))))

    def ready(profiler):
        profiler.export_chrome_trace(options.out)
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
