# SPDX-License-Identifier: Apache-2.0
"""A training whose blocks have every one of torch's categories, and one leak.

usage: memory_kinds.py [FOLDER]   with FOLDER: under torch.profiler, which leaves its trace and its own memory timeline there.
Nothing is left out: the model is made, and the optimizer has its first step, while the profiler runs.
"""
import contextlib
import sys
import warnings

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(0)
warnings.simplefilter("ignore")
kept = []


def train():
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 96), torch.nn.GELU(), torch.nn.Linear(96, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    table = torch.zeros(3000)
    for _ in range(5):
        x, y = torch.randn(32, 64), torch.randn(32, 8)
        with record_function("## forward ##"):
            loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.full((100, 10), 1.0))
    return table


with contextlib.ExitStack() as stack:
    if len(sys.argv) > 1:
        profiler = stack.enter_context(profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True))
    kept.append(train())
if len(sys.argv) > 1:
    profiler.export_chrome_trace(sys.argv[1] + "/kineto.json")
    profiler.export_memory_timeline(sys.argv[1] + "/theirs.raw.json.gz", device="cpu")
