# SPDX-License-Identifier: Apache-2.0
"""A training on one core, which it shares with as many busy programs as argv says."""
import os
import subprocess
import sys

import torch

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(int(sys.argv[1]))]
try:
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        model(torch.ones(64, 256)).sum().backward()
        optimizer.step()
finally:
    for other in others:
        other.kill()
