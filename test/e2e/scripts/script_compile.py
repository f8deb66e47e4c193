# SPDX-License-Identifier: Apache-2.0
"""Trains a model half TorchScript, half torch.compile (inductor); both are compiled before the first step.

usage: script_compile.py [script | compile]   one half only
"""
import sys

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        total = x
        for turn in range(3):
            if turn > 0:
                total = total + torch.sigmoid(self.linear(total)) * turn
            else:
                total = total * 2
        return total


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x).softmax(dim=-1)


def main():
    torch.manual_seed(0)
    half = sys.argv[1] if len(sys.argv) > 1 else ""
    gate, head = Gate(), Head()
    if half != "compile":
        gate = torch.jit.script(gate)
    compiled = head if half == "script" else torch.compile(head)
    optimizer = torch.optim.SGD([*gate.parameters(), *head.parameters()], lr=0.1)

    def loss_of(x, y):
        return nn.functional.mse_loss(compiled(gate(x)), y)

    for _ in range(4):  # the compilers' own work happens here
        loss_of(torch.randn(8, 16), torch.rand(8, 4)).backward()
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(torch.randn(8, 16), torch.rand(8, 4))
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
