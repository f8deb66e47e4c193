# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional GAN: two optimizers, a detach, batch norm, one of them stepping twice as often."""
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.ConvTranspose2d(8, 16, 4), nn.BatchNorm2d(16), nn.ReLU(),
                              nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1), nn.Tanh())
    critic = nn.Sequential(nn.Conv2d(3, 16, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256, 1))
    judge = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    maker = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), foreach=False)
    loss_of = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
    for step in range(5):
        for _ in range(2):
            fake = generator(torch.randn(4, 8, 1, 1))
            judge.zero_grad()
            cost = loss_of(critic(torch.rand(4, 3, 8, 8)), ones) + loss_of(critic(fake.detach()), zeros)
            cost.backward()
            judge.step()
        maker.zero_grad()
        gain = loss_of(critic(fake), ones)
        gain.backward()
        maker.step()
        print(f"step {step} critic {cost.item():.4f} generator {gain.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
