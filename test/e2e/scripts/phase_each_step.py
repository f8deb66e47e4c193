# SPDX-License-Identifier: Apache-2.0
"""Trains six steps, each in a range of its own, and evaluates between them outside of it."""
import torch
from torch.profiler import record_function

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    with record_function("training_step"):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        model(torch.randn(4, 8)).sigmoid().sum()
