# SPDX-License-Identifier: Apache-2.0
"""TorchScript modules in each other, functions and an eager module; trained or only evaluated. usage: modules.py train|infer"""
import sys

import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.one = nn.Linear(width, width)
        self.rest = nn.Sequential(nn.Linear(width, width), nn.ReLU())

    def gate(self, x):
        return torch.sigmoid(self.one(x))

    def forward(self, x):
        y = self.gate(x)
        if bool(y.sum() > 0):
            y = self.rest(y) + y
        return y


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner(4)
        self.again = nn.ModuleList([Inner(4), Inner(4)])

    def forward(self, x):
        x = self.inner(x)
        for layer in self.again:
            x = layer(x)
        return x * 2


def free(x):
    return torch.tanh(x) * x + x


def main():
    torch.manual_seed(0)
    model, function, eager = torch.jit.script(Outer()), torch.jit.script(free), Inner(4)
    optimizer = torch.optim.SGD([*model.parameters(), *eager.parameters()], lr=0.1)
    x = torch.randn(2, 4)
    with torch.set_grad_enabled(sys.argv[1] == "train"):
        for _ in range(4):
            function(eager(model(x)))
        for _ in range(6):
            optimizer.zero_grad()
            y = function(eager(model(x)))
            with torch.profiler.record_function("in python"):
                y = y.sum()
            if sys.argv[1] == "train":
                y.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
