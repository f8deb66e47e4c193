# SPDX-License-Identifier: Apache-2.0
"""One training on a GPU that is sick in another way in each ten steps, and well in the first ten; prints the name and the median milliseconds of each.

usage: sick.py [NAMES...]; a name is the id of the finding that kprof advise should give. Record it with wait=4,warmup=2,active=4: a window is one sickness.
"""
import gc
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STEPS, WIDTH, ROWS = 10, 4096, 8192


class Slow(Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        begin, made = time.perf_counter(), torch.ones(ROWS)
        while time.perf_counter() - begin < 0.02:  # computes, as a dataset does that decodes and crops
            made = made * 1.0001
        return made


class Training:
    """A step of about 20 ms of matrix products in bfloat16, launched in 3 ms."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(12)]).cuda().bfloat16()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, fused=True)
        self.rows = torch.randn(ROWS, WIDTH, device="cuda").bfloat16()
        self.host, self.pinned = torch.randn(64, 1 << 20), torch.randn(64, 1 << 20).pin_memory()
        self.small, self.tiny = torch.randn(2 << 20, device="cuda"), nn.Sequential(*[nn.Linear(32, 32) for _ in range(400)]).cuda()
        self.float32, self.row = torch.randn(4096, 4096, device="cuda"), torch.randn(1, 4 << 20, device="cuda")
        self.square, self.kept, self.loader = torch.randn(8192, 8192, device="cuda"), [], None
        self.singles = [torch.randn(64) for _ in range(2000)]

    def step(self, sick):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(self.rows).square().mean()
        sick()
        loss.backward()
        self.optimizer.step()
        torch.cuda.synchronize()  # as a program does that logs its loss; without it the host is steps ahead of the GPU


class Sick:
    """
    What goes in between forward and backward, by the id of its finding. launch-queue-full is not among them: an op takes 13 us of the host here, so that only
    kernels of 14 to 17 us, which are to be small on average, fill the queue. test/e2e/advicetraces.py has the case.
    """

    def __init__(self, training):
        self.t = training

    def well(self):
        pass

    def data_loading(self):
        self.t.loader = self.t.loader or iter(DataLoader(Slow(), batch_size=1))
        next(self.t.loader)

    def implicit_sync(self):
        for _ in range(60):
            if self.t.small.sum().item() > 1e9:
                raise RuntimeError
            self.t.small.mul_(1.0)

    def launch_bound(self):
        with torch.no_grad():
            self.t.tiny(self.t.float32[:8, :32])
            torch.cuda.current_stream().query()
            for _ in range(8):
                self.t.tiny(self.t.float32[:8, :32])

    def python_starved(self):
        begin, n = time.perf_counter(), 0
        while time.perf_counter() - begin < 0.04:
            n += 1

    def device_malloc(self):
        for _ in range(4):
            torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
            torch.cuda.empty_cache()

    def pageable_copies(self):
        self.t.host.cuda()

    def exposed_copies(self):
        self.t.pinned.cuda(non_blocking=True)

    def copies_to_join(self):
        for one in self.t.singles:
            one.cuda()

    def tensor_cores_unused(self):
        for _ in range(8):
            torch.mm(self.t.float32, self.t.float32)

    def low_occupancy(self):
        for _ in range(16):
            F.layer_norm(self.t.row, self.t.row.shape)

    def kernels_to_fuse(self):
        for _ in range(4):
            x = self.t.square
            0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    def elementwise_slow(self):
        for _ in range(40):
            self.t.square.view(-1)[::8].mul(2.0)  # each 32 bytes that are read have 4 that count
            self.t.small.sum()  # between them, so that they are no run to fuse

    def memory_grows(self):
        self.t.kept.append(torch.empty(200 << 20, dtype=torch.uint8, device="cuda"))

    def input_in_step(self):
        F.interpolate(torch.ones(16, 3, 512, 512), size=(768, 768), mode="bilinear").cuda()

    def python_gc(self):
        if not self.t.kept or len(self.t.kept) < 200000:
            self.t.kept = [[i] for i in range(400000)]
        gc.collect()


def main():
    training = Training()
    sick = Sick(training)
    asked = sys.argv[1:] or [name for name in vars(Sick) if not name.startswith("_")]
    for name in asked:
        torch.cuda.synchronize()
        times = []
        for _ in range(STEPS):
            begin = time.perf_counter()
            training.step(getattr(sick, name.replace("-", "_")))
            times.append((time.perf_counter() - begin) * 1e3)
        torch.cuda.synchronize()
        training.kept = []
        print(f"ill: {name.replace('_', '-')} {statistics.median(times[5:]):.2f} ms")


main()
