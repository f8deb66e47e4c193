# SPDX-License-Identifier: Apache-2.0
"""The level of a signal, followed sample by sample before the model sees it (argv: loop), or by windows (windows), the twin."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)


def follow_loop(signal):
    level, levels = torch.zeros(signal.shape[1]), []
    for sample in signal.abs().unbind():
        level = torch.where(sample > level, sample, level * 0.97)
        levels.append(level)
    return torch.stack(levels)


def follow_windows(signal):
    return torch.nn.functional.max_pool1d(signal.abs().T[None], 65, 1, 32)[0].T


def main(follow):
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
    optimizer, clock = torch.optim.SGD(model.parameters(), lr=1e-3), Clock()
    signal = torch.randn(512, 64)
    for _ in range(40):
        optimizer.zero_grad()
        with clock.part("follow"), torch.no_grad():
            level = follow(signal)
        model((signal / (level + 1)).T).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()


if __name__ == "__main__":
    main(follow_loop if sys.argv[1] == "loop" else follow_windows)
