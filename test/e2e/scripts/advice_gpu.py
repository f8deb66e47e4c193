# SPDX-License-Identifier: Apache-2.0
"""Steps on the (simulated) GPU that are sick in one way (argv: sync, python, launch), or not (healthy, free: no wait at all). Prints
the milliseconds of a step: the mean of steps 4 to 9, by the wall clock, with the GPU's last work."""
import sys
import time

import torch

PARTS = 12
SICKNESS = sys.argv[1]


def prepare(seconds):
    time.sleep(seconds)  # Python work beside the GPU's


def part(x, weight):
    prepare(0.001)
    y = (x * weight).exp().sum()
    if SICKNESS == "sync":
        y.item()
    return y


def small(x):
    for _ in range(6000):
        x.add_(1)


def main():
    x = torch.ones(1 << 20, device="cuda")  # enough for all multiprocessors
    weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
    little = torch.ones(8, device="cuda")
    optimizer = torch.optim.SGD([weight], lr=0.1)
    began = 0
    for step in range(10):
        if step == 4:
            torch.cuda.synchronize()
            began = time.perf_counter()
        optimizer.zero_grad()
        loss = sum(part(x, weight) for _ in range(PARTS))
        loss.backward()
        if SICKNESS == "python":
            prepare(0.03)
        if SICKNESS == "launch":
            small(little)
        optimizer.step()
        torch.cuda.synchronize()
    print((time.perf_counter() - began) / 6 * 1000)
    time.sleep(0.2)  # autograd's thread drops its last graph under the GIL; where Python ends meanwhile, torch calls std::terminate


if __name__ == "__main__":
    main()
