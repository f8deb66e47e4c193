# SPDX-License-Identifier: Apache-2.0
"""A training that keeps a tensor of each step, one element more each time, and a large one every other step."""
import torch

kept = []
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(step):
    loss = model(torch.ones(32, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    kept.append(torch.full((1000 + step,), 1.0))  # each step
    if step % 2:
        kept.append(torch.zeros(5000))  # every other step
    optimizer.step()


for step in range(8):
    train(step)
