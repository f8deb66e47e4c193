# SPDX-License-Identifier: Apache-2.0
"""A training beside a thread of the same program that polls a queue, or waits for it ("wait"), and ends before the program does."""
import queue
import sys
import threading

import torch

q = queue.Queue()


def logger():
    while True:
        if sys.argv[1] == "poll" and q.empty():
            continue
        if q.get() is None:
            return


model = torch.nn.Sequential(*[layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())])
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
thread = threading.Thread(target=logger)
thread.start()
for i in range(60):
    optimizer.zero_grad()
    model(torch.ones(16, 64)).sum().backward()
    optimizer.step()
    q.put(i)
q.put(None)
thread.join()
