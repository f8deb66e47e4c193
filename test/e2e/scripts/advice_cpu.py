# SPDX-License-Identifier: Apache-2.0
"""A training on the CPU of windows of twelve steps, each sick in one way; the first is healthy. KPROF_SCHEDULE=skip_first=4,wait=1,warmup=1,
active=10,repeat=7 records the last ten of each. Prints of each window the milliseconds by the program's own clock: what the sickness cost in
each step, and how long each step was."""
import gc
import json
import sys
import time

import torch
import torch._dynamo

SICKNESSES = ["healthy", "input", "compiling", "collecting", "outlier", "drift", "growing"]
FIRST, CYCLE, REST = 4, 12, 2  # steps before the windows; of a window; of these not recorded
torch._dynamo.config.recompile_limit = 1000


def load_batch(batch):
    for _ in range(20):
        batch = torch.roll(batch, 1, 0).flip(1).contiguous()
        time.sleep(0.001)
    return batch


@torch.compile(backend="eager", dynamic=False)
def shifted(x):
    return x * 2 + 1


def compiled(step):
    shifted(torch.ones(step + 2))  # a new size each time


def evaluate(model, batch, times):
    for _ in range(times):
        model(batch)


def grown(kept, loss, batch):
    kept.append(torch.cat([batch, batch * loss]))


def sick(sickness, at, step, model, batch, loss, kept):
    if sickness == "collecting" and at in (5, 7, 9):
        gc.collect()
    if sickness == "compiling":
        compiled(step)
    if sickness == "outlier" and at in (5, 8):
        evaluate(model, batch, 100)
    if sickness == "drift":
        time.sleep(0.03 * at)  # a file that gets longer, say
    if sickness == "growing":
        grown(kept, loss, batch)


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    batch, kept, spent = torch.randn(128, 512), [], {name: ([], []) for name in SICKNESSES}
    ended = time.perf_counter()
    for step in range(FIRST + CYCLE * len(SICKNESSES)):
        window, at = divmod(step - FIRST, CYCLE)
        sickness = SICKNESSES[window] if window >= 0 else "healthy"
        optimizer.zero_grad()
        began = time.perf_counter()
        if sickness == "input":
            batch = load_batch(batch)
        took = time.perf_counter() - began
        for _ in range(4):
            loss = model(batch).square().mean()
            loss.backward()
        print(f"step {step}: loss {loss.item():.4f}", file=sys.stderr)  # costs nothing without a GPU
        began = time.perf_counter()
        sick(sickness, at, step, model, batch, loss, kept)
        took += time.perf_counter() - began
        optimizer.step()
        began, ended = ended, time.perf_counter()
        if window >= 0 and at >= REST:
            spent[sickness][0].append(took * 1000)
            spent[sickness][1].append((ended - began) * 1000)
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
