# SPDX-License-Identifier: Apache-2.0
"""A training whose hooks clock each module, and print the ms of each step as JSON. usage: module_clock.py forward|backward none|kept"""
import collections
import json
import sys
import time

import torch
from torch import nn

FIRST, STEPS, WIDTH = 2, 6, 192


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.twice = nn.Sequential(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.twice(x)


def paths_of(net):
    """torch's names: a number for each class, in the order of first calls."""
    numbers, paths = collections.Counter(), {}
    for name, module in net.named_modules():
        if isinstance(module, nn.ModuleList):
            continue
        kind = type(module).__name__
        around = max((n for n in paths if n == "" or name.startswith(n + ".")), key=len, default=None)
        paths[name] = (paths[around] + "." if around is not None else "") + f"{kind}_{numbers[kind]}"
        numbers[kind] += 1
    return paths


def clock(net, way, spans):
    began = {}
    for name, path in paths_of(net).items():
        module = net.get_submodule(name)

        def begin(path):
            began[path] = time.perf_counter()

        def end(path):
            spans[path].append(time.perf_counter() - began[path])
        if way == "forward":
            module.register_forward_pre_hook(lambda m, a, path=path: begin(path))
            module.register_forward_hook(lambda m, a, o, path=path: end(path))
        else:
            def watch(module, inputs, output, path=path):  # hooks of tensors: those of modules are ops of their own
                output.register_hook(lambda gradient: begin(path))
                inputs[0].register_hook(lambda gradient: end(path))
            module.register_forward_hook(watch)



def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, spans = Net(), collections.defaultdict(list)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    clock(net, sys.argv[1], spans)
    data = torch.randn(1024, WIDTH, requires_grad=True)
    for _ in range(FIRST + STEPS):
        loss = net(data + 0).square().mean()
        optimizer.zero_grad(set_to_none=sys.argv[2] != "kept")  # kept gradients are added to
        loss.backward()
        optimizer.step()
    print(json.dumps({path: [1e3 * one for one in seconds[FIRST:]] for path, seconds in spans.items()}))


main()
