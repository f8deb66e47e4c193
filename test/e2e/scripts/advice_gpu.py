# SPDX-License-Identifier: Apache-2.0
"""Windows of six steps on the (simulated) GPU, each sick in one way; the first is healthy. KPROF_SCHEDULE=skip_first=4,wait=1,warmup=1,
active=4,repeat=11 records the last four of each. Prints of each window the milliseconds, by the program's own clock, that the sickness keeps the
GPU from working in each step (of waits: 0), and how long each step was."""
import gc
import json
import sys
import time

import torch
import torch._dynamo

WAITS = {"item": lambda y: y.item(), "cpu": lambda y: y.cpu(), "nonzero": lambda y: (y > 0).nonzero(),
         "printing": lambda y: print(f"sum {y}", file=sys.stderr)}
SICKNESSES = ["healthy", *WAITS, "python", "launch", "pageable", "input", "compiling", "collecting"]
FIRST, CYCLE, REST = 4, 6, 2  # steps before the windows; of a window; of these not recorded
PARTS = 10
torch._dynamo.config.recompile_limit = 1000


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


def load_batch(batch):
    for _ in range(20):
        batch = torch.roll(batch, 1, 0).flip(0).contiguous()
        time.sleep(0.002)
    return batch


@torch.compile(backend="eager", dynamic=False)
def shifted(x):
    return x * 2 + 1


def compiled(step):
    shifted(torch.ones(step + 2, device="cuda"))  # a new size each time


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
        load_batch(batch[:8])
    if sickness == "compiling":
        compiled(step)
    if sickness == "collecting":
        gc.collect()


def main():
    x = torch.ones(1 << 20, device="cuda")  # enough for all multiprocessors
    weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
    little, batch = torch.ones(8, device="cuda"), torch.ones(4 << 20)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    spent, ended = {name: ([], []) for name in SICKNESSES}, 0
    for step in range(FIRST + CYCLE * len(SICKNESSES)):
        window, at = divmod(step - FIRST, CYCLE)
        sickness = SICKNESSES[window] if window >= 0 else "healthy"
        optimizer.zero_grad()
        parts(x, weight, WAITS.get(sickness)).backward()
        cost = 0
        if sickness not in ("healthy", *WAITS):
            drain()
            began = time.perf_counter()
            sick(sickness, step, little, batch)
            cost = time.perf_counter() - began
        optimizer.step()
        torch.cuda.synchronize()
        began, ended = ended, time.perf_counter()
        if window >= 0 and at >= REST:
            spent[sickness][0].append(cost * 1000)
            spent[sickness][1].append((ended - began) * 1000)
    print(json.dumps(spent))
    time.sleep(0.2)  # autograd's thread drops its last graph under the GIL; where Python ends meanwhile, torch calls std::terminate


if __name__ == "__main__":
    main()
