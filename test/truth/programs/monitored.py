# SPDX-License-Identifier: Apache-2.0
"""Each 10th step logs histograms, each 50th saves a checkpoint (argv: both; little: it logs a part), or neither does (none), the twin."""
import io
import sys

import torch

from clock import Clock

torch.set_num_threads(1)


def histogram(model, values):
    return [(p.max().item(), p.min().item(), sum(p.flatten()[:values].tolist())) for p in model.parameters()]


def checkpoint(model, optimizer):
    held = io.BytesIO()
    for _ in range(6):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, held)


def after_step(step, clock, model, optimizer, values):
    if step % 10 == 0:
        with clock.part("log"):
            histogram(model, values)
    if step % 50 == 0:
        with clock.part("save"):
            checkpoint(model, optimizer)


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for step in range(1, 202):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
        if way != "none":
            after_step(step, clock, model, optimizer, 24000 if way == "little" else 120000)
    clock.tell()


if __name__ == "__main__":
    main(sys.argv[1])
