# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with a slow DataLoader and a slow function in Python, for the report's shares and lines."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(64), index % 10


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(64, 2048)
        self.out = torch.nn.Linear(2048, 10)

    def forward(self, x):
        x = torch.relu(self.wide(x))  # line: wide
        return self.out(x)


def think():
    time.sleep(0.02)


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Slow(), batch_size=4):
        with torch.profiler.record_function("learn"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
        think()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
