# SPDX-License-Identifier: Apache-2.0
"""Profiles itself with torch.profiler, once or several times, while libkprof may be watching too.

usage: teed.py FOLDER [--times N] [--table]; writes FOLDER/kineto.N.pt.trace.json and its tables FOLDER/averages.N.json
"""
import argparse
import json
import pathlib

import torch
from torch.profiler import ProfilerActivity, profile

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--times", type=int, default=1)
parser.add_argument("--tables", help="JSON: [{key_averages: {}, table: {}}, ...]")
options = parser.parse_args()
wanted = json.loads(pathlib.Path(options.tables).read_text()) if options.tables else []
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def step():
    optimizer.zero_grad()
    model(torch.zeros(16, 32).cuda()).square().mean().backward()
    optimizer.step()


step()
torch.cuda.synchronize()
for time in range(options.times):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, profile_memory=True) as profiler:
        for _ in range(2):
            step()
        torch.cuda.synchronize()
    step()
    profiler.export_chrome_trace(str(options.folder / f"kineto.{time}.pt.trace.json"))
    rows = [{"key": row.key, "count": row.count, "self": row.self_device_time_total, "total": row.device_time_total,
             "self_memory": row.self_device_memory_usage} for row in profiler.key_averages()]
    (options.folder / f"averages.{time}.json").write_text(json.dumps(rows))
    texts = [profiler.key_averages(**item.get("key_averages", {})).table(**item.get("table", {})) for item in wanted]
    (options.folder / f"tables.{time}.json").write_text(json.dumps(texts))
torch.cuda.synchronize()
print("profiled", options.times)
