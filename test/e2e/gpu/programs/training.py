# SPDX-License-Identifier: Apache-2.0
"""A little of everything a training step does on a GPU; --parts narrows it.

mlp: Linear-ReLU-LayerNorm-Linear, AdamW. attention: a small transformer layer under autocast. conv: Conv-BatchNorm-ReLU-pool. streams: work on a
side stream that waits for an event. loader: batches from pinned memory, copied without blocking. --await FOLDER EVERY FIRST LAST: from step
FIRST to LAST, each EVERY steps, wait until FOLDER holds a trace for each EVERY steps.
"""
import argparse
import pathlib
import time

import torch
from torch import nn

PARTS = ("mlp", "attention", "conv", "streams", "loader")


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs, self.outputs, self.norm = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = self.inputs(self.norm(x)).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        return x + self.outputs(weights @ v)


def made(parts, device):
    models = nn.ModuleDict({"mlp": nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8))})
    if "attention" in parts:
        models["attention"] = nn.Sequential(Attention(32), Attention(32))
    if "conv" in parts:
        models["conv"] = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    return models.to(device)


def batches(parts, steps, device):
    data = torch.utils.data.TensorDataset(torch.zeros(steps * 16, 32), torch.zeros(steps * 16, dtype=torch.long))
    if "loader" in parts:
        for x, y in torch.utils.data.DataLoader(data, batch_size=16, pin_memory=True):
            yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    else:
        for _ in range(steps):
            yield torch.zeros(16, 32, device=device), torch.zeros(16, dtype=torch.long, device=device)


def awaited(folder, count):
    """Waits for the count-th trace, on a busy machine, too."""
    end = time.monotonic() + 60
    while len(list(pathlib.Path(folder).glob("*.pt.trace.json"))) < count and time.monotonic() < end:
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--await", nargs=4, metavar=("FOLDER", "EVERY", "FIRST", "LAST"), dest="traces")
    options = parser.parse_args()
    parts, device = options.parts.split(","), "cuda"
    models = made(parts, device)
    optimizer = torch.optim.AdamW(models.parameters(), lr=1e-3)
    side, ready = torch.cuda.Stream(), torch.cuda.Event()
    done = 0
    for x, y in batches(parts, options.steps, device):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(models["mlp"](x), y)
        if "attention" in parts:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss + models["attention"](x.view(2, 8, 32)).float().mean()
        if "conv" in parts:
            loss = loss + models["conv"](torch.zeros(2, 3, 8, 8, device=device)).mean()
        if "streams" in parts:
            ready.record()
            with torch.cuda.stream(side):
                side.wait_event(ready)
                total = x.sum() * 2
            torch.cuda.current_stream().wait_stream(side)
            total.record_stream(torch.cuda.current_stream())
        loss.backward()
        optimizer.step()
        done += 1
        if done % 2 == 0:
            loss.item()
        if options.traces:
            every, first, last = map(int, options.traces[1:])
            if first <= done <= last and done % every == 0:
                awaited(options.traces[0], done // every)
    torch.cuda.synchronize()
    print("steps", done)


if __name__ == "__main__":
    main()
