# SPDX-License-Identifier: Apache-2.0
"""Steps on the (simulated) GPU with torch.profiler around some of them.

usage: tee_steps.py FOLDER WHEN...   WHEN: first-last, steps that one session of torch.profiler is around (0-2 3-3 ...)
Each session leaves FOLDER/kineto<n>.json, and FOLDER/averages<n>.json: [op, self device ns] of key_averages.
"""
import json
import pathlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 10


def main():
    folder = pathlib.Path(sys.argv[1])
    sessions = [tuple(map(int, when.split("-"))) for when in sys.argv[2:]]
    x = torch.ones(64, 64, device="cuda")
    w = torch.ones(64, 64, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    profiler, number = None, 0
    for step in range(STEPS):
        if any(first == step for first, _ in sessions):
            profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            profiler.__enter__()
        fill = torch.empty(1000, dtype=torch.uint8, device="cuda").zero_()
        there = torch.ones(64, 64).to("cuda")
        y = (torch.relu(x * w + there).sum() + fill.sum()) * 1.0
        y.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        if any(last == step for _, last in sessions):
            profiler.__exit__(None, None, None)
            profiler.export_chrome_trace(str(folder / f"kineto{number}.json"))
            rows = [[row.key, row.self_device_time_total] for row in profiler.key_averages()]
            (folder / f"averages{number}.json").write_text(json.dumps(rows))
            number += 1
    print("done")


if __name__ == "__main__":
    main()
