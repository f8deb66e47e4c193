# SPDX-License-Identifier: Apache-2.0
"""A metric over the scores of all steps so far (argv: all), or of the last one alone (last), the twin."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)
FIRST = 6


def rank(scores):
    return torch.cat(scores).argsort().argsort().float().mean()


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
    optimizer, scores, out = torch.optim.SGD(model.parameters(), lr=1e-3), [], torch.randn(2048)
    x, clock = torch.randn(128, 256), Clock()
    for _ in range(120):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
        if way == "last":
            scores.clear()
        scores.append(out.clone())
        with clock.part("metric"):
            rank(scores)
    owns = [1e3 * step.get("metric_own", 0) for step in clock.steps[1:]]
    clock.tell(more_ms=sum(owns) / len(owns) - sum(owns[:FIRST]) / FIRST)


if __name__ == "__main__":
    main(sys.argv[1])
