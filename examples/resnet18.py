# SPDX-License-Identifier: Apache-2.0
"""Trains torchvision's ResNet-18 on synthetic images: DataLoader workers, SGD, one record_function label."""
import argparse

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18


class Images(Dataset):
    def __init__(self, count, side):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, self.side, self.side, generator=generator), index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    images = Images(options.steps * options.batch, options.side)
    for step, (image, label) in enumerate(DataLoader(images, batch_size=options.batch, num_workers=options.workers)):
        with record_function("forward pass"):
            loss = loss_of(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
