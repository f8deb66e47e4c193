# SPDX-License-Identifier: Apache-2.0
"""Steps of a training for some seconds. Prints JSON: ms of the fastest and the median one, of the thread's own time and of the clock.

usage: ring.py transformer|encoder|resnet SECONDS
"""
import json
import statistics
import sys
import time

import torch
from torch import nn

WARM = 5


def transformer():
    from training import Training
    return Training().step


def stepping(loss, optimizer):
    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return step


def encoder():
    layers, head = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 4), nn.Linear(256, 1000)
    x, y = torch.randn(4, 64, 256), torch.randint(1000, (256,))
    optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-4)
    return stepping(lambda: nn.functional.cross_entropy(head(layers(x)).flatten(0, 1), y), optimizer)


def resnet():
    import torchvision
    model = torchvision.models.resnet18()
    x, y = torch.randn(8, 3, 64, 64), torch.randint(1000, (8,))
    return stepping(lambda: nn.functional.cross_entropy(model(x), y), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


def main():
    torch.set_num_threads(1)
    step = {"transformer": transformer, "encoder": encoder, "resnet": resnet}[sys.argv[1]]()
    for _ in range(WARM):
        step()
    own, clock, until = [], [], time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        began, own_began = time.perf_counter(), time.thread_time()
        step()
        own.append(1e3 * (time.thread_time() - own_began))
        clock.append(1e3 * (time.perf_counter() - began))
    print(json.dumps({"own": min(own), "own median": statistics.median(own), "clock": min(clock), "clock median": statistics.median(clock)}))


if __name__ == "__main__":
    main()
