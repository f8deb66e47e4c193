# SPDX-License-Identifier: Apache-2.0
"""Windows of six steps on the (simulated) GPU, each sick in one way; the first is healthy. KPROF_SCHEDULE=skip_first=4,wait=1,warmup=1,
active=4,repeat=11 records the last four of each. Prints of each window the milliseconds, by the program's own clock, that the sickness keeps the
GPU from working in each step (of waits: 0), and how long each step was."""
import gc
import sys
import time

import torch

import advice_windows

WAITS = {"item": lambda y: y.item(), "cpu": lambda y: y.cpu(), "nonzero": lambda y: (y > 0).nonzero(),
         "printing": lambda y: print(f"sum {y}", file=sys.stderr)}
SICKNESSES = ["healthy", *WAITS, "python", "launch", "pageable", "input", "compiling", "collecting"]
PARTS = 10


def prepare(seconds):
    time.sleep(seconds)  # Python work beside the GPU's


def parts(x, weight, wait):
    sums = []
    for _ in range(PARTS):
        prepare(0.0025)
        sums.append((x * weight).exp().sum())
        if wait:
            wait(sums[-1])
    return torch.stack(sums).sum()


def small(x):
    for _ in range(6000):
        x.add_(1)


def moved(batch):
    return batch.to("cuda")  # not pinned


def drain():
    """Returns when the GPU has nothing to do; no call waits for it."""
    event = torch.cuda.Event()
    event.record()
    while not event.query():
        time.sleep(0.0005)


def sick(sickness, step, little, batch):
    if sickness == "python":
        prepare(0.1)
    if sickness == "launch":
        small(little)
    if sickness == "pageable":
        moved(batch)
    if sickness == "input":
        advice_windows.load_batch(batch[:8], 0.002)
    if sickness == "compiling":
        advice_windows.compiled(step, "cuda")
    if sickness == "collecting":
        gc.collect()


def main():
    x = torch.ones(1 << 20, device="cuda")  # enough for all multiprocessors
    weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
    little, batch = torch.ones(8, device="cuda"), torch.ones(4 << 20)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    windows = advice_windows.Windows(SICKNESSES, 6)
    for step, sickness, _ in windows:
        optimizer.zero_grad()
        parts(x, weight, WAITS.get(sickness)).backward()
        if sickness not in ("healthy", *WAITS):
            drain()
            began = time.perf_counter()
            sick(sickness, step, little, batch)
            windows.cost = time.perf_counter() - began
        optimizer.step()
        torch.cuda.synchronize()
    windows.tell()
    time.sleep(0.2)  # autograd's thread drops its last graph under the GIL; where Python ends meanwhile, torch calls std::terminate


if __name__ == "__main__":
    main()
