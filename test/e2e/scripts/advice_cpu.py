# SPDX-License-Identifier: Apache-2.0
"""A training on the CPU of windows of twelve steps, each sick in one way; the first is healthy. KPROF_SCHEDULE=skip_first=4,wait=1,warmup=1,
active=10,repeat=7 records the last ten of each. Prints of each window the milliseconds by the program's own clock: what the sickness cost in
each step, and how long each step was."""
import gc
import sys
import time

import torch

import advice_windows

SICKNESSES = ["healthy", "input", "compiling", "collecting", "outlier", "drift", "growing"]


def check(batch, times):
    for _ in range(times):
        (batch.T @ batch).tanh()


def grown(kept, loss, batch):
    kept.append(torch.cat([batch, batch * loss]))


def sick(sickness, at, step, model, batch, loss, kept):
    if sickness == "collecting" and at in (5, 7, 9):
        gc.collect()
    if sickness == "compiling":
        advice_windows.compiled(step, "cpu")
    if sickness == "outlier" and at in (5, 8):
        check(batch, 100)
    if sickness == "drift":
        time.sleep(0.03 * at)  # a file that gets longer, say
    if sickness == "growing":
        grown(kept, loss, batch)


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    batch, kept, windows = torch.randn(128, 512), [], advice_windows.Windows(SICKNESSES, 12)
    for step, sickness, at in windows:
        optimizer.zero_grad()
        began = time.perf_counter()
        if sickness == "input":
            batch = advice_windows.load_batch(batch, 0.001)
        windows.cost = time.perf_counter() - began
        for _ in range(4):
            loss = model(batch).square().mean()
            loss.backward()
        print(f"step {step}: loss {loss.item():.4f}", file=sys.stderr)  # costs nothing without a GPU
        began = time.perf_counter()
        sick(sickness, at, step, model, batch, loss, kept)
        windows.cost += time.perf_counter() - began
        optimizer.step()
    windows.tell()


if __name__ == "__main__":
    main()
