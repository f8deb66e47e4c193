# SPDX-License-Identifier: Apache-2.0
"""Makes markers as torch.compile does: only where the profiler's flag is set, by the class that asks for its profiler. With `held` some
are open when a window begins or ends (torch's own class ends a program in which torch.profiler starts then); with `profiled` the
program profiles itself meanwhile. Says what the flag was in each step."""
import contextlib
import sys

import torch
import torch.autograd.profiler as flags

Fast = torch._C._profiler._RecordFunctionFast


def marked(name):
    return Fast(name) if flags._is_profiler_enabled else contextlib.nullcontext()


def work(step):
    with marked("outer"):
        with marked("inner"):
            torch.ones(2)
        with contextlib.suppress(ValueError), marked("raised"):
            raise ValueError
    with marked(f"step {step}"):
        torch.zeros(2)


def profiled():
    with torch.profiler.profile() as profiler:
        held = Fast("held since it profiled")
        held.__enter__()
        with marked("its own"):
            torch.ones(2)
    held.__exit__(None, None, None)
    return sum(e.name in ("its own", "held since it profiled") for e in profiler.events())


def main():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    early, seen, counted = [], [], []
    for step in range(9):
        if step in (1, 3) and "held" in sys.argv:
            early.append(Fast(f"held from {step}"))  # not asked for, open over the edge of a window
            early[-1].__enter__()
        work(step)
        if step == 3 and "profiled" in sys.argv:
            counted.append(profiled())
            work(step)
        if step in (2, 6) and early:
            early.pop(0).__exit__(None, None, None)
        seen.append(bool(flags._is_profiler_enabled))
        weight.grad = torch.ones(2)
        optimizer.step()
    print(seen, counted, flags._is_profiler_enabled is False, flush=True)


if __name__ == "__main__":
    main()
