# SPDX-License-Identifier: Apache-2.0
"""The oracle: runs an unmodified script under torch.profiler, one profiler step after each optimizer's step.

usage: kineto.py --out TRACE [--schedule wait,warmup,active,repeat] [--cuda] [--shapes] [--memory] [--stack] [--flops] [--modules]
                 [--waits] [--gc] [--tables JSON_IN JSON_OUT] [--execution-trace FILE] SCRIPT ARGS...
Without --schedule everything from here to the script's end is recorded. --tables: a list of {"key_averages": {...},
"table": {...}} in, the list of the tables' texts out. --nesting: [[parent or null, name, count], ...] of the stepped window,
from the profiler's own tree (traces before 2.4 have whole microseconds, too coarse to find parents by time). --frames: of each op in
that tree [name, frames, count], with --stack; a frame is [file, line, function], innermost first, line 0 where it is not told.
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


def kind_of(node):
    return (node.typed[0] if hasattr(node, "typed") else node.tag).name  # tag: 1.13


def ops_in_steps(profiler):
    """(calls of Python around it, innermost last; node) of every op and range that began within the steps."""
    roots = profiler.profiler.kineto_results.experimental_event_tree()
    nodes, stack = [], [((), root) for root in roots]
    while stack:
        calls, node = stack.pop()
        kind = kind_of(node)
        if kind == "TorchOp":
            nodes.append((calls, node))
        elif kind in ("PyCall", "PyCCall"):
            calls = (*calls, node)
        stack += [(calls, child) for child in node.children]
    steps = [node for _, node in nodes if node.name.startswith("ProfilerStep#")]
    low, high = min(node.start_time_ns for node in steps), max(node.end_time_ns for node in steps)
    return [(calls, node) for calls, node in nodes if low <= node.start_time_ns < high and not node.name.startswith("ProfilerStep#")]


def nesting(profiler):
    """[name of the parent, name, count]; by time, as with stacks the tree ends a range of Python's with the call that began it."""
    pairs, stacks = collections.Counter(), collections.defaultdict(list)
    for _, node in sorted(ops_in_steps(profiler), key=lambda pair: (pair[1].start_time_ns, -pair[1].end_time_ns)):
        stack = stacks[node.start_tid]
        while stack and stack[-1].end_time_ns <= node.start_time_ns:
            stack.pop()
        pairs[stack[-1].name if stack else None, node.name] += 1
        stack.append(node)
    return [[*pair, count] for pair, count in pairs.items()]


def frames_of(calls):
    """The Python functions among these calls, innermost first; the line that a function is at is told by the call it has made."""
    frames, line = [], 0
    for call in reversed(calls):
        fields = call.typed[1] if hasattr(call, "typed") else call.extra_fields
        if kind_of(call) == "PyCall":
            frames.append((fields.callsite.file_name, line, fields.callsite.function_name))
        line = fields.caller.line_number
    return tuple(frames)


def frames(profiler):
    found = collections.Counter((node.name, frames_of(calls)) for calls, node in ops_in_steps(profiler))
    return [[name, chain, count] for (name, chain), count in found.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--schedule")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--stack", action="store_true")
    parser.add_argument("--flops", action="store_true")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--waits", action="store_true")
    parser.add_argument("--gc", action="store_true")
    parser.add_argument("--tables", nargs=2)
    parser.add_argument("--nesting")
    parser.add_argument("--frames")
    parser.add_argument("--execution-trace")
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
        if options.frames:
            with open(options.frames, "w") as file:
                json.dump(frames(profiler), file)
        if options.tables:
            with open(options.tables[0]) as file:
                wanted = json.load(file)
            texts = [profiler.key_averages(**item.get("key_averages", {})).table(**item.get("table", {})) for item in wanted]
            with open(options.tables[1], "w") as file:
                json.dump(texts, file)

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if options.cuda else [])
    experimental = {}
    if options.waits:
        from torch._C._profiler import _ExperimentalConfig
        experimental["experimental_config"] = _ExperimentalConfig(enable_cuda_sync_events=True)
    if options.gc:
        from torch._C._profiler import _ExperimentalConfig
        experimental["experimental_config"] = _ExperimentalConfig(record_python_gc_info=True)
    if options.execution_trace:
        from torch.profiler import ExecutionTraceObserver
        experimental["execution_trace_observer"] = ExecutionTraceObserver()
        experimental["execution_trace_observer"].register_callback(options.execution_trace)
    profiler = profile(activities=activities, schedule=plan, on_trace_ready=ready, record_shapes=options.shapes, profile_memory=options.memory,
                       with_stack=options.stack, with_flops=options.flops, with_modules=options.modules, **experimental)
    step_after_every_optimizer(profiler.step)
    sys.argv = options.rest
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # in the place of this file's folder: who looks for a module makes as many calls
    profiler.start()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        profiler.stop()
        if options.execution_trace:
            experimental["execution_trace_observer"].unregister_callback()


if __name__ == "__main__":
    main()
