# SPDX-License-Identifier: Apache-2.0
"""A convolutional training that profiles itself with torch.profiler and writes its trace to the file it is given.

usage: self_profiled.py TRACE [full]   full: memory and call stacks, too, and no workers; TRACE - profiles nothing
"""
import contextlib
import sys

import torch
from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8 * 16 * 16, 10)

    def forward(self, image):
        return self.head(self.features(image).flatten(1))


def profiled(full):
    if sys.argv[1] == "-":
        return contextlib.nullcontext()
    return profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=1), record_shapes=True,
                   profile_memory=full, with_stack=full, experimental_config=_ExperimentalConfig(verbose=True) if full else None,
                   on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1]))


def main():
    torch.manual_seed(0)
    full = sys.argv[2:] == ["full"]
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = TensorDataset(torch.rand(24, 3, 16, 16), torch.arange(24) % 10)
    with profiled(full) as profiler:
        for image, label in DataLoader(images, batch_size=4, num_workers=0 if full else 2):
            optimizer.zero_grad()
            with record_function("forward and loss"):
                loss = torch.nn.functional.cross_entropy(model(image), label)
            loss.backward()
            (optimizer.step(), profiler and profiler.step())  # one line: a window begins at either, and call stacks name the line
    print(f"loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
