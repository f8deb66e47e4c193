# SPDX-License-Identifier: Apache-2.0
"""A training whose parts have a range around each. usage: parts.py [PROGRAM [STEPS]]"""
import contextlib
import sys

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(64, 96, batch_first=True), nn.Linear(96, 64)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(384, 768), nn.GELU(), nn.Linear(768, 384)) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


class Picture(nn.Module):
    """A piece of a ResNet."""

    def __init__(self):
        super().__init__()
        self.begin = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.end = nn.Conv2d(24, 3, 3, padding=1)

    def forward(self, x):
        x = self.begin(x)
        return self.end(x + self.middle(x))


def perceptron(wide, deep=1):
    layers = [layer for _ in range(deep) for layer in (nn.Linear(wide, 2 * wide), nn.ReLU(), nn.Linear(2 * wide, wide))]
    return nn.Sequential(*layers)


def transformer():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), 2)


# the model, the shape of its input (and of its answer), the optimizer, and what else there is
PROGRAMS = {
    "perceptron": (lambda: perceptron(512), (1024, 512), dict(foreach=False), {}),
    "deep": (lambda: perceptron(192, 8), (384, 192), {}, {}),
    "small": (lambda: perceptron(64), (64, 64), {}, {}),
    "picture": (Picture, (16, 3, 48, 48), {}, {}),
    "transformer": (transformer, (24, 48, 128), {}, {}),
    "recurrent": (Recurrent, (48, 24, 64), {}, {}),
    "checkpointed": (Checkpointed, (512, 384), {}, {}),
    "lower": (lambda: perceptron(384, 2), (768, 384), {}, dict(lower=True)),
    "accumulating": (lambda: perceptron(384), (384, 384), {}, dict(batches=4)),
    "sgd": (lambda: perceptron(384, 2), (384, 384), dict(optimizer=torch.optim.SGD, momentum=0.9), {}),
}


def main(program="perceptron", steps="6"):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, shape, settings, more = PROGRAMS[program]
    model = make()
    loss_of = torch.nn.MSELoss()
    settings = {"lr": 1e-3, **settings}
    optimizer = settings.pop("optimizer", torch.optim.Adam)(model.parameters(), **settings)
    lower = torch.autocast("cpu", torch.bfloat16) if more.get("lower") else contextlib.nullcontext()
    for _ in range(int(steps)):
        for _ in range(more.get("batches", 1)):
            x, y = torch.randn(*shape), torch.randn(*shape)
            with record_function("by hand: forward"), lower:
                loss = loss_of(model(x), y)
            with record_function("by hand: backward"):
                loss.backward()
        with record_function("by hand: optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        with record_function("by hand: nothing"):
            pass


main(*sys.argv[1:])
