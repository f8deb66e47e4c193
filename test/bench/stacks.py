# SPDX-License-Identifier: Apache-2.0
"""One process, many short rounds in turns: a loop alone, under CPython's empty profile function, under torch.profiler, under libkprof. Prints JSON.

usage: stacks.py ROUNDS COUNT EMPTY_PROFILE KIND...    KIND: call, c_call or op, with options after colons (op:shapes:memory)
Runs under LD_PRELOAD with KPROF_STEP=api and wait=1,warmup=0,active=1: every second step is recorded. torch.profiler has with_stack=True
and the options of the kind. Rounds are short, so that most of them run without another program in between; medians are taken of
the differences to the loop alone in the same round.
"""
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile

OPTIONS = {"shapes": "record_shapes", "memory": "profile_memory"}


def empty():
    pass


def call(count):
    """An empty Python function, from one place."""
    begin = time.thread_time_ns()
    for _ in range(count):
        empty()
    return time.thread_time_ns() - begin


def c_call(count):
    """A function made in C."""
    text = "abc"
    begin = time.thread_time_ns()
    for _ in range(count):
        len(text)
    return time.thread_time_ns() - begin


def op(count):
    """Ops on small tensors that each make a new one: one event each, and with memory a block taken and given back."""
    a, b = torch.ones(8), torch.ones(8)
    begin = time.thread_time_ns()
    for _ in range(count // 4):
        torch.add(a, b)
        torch.mul(a, b)
        torch.neg(a)
        torch.sqrt(b)
    return time.thread_time_ns() - begin


def taken(action):
    begin = time.thread_time_ns()
    action()
    return time.thread_time_ns() - begin


class Turns:
    def __init__(self, empty_profile):
        self.step = ctypes.CDLL(None).kprof_step
        self.set_profile = ctypes.pythonapi.PyEval_SetProfile
        self.set_profile.argtypes, self.set_profile.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        self.empty = ctypes.cast(ctypes.CDLL(empty_profile).empty_profile, ctypes.c_void_p)
        self.trace = os.path.join(tempfile.mkdtemp(), "trace.json")

    def floor(self, loop, count):
        self.set_profile(self.empty, None)
        ns = loop(count)
        self.set_profile(None, None)
        return ns

    def theirs(self, loop, count, options):
        profiler = profile(activities=[ProfilerActivity.CPU], with_stack=True, **options)
        profiler.start()
        ns = loop(count)
        return ns, taken(profiler.stop) + taken(lambda: profiler.export_chrome_trace(self.trace))

    def ours(self, loop, count):
        """The step that begins the window is the round's, too; its trace is made when the window is over, on a thread of its own."""
        self.step()
        ns = loop(count)
        return ns, taken(self.step)

    def round(self, loop, count, options):
        line = {"alone": loop(count), "floor": self.floor(loop, count)}
        line["theirs"], line["their end"] = self.theirs(loop, count, options)
        line["alone again"] = loop(count)
        line["ours"], line["our end"] = self.ours(loop, count)
        return {key: ns / count for key, ns in line.items()}


def said_of(lines):
    """Of each of the three: median of what is added while it runs, and with its end; and as ratios to torch.profiler's."""
    def added(key, alone, end=None):
        return statistics.median(line[key] - line[alone] + (line[end] if end else 0) for line in lines)

    said = {"alone": statistics.median(line["alone"] for line in lines), "floor": added("floor", "alone"),
            "ours": added("ours", "alone again"), "theirs": added("theirs", "alone"),
            "ours whole": added("ours", "alone again", "our end"), "theirs whole": added("theirs", "alone", "their end")}
    said.update(running=said["ours"] / said["theirs"], whole=said["ours whole"] / said["theirs whole"], cpython=said["floor"] / said["theirs"])
    return said


def main():
    rounds, count, turns = int(sys.argv[1]), int(sys.argv[2]), Turns(sys.argv[3])
    torch.set_num_threads(1)
    said = {}
    for kind in sys.argv[4:]:
        name, *options = kind.split(":")
        options = {OPTIONS[option]: True for option in options}
        loop = {"call": call, "c_call": c_call, "op": op}[name]
        lines = [turns.round(loop, count, options) for _ in range(rounds + 2)]
        said[kind] = said_of(lines[2:])  # the first two warm everything up
    print(json.dumps(said))


main()
