# SPDX-License-Identifier: Apache-2.0
"""Trains; two functions of Python take time between ops, one calls the other. Prints the seconds that the first takes in all, by its own clock."""
import time

import torch

spent = 0.0


def heavy(n):
    global spent
    began = time.perf_counter()
    total = 0
    for i in range(n):
        total += i * i
    spent += time.perf_counter() - began
    return total


def light(n):
    return heavy(n // 10)


def step(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 64)).sum()
    loss.backward()
    heavy(100000)
    light(100000)
    optimizer.step()


model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    step(model, optimizer)
print(spent / 12)
