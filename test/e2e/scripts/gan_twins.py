# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny GAN whose two optimizers are both Adam: to torch their steps have one name."""
import sys

import torch
from torch import nn


def main(steps=8, critics=1):
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
    critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    maker = torch.optim.Adam(generator.parameters(), lr=2e-4)
    judge = torch.optim.Adam(critic.parameters(), lr=2e-4)
    loss_of = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
    for step in range(steps):
        maker.zero_grad()
        fake = generator(torch.randn(4, 4))
        gain = loss_of(critic(fake), ones)
        gain.backward()
        maker.step()
        for _ in range(critics):
            judge.zero_grad()
            cost = loss_of(critic(torch.rand(4, 6)), ones) + loss_of(critic(fake.detach()), zeros)
            cost.backward()
            judge.step()
        print(f"step {step} critic {cost.item():.4f} generator {gain.item():.4f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
