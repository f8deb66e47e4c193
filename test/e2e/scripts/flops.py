# SPDX-License-Identifier: Apache-2.0
"""Every op that torch has a formula for, each with shapes it counts and shapes it does not; three steps."""
import torch
from torch import nn


def products():
    a, b = torch.randn(3, 5), torch.randn(5, 7)
    torch.mm(a, b)
    torch.addmm(torch.randn(3, 7), a, b)
    torch.bmm(torch.randn(2, 3, 4), torch.randn(2, 4, 6))
    torch.baddbmm(torch.randn(2, 3, 6), torch.randn(2, 3, 4), torch.randn(2, 4, 6))
    a.T @ a
    torch.mm(torch.randn(0, 5), b)


def convolutions():
    image = torch.randn(2, 4, 9, 10)
    nn.functional.conv2d(image, torch.randn(8, 4, 3, 3), stride=2, padding=1)
    nn.functional.conv2d(image, torch.randn(8, 2, 3, 3), groups=2, dilation=2)
    nn.functional.conv2d(image, torch.randn(8, 4, 3, 3), padding="same")  # no formula: the padding is text
    nn.functional.conv1d(torch.randn(2, 4, 9), torch.randn(8, 4, 3))


def elementwise():
    x = torch.randn(6, 7, requires_grad=True)
    ((x + 1) * x * 2).sum().backward()
    x.detach().add_(1).mul_(3)
    torch.add(torch.tensor(1.0), x)


def main():
    weight = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(weight.parameters(), lr=0.1)
    for step in range(6):
        products()
        convolutions()
        elementwise()
        optimizer.zero_grad()
        weight(torch.randn(1000 + step, 4)).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
