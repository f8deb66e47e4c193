# SPDX-License-Identifier: Apache-2.0
"""Trainings on a GPU as people write them, each with a usual mistake and then mended; prints the milliseconds of a step of each.

usage: mended.py [NAMES...]
Record it with KPROF_STEP=optimizer and wait=8,warmup=2,active=8: a window is one training, the sick one before the mended one.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STEPS, WARM = 18, 9
SMALL = not torch.cuda.is_available() or torch.cuda.get_device_properties(0).total_memory < 8 << 30  # the simulated GPU's


def stack(width, layers, **how):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(layers)]).to("cuda", **how)


class Job:
    """One training; step(i, mended) does one step and ends with the optimizer's."""

    width, layers, rows = 1024, 24, 2048

    def __init__(self, mended):
        torch.manual_seed(0)
        if SMALL:
            self.width, self.layers, self.rows = 32, 2, 4
        self.mended = mended
        self.model = self.make()
        self.optimizer = self.optimize()

    def make(self):
        return stack(self.width, self.layers)

    def optimize(self):
        return torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def batch(self):
        return torch.randn(self.rows, self.width, device="cuda")

    def loss(self, batch):
        return self.model(batch).square().mean()

    def before_step(self):
        pass

    def step(self, i):
        loss = self.loss(self.batch())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.before_step()
        self.optimizer.step()


class Norms(Job):
    """Reads the norm of each gradient one by one; mended: one norm of all, read once."""

    def before_step(self):
        grads = [p.grad for p in self.model.parameters()]
        if self.mended:
            self.norm = torch.nn.utils.get_total_norm(grads).item()
        else:
            self.norm = sum(g.norm().item() ** 2 for g in grads) ** 0.5


class Eager(Job):
    """An optimizer that goes through its parameters one by one; mended: fused."""

    rows = 64

    def optimize(self):
        return torch.optim.AdamW(self.model.parameters(), lr=1e-4, **({"fused": True} if self.mended else {"foreach": False}))


class Pictures(Dataset):
    def __init__(self, items, seconds):
        self.items, self.seconds = items, seconds

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        begin, made = time.perf_counter(), torch.full((3, 224, 224), float(index))
        while time.perf_counter() - begin < self.seconds:  # decodes and crops
            made = made * 1.0001
        return made, index % 10


class Convolutions(Job):
    """What all trainings on pictures share: a small ResNet."""

    rows, seconds, workers, pin = 64, 0.0, 0, False

    def make(self):
        layers, width = [], 3
        for wide in (8, 8) if SMALL else (64, 128, 256, 512):
            layers += [nn.Conv2d(width, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU(), nn.Conv2d(wide, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
            width = wide
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)).cuda()

    def batches(self):
        data = Pictures(self.rows * (STEPS + 1), self.seconds)
        return iter(DataLoader(data, batch_size=self.rows, num_workers=self.workers, pin_memory=self.pin))

    def batch(self):
        self.loader = getattr(self, "loader", None) or self.batches()
        images, labels = next(self.loader)
        return images.to("cuda", non_blocking=self.pin), labels.to("cuda", non_blocking=self.pin)

    def loss(self, batch):
        return F.cross_entropy(self.model(batch[0]), batch[1])


class Loading(Convolutions):
    """Loads in the process of the training; mended: by eight workers."""

    seconds = 0.002

    def __init__(self, mended):
        self.workers = 8 if mended else 0
        super().__init__(mended)


class Pinned(Convolutions):
    """Copies batches of 154 MB from memory that is not pinned; mended: pinned by the loader's thread."""

    rows = 256

    def __init__(self, mended):
        super().__init__(mended)
        make = torch.randn(self.rows, 3, 224, 224)
        self.kept = [make.pin_memory() if mended else make for _ in range(2)]
        self.labels = torch.zeros(self.rows, dtype=torch.long, device="cuda")

    def batch(self):
        return self.kept[0].to("cuda", non_blocking=self.mended), self.labels


class Float32(Job):
    """Products of float32 without tensor cores; mended: TF32."""

    width, rows, layers = 4096, 8192, 8

    def loss(self, batch):
        torch.backends.cuda.matmul.allow_tf32 = self.mended
        return super().loss(batch)

    def before_step(self):
        torch.cuda.synchronize()


class Attention(Job):
    """Attention by hand; mended: F.scaled_dot_product_attention."""

    width, layers, rows = 1024, 6, 8

    def make(self):
        return nn.ModuleList([nn.ModuleList([nn.Linear(self.width, 3 * self.width), nn.Linear(self.width, self.width)]) for _ in range(self.layers)]).cuda().bfloat16()

    def batch(self):
        return torch.randn(self.rows, 8 if SMALL else 2048, self.width, device="cuda", dtype=torch.bfloat16)

    def loss(self, x):
        for qkv, out in self.model:
            q, k, v = (part.unflatten(-1, (16, -1)).transpose(1, 2) for part in qkv(x).chunk(3, -1))
            if self.mended:
                y = F.scaled_dot_product_attention(q, k, v)
            else:
                y = torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5, -1) @ v
            x = x + out(y.transpose(1, 2).flatten(2))
        return x.float().square().mean()


class Emptied(Job):
    """Empties the cache of the allocator in each step; mended: does not."""

    def before_step(self):
        if not self.mended:
            torch.cuda.empty_cache()


class Masked(Job):
    """Chooses by a mask, which waits for the count; mended: multiplies with it."""

    rows = 64

    def loss(self, batch):
        for layer in self.model:
            batch, mask = layer(batch), batch > 0
            if self.mended:
                batch = batch * mask
            else:
                batch = torch.zeros_like(batch).masked_scatter(mask, batch[mask])
        return batch.square().mean()


class Clipped(Job):
    """Asks for NaN in each layer; mended: once in the loss."""

    rows = 64

    def loss(self, batch):
        for layer in self.model:
            batch = layer(batch)
            if not self.mended and torch.isnan(batch).any():
                raise RuntimeError("NaN")
        return batch.square().mean()


class Looped(Job):
    """Takes a batch's rows one by one; mended: all at once."""

    rows = 64

    def loss(self, batch):
        if self.mended:
            return self.model(batch).square().mean()
        return torch.stack([self.model(row).square().mean() for row in batch.split(4)]).mean()


class Scheduled(Job):
    """Makes its tensors on the host, one by one; mended: on the GPU."""

    rows = 256

    def loss(self, batch):
        for _ in range(100):
            noise = torch.randn(1, self.width, device="cuda") if self.mended else torch.randn(1, self.width).cuda()
            batch = batch + 0.01 * noise
        return super().loss(batch)


class Lasting(Convolutions):
    """Convolutions of float32 in the usual layout; mended: autocast to bfloat16, channels last."""

    rows = 128

    def make(self):
        return super().make().to(memory_format=torch.channels_last) if self.mended else super().make()

    def batch(self):
        images = torch.randn(self.rows, 3, 224, 224, device="cuda")
        return images.to(memory_format=torch.channels_last) if self.mended else images, torch.zeros(self.rows, dtype=torch.long, device="cuda")

    def loss(self, batch):
        with torch.autocast("cuda", torch.bfloat16, enabled=self.mended):
            return super().loss(batch)


JOBS = {job.__name__.lower(): job for job in (Norms, Eager, Loading, Pinned, Float32, Attention, Emptied, Masked, Clipped, Looped, Scheduled, Lasting)}


def mean(job):
    """Milliseconds of a step over the steps after WARM, the GPU's work of them included."""
    for i in range(WARM):
        job.step(i)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(WARM, STEPS):
        job.step(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / (STEPS - WARM)


def main():
    for name in sys.argv[1:] or JOBS:
        for mended in (False, True):
            took = mean(JOBS[name](mended))
            torch.cuda.empty_cache()
            print(f"step: {name} {'mended' if mended else 'sick'} {took:.3f} ms", flush=True)


main()
