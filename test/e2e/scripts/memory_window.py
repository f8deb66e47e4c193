# SPDX-License-Identifier: Apache-2.0
"""A training with labels as large as a bias: KIND is adam, momentum or accumulate."""
import sys

import torch

torch.manual_seed(0)
kind = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
if kind == "momentum":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
else:
    optimizer = torch.optim.Adam(model.parameters())
table = torch.zeros(3000)
samples = torch.randn(256, 64)
for step in range(6):
    for part in range(2 if kind == "accumulate" else 1):
        x = samples[32 * step:32 * step + 32].clone()
        y = torch.cat([torch.tensor([i]) for i in range(32)])  # 256 bytes, as the second layer's bias
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
