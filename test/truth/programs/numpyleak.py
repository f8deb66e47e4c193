# SPDX-License-Identifier: Apache-2.0
"""A dict of numpy arrays that each step adds to: it is a local of main(), which gives it back when it returns."""
import sys

import numpy
import torch

from clock import Clock

torch.set_num_threads(1)
ROWS = 40000  # of 8 bytes: 312.5 KB a step


def table(step):
    return numpy.arange(step, step + ROWS, dtype=numpy.float64)


def main(steps, keeps):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, kept, clock = torch.randn(64, 512), {}, Clock()
    for step in range(steps):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        kept[step if keeps else 0] = table(step)
        optimizer.step()
        clock.step()
    clock.tell(kept_bytes=8 * ROWS, entries=len(kept))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120, keeps="drop" not in sys.argv)
