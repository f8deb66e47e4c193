# SPDX-License-Identifier: Apache-2.0
"""A training without ranks whose pool fills a queue, until an exception that nobody reads; or computes after it. usage: stands_alone.py stands|computes"""
import queue
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

STEPS = 40
ready = queue.Queue(maxsize=4)


def fill():
    for _ in range(STEPS):
        ready.put(torch.ones(8, 8))
    raise ValueError("a file is too short")


model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pool = ThreadPoolExecutor(1)
pool.submit(fill)
for _ in range(STEPS):
    model(ready.get()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained", flush=True)
while sys.argv[1] == "computes":
    sum(range(100000))
ready.get()  # feeder
