# SPDX-License-Identifier: Apache-2.0
"""The program's own clock: what its parts take by wall time, processor time and the kernel's count of waits for a core.

The last line that tell() prints begins with TRUTH. It is of the same process that kprof records, so that a busy machine
makes both longer. A step is what kprof's is: from the end of one optimizer's step to the end of the next.
"""
import contextlib
import json
import os
import statistics
import time


def core_waited():
    """Seconds that this thread waited for a core; 0 where the kernel does not count."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) / 1e9


class Clock:
    def __init__(self):
        self.steps, self.parts, self.now = [], {}, {}
        self.began = self.marks()

    @staticmethod
    def marks():
        return time.perf_counter(), time.thread_time(), core_waited()

    @contextlib.contextmanager
    def part(self, name):
        """Its wall time, and as NAME_own that without its waits for a core."""
        began, waited = time.perf_counter(), core_waited()
        yield
        wall = time.perf_counter() - began
        self.now[name] = self.now.get(name, 0) + wall
        self.now[f"{name}_own"] = self.now.get(f"{name}_own", 0) + max(0, wall - core_waited() + waited)

    def step(self):
        """Called right behind each optimizer's step."""
        ended = self.marks()
        wall, ran, waited = (b - a for a, b in zip(self.began, ended))
        self.steps.append({"wall": wall, "ran": ran, "no_core": waited, "idle": max(0, wall - ran - waited), **self.now})
        self.now, self.began = {}, ended

    def spans(self, first=1, last=None):
        """TRUTH_STEPS has those of a schedule, as 10-30."""
        if "TRUTH_STEPS" in os.environ:
            first, last = map(int, os.environ["TRUTH_STEPS"].split("-"))
            return self.steps[first:last + 1]
        return self.steps[first:last]

    def tell(self, first=1, last=None, **more):
        """Means of a step in ms, of all steps but the first (no optimizer's step begins it)."""
        steps = self.spans(first, last)
        names = sorted({name for step in steps for name in step})
        means = {f"{name}_ms": 1e3 * statistics.fmean(step.get(name, 0) for step in steps) for name in names}
        medians = {f"{name}_median_ms": 1e3 * statistics.median(step.get(name, 0) for step in steps) for name in names}
        print("TRUTH", json.dumps({"steps": len(steps), **means, **medians, **more}), flush=True)
