# SPDX-License-Identifier: Apache-2.0
"""Two commits of one training: `first` makes attention of its parts, `second` by the fused op."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)


def attention_of_parts(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v


class Block(torch.nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention
        self.qkv, self.out = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)

    def forward(self, x):
        q, k, v = (part.view(*part.shape[:2], 4, 64).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


def main(commit):
    attention = attention_of_parts if commit == "first" else torch.nn.functional.scaled_dot_product_attention
    model = torch.nn.Sequential(*(Block(attention) for _ in range(3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(4, 192, 256), Clock()
    for _ in range(60):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()


if __name__ == "__main__":
    main(sys.argv[1])
