# SPDX-License-Identifier: Apache-2.0
"""Trains for STEPS steps; those named in LONG take 0.3 s more. Writes what its own clock says of each to OUT, a line a step, as it goes."""
import sys
import time

import torch

out, steps, *longs = sys.argv[1:]
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with open(out, "w", buffering=1) as lines:
    before = None
    for step in range(int(steps)):
        loss = model(torch.randn(8, 64)).sum()
        optimizer.zero_grad()
        loss.backward()
        time.sleep(0.3 if str(step) in longs else 0.01)
        optimizer.step()
        now = time.monotonic_ns()
        print(step, now - before if before else 0, time.time_ns(), file=lines)
        before = now
