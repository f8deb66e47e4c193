# SPDX-License-Identifier: Apache-2.0
"""A training with a slow place in it, for docs/tutorials/slow-job.md. --cured is the same without it."""
import argparse

import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """Photos that lie on disk as text, and have to be decoded one by one."""

    def __init__(self, count, passes, side=24):
        self.passes = passes
        self.texts = [" ".join(str((at * 7 + n) % 255) for n in range(side * side * 3)) for at in range(count)]
        self.side = side

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, at):
        pixels = decode(self.texts[at], self.passes)
        return torch.tensor(pixels).reshape(3, self.side, self.side), at % 10


def decode(text, passes):
    """One pixel after another, and all of them again: slow on purpose."""
    for _ in range(passes):
        pixels = [int(word) / 255 for word in text.split()]
    return pixels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cured", action="store_true")
    photos = Photos(16 * 16, passes=1 if parser.parse_args().cured else 8)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
    model(torch.zeros(1, 3, 24, 24))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    for images, labels in DataLoader(photos, batch_size=16):
        loss = loss_of(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
