# SPDX-License-Identifier: Apache-2.0
"""Modules held in each way, whose hooks print what named_modules() calls them, in the order of calls, as JSON."""
import collections
import json

import torch
from torch import nn

CALLED = []


class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.norm, self.fc1, self.act = nn.LayerNorm(8), nn.Linear(8, 8), act

    def forward(self, x):
        return nn.Hardswish()(self.act(self.fc1(self.norm(x))))  # made on the fly: it has no name


class Loud(collections.OrderedDict):
    """A dict of the program's own: kprof may run none of it."""

    def items(self):
        CALLED.append("Loud.items")
        return super().items()

    def __iter__(self):
        CALLED.append("Loud.__iter__")
        return super().__iter__()


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self._modules = Loud()
        self.inner = nn.Softsign()

    def forward(self, x):
        return self.inner(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        act = nn.ReLU()
        self.blocks = nn.ModuleList(Block(act) for _ in range(3))  # one ReLU under three names
        self.parts = nn.ModuleDict({"embed": nn.Linear(8, 8), "deep": nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Tanh())])})
        self.head = nn.Linear(8, 8)
        self.tied = self.head
        self.add_module("öffnung", nn.Dropout())
        self.odd = Odd()

    def forward(self, x):
        x = self.parts.embed(x)
        for block in self.blocks:
            x = block(x)
        for layer in self.parts["deep"]:
            x = layer(x)
        return self.odd(self.tied(self.head(getattr(self, "öffnung")(x))))


def main():
    net, loss = Net(), nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    names = {module: name for name, module in net.named_modules()}
    del CALLED[:]
    nn.modules.module.register_module_forward_pre_hook(lambda module, _: CALLED.append(names.get(module) or None))
    for _ in range(3):
        loss(net(torch.ones(2, 8)), torch.zeros(2, 8)).backward()
        net.blocks[1](torch.ones(2, 8))  # a part of the model alone
        nn.Sequential(net.blocks[2])(torch.ones(2, 8))
        optimizer.step()
    print(json.dumps(CALLED))


main()
