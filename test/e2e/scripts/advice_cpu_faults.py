# SPDX-License-Identifier: Apache-2.0
"""A training on the CPU with the faults that its arguments name: adam, anomaly, double, norms, onehot."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
FAULTS = set(sys.argv[1:])
WORDS = 1500
kind = torch.float64 if "double" in FAULTS else torch.float32
torch.autograd.set_detect_anomaly("anomaly" in FAULTS)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Linear(WORDS, 64, bias=False)
        self.table = nn.Embedding(WORDS, 64)
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(10)])
        self.wide = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 4))

    def forward(self, ids):
        x = self.words(F.one_hot(ids, WORDS).to(kind)) if "onehot" in FAULTS else self.table(ids)
        return self.wide(self.layers(x))


def norms(model):
    return max([p.grad.norm().item() for p in model.parameters() if p.grad is not None])


net = Net().to(kind)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused="adam" not in FAULTS)
for _ in range(12):
    ids, y = torch.randint(0, WORDS, (256,)), torch.randint(0, 4, (256,))
    loss = F.cross_entropy(net(ids), y)
    optimizer.zero_grad()
    loss.backward()
    if "norms" in FAULTS:
        for _ in range(8):
            norms(net)
    optimizer.step()
