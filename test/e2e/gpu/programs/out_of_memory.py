# SPDX-License-Identifier: Apache-2.0
"""Trains on a device of little memory, keeps what it computes, and asks for more than there is: `ends` of it, or prints what torch says is live.

usage: out_of_memory.py [ends|grads]: grads keeps the gradients of one more step
"""
import json
import sys

import torch

kept = []


def keep(step):
    kept.append(torch.zeros(250_000 + step, device="cuda"))  # kept


def told():
    """torch's own figures, and the blocks of its snapshot."""
    parts = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(), "kept": len(kept),
            "blocks": sorted(block["size"] for block in parts if block["state"] == "active_allocated")}


model = torch.nn.Linear(1000, 1000, bias=False, device="cuda")  # weights
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x = torch.ones(8, 1000, device="cuda")
for step in range(6):
    model(x).sum().backward()
    optimizer.step()  # momentum
    optimizer.zero_grad()
    keep(step)
if "grads" in sys.argv:
    y = model(x)  # forward
    y.sum().backward()
spare = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
del spare[::2]
torch.cuda.synchronize()
try:
    torch.empty(30 << 20, dtype=torch.uint8, device="cuda")  # asked
except torch.OutOfMemoryError:
    if "ends" in sys.argv:
        raise
    print(json.dumps(told()))
