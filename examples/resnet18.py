# SPDX-License-Identifier: Apache-2.0
"""Trains torchvision's ResNet-18 on synthetic images: DataLoader workers, SGD, one record_function label.

--blur blurs each image, a pixel at a time: a slow place to be found (scripts/demo).
"""
import argparse

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18


def blur(image, passes=40):
    pixels = image.flatten().tolist()
    for _ in range(passes):
        before, after = pixels[-1:] + pixels[:-1], pixels[1:] + pixels[:1]
        pixels = [(left + own + right) / 3 for left, own, right in zip(before, pixels, after)]
    return torch.tensor(pixels).reshape(image.shape)


class Images(Dataset):
    def __init__(self, count, side, is_blurred):
        self.count, self.side, self.is_blurred = count, side, is_blurred

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, self.side, self.side, generator=generator)
        return blur(image) if self.is_blurred else image, index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--blur", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    images = Images(options.steps * options.batch, options.side, options.blur)
    for step, (image, label) in enumerate(DataLoader(images, batch_size=options.batch, num_workers=options.workers)):
        with record_function("forward pass"):
            loss = loss_of(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
