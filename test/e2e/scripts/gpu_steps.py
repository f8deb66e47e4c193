# SPDX-License-Identifier: Apache-2.0
"""A few steps on the (simulated) GPU, traced by torch.profiler itself: kernels, copies, fills, events, two streams.

usage: gpu_steps.py TRACE.json [sync]   sync: waits too (_ExperimentalConfig(enable_cuda_sync_events=True))
"""
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def step(x, side):
    y = (x + 1).relu()
    torch.softmax(y, -1)
    fill = torch.empty(1000, dtype=torch.uint8, device="cuda")
    fill.zero_()
    there = torch.ones(1000).to("cuda")
    event = torch.cuda.Event()
    event.record()
    with torch.cuda.stream(side):
        side.wait_event(event)
        x * 2
    side.synchronize()
    there.cpu()


def main():
    config = {}
    if "sync" in sys.argv:
        from torch._C._profiler import _ExperimentalConfig
        config["experimental_config"] = _ExperimentalConfig(enable_cuda_sync_events=True)
    x = torch.ones(1024, 1024, device="cuda")
    side = torch.cuda.Stream()
    step(x, side)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, **config) as traced:
        with record_function("the steps"):
            for _ in range(5):
                step(x, side)
        torch.cuda.synchronize()
    traced.export_chrome_trace(sys.argv[1])


if __name__ == "__main__":
    main()
