# SPDX-License-Identifier: Apache-2.0
"""Times steps before, in and after a window, and prints the median milliseconds of each; "host": until all of it is launched.

usage: timed.py [--torch] [--steps N (of each of the four)] [--model mlp|resnet]; --torch: torch.profiler holds the window.
The window is steps N to 2N - 1, with five steps of warm-up in front of it. "after" is right behind it, while a trace may
still be written; "later" is two seconds behind that.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

parser = argparse.ArgumentParser()
parser.add_argument("--torch", action="store_true")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--model", default="mlp")
options = parser.parse_args()
n = options.steps
if options.model == "resnet":
    from resnet50 import resnet50
    model, batch = resnet50().cuda(), torch.randn(16, 3, 128, 128, device="cuda")
else:  # many small kernels: the host is the bottleneck
    model, batch = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(64, 64), nn.ReLU())]).cuda(), torch.randn(32, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
profiler = None
if options.torch:
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=n - 5, warmup=5, active=n, repeat=1))
    profiler.start()
times, hosts = [], []
for number in range(4 * n):
    if number == 3 * n:
        time.sleep(2)
    begin = time.perf_counter()
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    hosts.append((time.perf_counter() - begin) * 1e3)
    torch.cuda.synchronize()
    times.append((time.perf_counter() - begin) * 1e3)
    if profiler:
        profiler.step()
if profiler:
    profiler.stop()


# the first steps of each part belong to what came before: warm-up, and the end of the window
parts = {"before": slice(n // 4, n - 5), "in": slice(n + 2, 2 * n), "after": slice(2 * n + 5, 3 * n), "later": slice(3 * n + 5, 4 * n)}
print(json.dumps({word + part: statistics.median(kept[steps]) for word, kept in (("", times), ("host ", hosts)) for part, steps in parts.items()}))
# The engine's thread waits for the GIL to drop its last graph. Where Python ends within 5 ms, that thread is ended in a destructor, and torch
# calls std::terminate. So it gets the GIL.
time.sleep(0.2)
