# SPDX-License-Identifier: Apache-2.0
"""From the middle on other programs burn the cores (argv: burners), or none does (none), the twin."""
import multiprocessing
import os
import sys

import torch

from clock import Clock

torch.set_num_threads(1)
STEPS = 60


def burn():
    while True:
        pass


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock, beside = torch.randn(64, 512), Clock(), []
    for step in range(STEPS):
        if way == "burners" and step == STEPS // 2:
            beside = [multiprocessing.get_context("spawn").Process(target=burn, daemon=True) for _ in range(2 * len(os.sched_getaffinity(0)))]
            for process in beside:
                process.start()
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    for process in beside:
        process.kill()
    clock.tell()


if __name__ == "__main__":
    main(sys.argv[1])
