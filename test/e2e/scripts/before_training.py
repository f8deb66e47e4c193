# SPDX-License-Identifier: Apache-2.0
"""Trains for twelve steps; before the first one, or for each batch, modules are called that are not what is trained. argv: where.

loader: transforms, in a DataLoader without workers; prepared: transforms, before the loop; evaluated: the model itself, before the loop
"""
import sys

import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, row):
        return row * 2 + 1


class Rows(torch.utils.data.Dataset):
    def __init__(self, change):
        self.change = change

    def __len__(self):
        return 12 * 32

    def __getitem__(self, i):
        return self.change(torch.full((16,), float(i)))


def main():
    where, scale, model = sys.argv[1], Scale(), nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    rows = Rows(scale if where == "loader" else nn.Identity.forward.__get__(nn.Identity()))
    for _ in range(64 if where == "prepared" else 0):
        scale(torch.ones(16))
    for _ in range(64 if where == "evaluated" else 0):
        model(torch.ones(16))
    for batch in torch.utils.data.DataLoader(rows, batch_size=32):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done", flush=True)


main()
