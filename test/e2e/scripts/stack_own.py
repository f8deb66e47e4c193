# SPDX-License-Identifier: Apache-2.0
"""A program that uses torch.profiler with stacks itself, after ops that libkprof saw; prints what its own profiler tells."""
import collections
import json
import os
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

x = torch.randn(4, 4)
(x @ x).sum().item()


def work():
    return torch.relu(x @ x)


with profile(activities=[ProfilerActivity.CPU], with_stack=True) as own:
    for _ in range(3):
        work()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "own.json")
    own.export_chrome_trace(path)
    with open(path, encoding="utf-8", errors="replace") as file:  # torch 2.6 writes bytes that are none
        trace = json.load(file)["traceEvents"]
names = collections.Counter((e.get("cat"), e["name"]) for e in trace if e.get("ph") == "X")
seen = {f"{cat} {os.path.basename(name)}": n for (cat, name), n in names.items() if cat == "cpu_op" or "stack_own.py" in name}
print(json.dumps(seen, sort_keys=True))
sys.stdout.flush()
