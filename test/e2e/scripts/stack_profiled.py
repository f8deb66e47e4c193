# SPDX-License-Identifier: Apache-2.0
"""A program that profiles itself with with_stack in the middle of its steps. usage: stack_profiled.py TRACE"""
import sys

import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def inside():
    return model(torch.ones(2, 4)).sum()


def turn():
    inside().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(2):
    turn()
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as profiler:
    for _ in range(3):
        turn()
profiler.export_chrome_trace(sys.argv[1])
for _ in range(3):
    turn()
