# SPDX-License-Identifier: Apache-2.0
"""recorded.py OUTDIR cpu|cuda [alone] - a training with all that torch.profiler can record switched on; libkprof may record it, too.

Leaves in OUTDIR: trace.json of torch.profiler, tables.json (see make_tables.py), METRIC.txt of export_stacks, flops.json (what torch
computed for each name and shapes; no file has it). alone: without torch.profiler, of which there can be only one when Python is traced.
"""
import contextlib
import json
import os
import sys
import warnings

import option_sets
import torch
import torch.nn as nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule

STEPS = 4
METRICS = ["self_cpu_time_total", "self_cuda_time_total"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2)
        self.mix = nn.Linear(4 * 49, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x)).flatten(1)
        y = self.mix(y)
        z = torch.bmm(y.unsqueeze(1), y.unsqueeze(2)).squeeze(2)
        return self.head(torch.cat([y * z, y]).mul(0.5))


def train(device, step_end):
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    kept = []
    for step in range(STEPS):
        x = torch.randn(6, 3, 16, 16).to(device)
        with record_function("forward [x]; 50%"):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        kept.append(torch.ones(100 * step + 1, device=device))
        optimizer.step()
        step_end()


def written(out, device):
    def ready(prof):
        prof.export_chrome_trace(os.path.join(out, "trace.json"))
        option_sets.write(out, option_sets.EVERY, prof.key_averages)
        for metric in METRICS:
            prof.export_stacks(os.path.join(out, metric + ".txt"), metric)
        flops = {f"{e.name} {e.input_shapes}": e.flops for e in prof.events() if e.flops}
        assert all(flops[f"{e.name} {e.input_shapes}"] == e.flops for e in prof.events() if e.flops)
        with open(os.path.join(out, "flops.json"), "w") as file:
            json.dump(flops, file)

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    return profile(activities=activities, schedule=schedule(wait=0, warmup=1, active=2, repeat=1), on_trace_ready=ready, record_shapes=True,
                   profile_memory=True, with_stack=True, with_flops=True, with_modules=True,
                   experimental_config=_ExperimentalConfig(verbose=True))


def main():
    out, device, *alone = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with contextlib.nullcontext() if alone else written(out, device) as prof:
        train(device, prof.step if prof else lambda: None)


if __name__ == "__main__":
    main()
