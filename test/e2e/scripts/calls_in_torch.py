# SPDX-License-Identifier: Apache-2.0
"""Trains a small CNN amid generators, exceptions, coroutines, callables and context managers."""
import contextlib

import torch


def batches(count):
    for _ in range(count):
        yield torch.randn(2, 3, 8, 8), torch.randint(0, 4, (2,))


@contextlib.contextmanager
def shielded():
    try:
        yield
    except ValueError:
        pass


async def loss_of(model, image, label):
    return torch.nn.functional.cross_entropy(model(image), label)


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        self.head = torch.nn.Linear(4, 4)

    def forward(self, image):
        return self.head(self.layers(image))


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for image, label in batches(6):
        optimizer.zero_grad()
        with shielded():
            [int(word) for word in ("1", "2", "three")]
        loss = drive(loss_of(model, image, label))
        loss.backward()
        names = sorted(dict(model.named_parameters()), key=lambda name: -len(name))
        optimizer.step()
        print(len(names), f"{loss.item():.3f}", flush=True)


main()
