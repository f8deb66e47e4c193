# SPDX-License-Identifier: Apache-2.0
"""A forward hook that keeps features of each step in a list (argv: hook), or of the last one alone (drop), the twin."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)
WIDTH = 512


def features(kept, keeps):
    def hook(module, args, out):
        if not keeps:
            kept.clear()
        kept.append(out.detach().clone())
    return hook


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(6)))
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=1e-4), []
    model[3].register_forward_hook(features(kept, way == "hook"))
    x, clock = torch.randn(64, WIDTH), Clock()
    for _ in range(80):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell(kept_bytes=4 * 64 * WIDTH)


if __name__ == "__main__":
    main(sys.argv[1])
