# SPDX-License-Identifier: Apache-2.0
"""Trains and validates in turns, in phases that it names. usage: phases.py [PROFILES] [ranges]

With a folder it records the same steps with torch.profiler: one profiler a phase, as callbacks would hold them.
With "ranges" the phases are ranges of record_function, and no name is given.
"""
import ctypes
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

SCHEDULES = {"train": {"skip_first": 4, "wait": 1, "warmup": 1, "active": 2, "repeat": 1},
             "validate": {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}}
STEPS = {"train": 5, "validate": 4}


class ByHand:
    """torch.profiler, begun and ended with its phase: only one may be open at a time."""

    def __init__(self, folder, schedules):
        self.folder, self.schedules = folder, schedules
        self.counts = dict.fromkeys(schedules, 0)

    def enter(self, name):
        plan = torch.profiler.schedule(**self.schedules[name])
        self.name = name
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                               schedule=lambda _: plan(self.counts[name]), on_trace_ready=self.write)
        self.profiler.step_num = self.counts[name]
        self.profiler.__enter__()

    def write(self, profiler):
        profiler.export_chrome_trace(f"{self.folder}/{self.name}.{profiler.step_num}.json")

    def step(self):
        self.counts[self.name] += 1
        self.profiler.step()

    def leave(self):
        self.profiler.__exit__(None, None, None)


class Named:
    def __init__(self):
        self.library = ctypes.CDLL(None)

    def enter(self, name):
        assert self.library.kprof_phase(name.encode()) == 0

    def step(self):
        assert self.library.kprof_step() == 0

    def leave(self):
        assert self.library.kprof_phase(None) == 0


class Ranges:
    """A range around each phase; profilers by hand begin and end inside of it."""

    def __init__(self, inner):
        self.inner, self.library = inner, ctypes.CDLL(None)

    def enter(self, name):
        self.range = torch.profiler.record_function(f"my loop: {name}=1")
        self.range.__enter__()
        if self.inner:
            self.inner.enter(name)

    def step(self):
        assert self.inner or self.library.kprof_step() == 0
        if self.inner:
            self.inner.step()

    def leave(self):
        if self.inner:
            self.inner.leave()
        self.range.__exit__(None, None, None)


def phases_of(args):
    by_hand = ByHand(args[0], SCHEDULES) if args and args[0] != "ranges" else None
    if args[-1:] == ["ranges"]:
        return Ranges(by_hand)
    return by_hand or Named()


def main():
    torch.manual_seed(0)
    phases = phases_of(sys.argv[1:])
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    batches = {name: DataLoader(TensorDataset(torch.randn(4 * count, 8)), batch_size=4) for name, count in STEPS.items()}
    for _ in range(2):
        phases.enter("train")
        for (x,) in batches["train"]:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            phases.step()
        phases.leave()
        phases.enter("validate")
        with torch.no_grad():
            for (x,) in batches["validate"]:
                model(x).sigmoid().sum()
                phases.step()
        phases.leave()


if __name__ == "__main__":
    main()
