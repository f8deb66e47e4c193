# SPDX-License-Identifier: Apache-2.0
"""Each 20th step is followed by an evaluation that takes about a third of the time (argv: often), or none (none), the twin."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)


def evaluate(model, x):
    model.eval()
    with torch.no_grad():
        losses = [model(x).square().mean() for _ in range(36)]
    model.train()
    return torch.stack(losses).mean()


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for step in range(1, 121):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
        if way == "often" and step % 20 == 0:
            with clock.part("evaluation"):
                evaluate(model, x)
    spent = [step["evaluation"] for step in clock.steps if "evaluation" in step]
    clock.tell(evaluation_each_ms=1e3 * sum(spent) / len(spent) if spent else 0)


if __name__ == "__main__":
    main(sys.argv[1])
