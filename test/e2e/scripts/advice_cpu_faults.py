# SPDX-License-Identifier: Apache-2.0
"""Trainings on the CPU, each with the fault that an argument names: adam, anomaly, double, norms, onehot; or none. Each has a window of its own."""
import ctypes
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS = 1500
ours = ctypes.CDLL(None)


class Net(nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.words = nn.Linear(WORDS, 64, bias=False)
        self.table = nn.Embedding(WORDS, 64)
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(10)])
        self.wide = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 4))

    def forward(self, ids):
        x = self.words(F.one_hot(ids, WORDS).to(self.words.weight.dtype)) if self.fault == "onehot" else self.table(ids)
        return self.wide(self.layers(x))


def norms(model):
    return max([p.grad.norm().item() for p in model.parameters() if p.grad is not None])


def train(fault):
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(fault == "anomaly")
    net = Net(fault).to(torch.float64 if fault == "double" else torch.float32)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=fault != "adam")
    for _ in range(12):
        ids, y = torch.randint(0, WORDS, (256,)), torch.randint(0, 4, (256,))
        loss = F.cross_entropy(net(ids), y)
        optimizer.zero_grad()
        loss.backward()
        if fault == "norms":
            for _ in range(8):
                norms(net)
        optimizer.step()


for fault in sys.argv[1:]:
    ours.kprof_start()
    train(fault)
    ours.kprof_stop()
