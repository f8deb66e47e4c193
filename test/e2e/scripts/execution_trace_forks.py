# SPDX-License-Identifier: Apache-2.0
"""Trains a layer for eight steps; in each step a forked child runs a thousand ops and leaves by exit or by os._exit."""
import os
import sys

import torch


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        child = os.fork()
        if child == 0:
            for _ in range(1000):
                torch.ones(2, 2).add_(1)
            if step % 2:
                sys.exit(0)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        optimizer.step()


if __name__ == "__main__":
    main()
