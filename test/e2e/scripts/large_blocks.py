# SPDX-License-Identifier: Apache-2.0
"""A training on the CPU whose ops take blocks of 9 MB and give them back: 4 MiB and more are what glibc gives back to the system."""
import torch

conv, head = torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD([*conv.parameters(), *head.parameters()], lr=0.1)
images = torch.ones(32, 3, 48, 48)
for _ in range(20):
    optimizer.zero_grad()
    head(torch.relu(conv(images)).mean((2, 3))).sum().backward()
    optimizer.step()
