# SPDX-License-Identifier: Apache-2.0
"""torch's own export_stacks beside its trace of the same run. usage: stack_exported.py TRACE STACKS"""
import sys

import torch
from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())


def train():
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


train()
with profile(activities=[ProfilerActivity.CPU], with_stack=True, experimental_config=_ExperimentalConfig(verbose=True)) as profiler:
    train()
profiler.export_chrome_trace(sys.argv[1])
profiler.export_stacks(sys.argv[2], "self_cpu_time_total")
