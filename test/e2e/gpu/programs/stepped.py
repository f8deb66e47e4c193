# SPDX-License-Identifier: Apache-2.0
"""Profiles its steps with torch.profiler's schedule and writes the trace to the file it is given; libkprof may watch too."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
side = torch.cuda.Stream()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=3, repeat=1), record_shapes=True,
             on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1])) as profiler:
    for _ in range(7):
        optimizer.zero_grad()
        batch = torch.zeros(16, 64).pin_memory().to("cuda", non_blocking=True)
        with record_function("forward and loss"):
            loss = model(batch).square().mean()
        with torch.cuda.stream(side):
            torch.zeros(512, device="cuda").add_(1)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        profiler.step()
print("done")
