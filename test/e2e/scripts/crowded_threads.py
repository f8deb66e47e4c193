# SPDX-License-Identifier: Apache-2.0
"""A training on two cores, which it shares with as many busy programs as argv says. Prints its milliseconds a step."""
import os
import subprocess
import sys
import time

import torch

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(int(sys.argv[1]))]
try:
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    began = time.perf_counter()
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(64, 256)).sum().backward()
        optimizer.step()
    print((time.perf_counter() - began) * 1000 / 40)
finally:
    for other in others:
        other.kill()
