# SPDX-License-Identifier: Apache-2.0
"""Trains with a fixed seed and prints what a profiler must not change: the bits of the losses and weights, memory, threads."""
import hashlib
import struct
import threading
import time

import torch
from torch import nn

begin = time.perf_counter()
torch.cuda.init()
torch.zeros(1, device="cuda")
print(f"first use of CUDA: {time.perf_counter() - begin:.3f} s")
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
torch.backends.cudnn.deterministic = True
for _ in range(30):
    batch, labels = torch.randn(32, 3, 32, 32).pin_memory().cuda(non_blocking=True), torch.randint(10, (32,)).cuda()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
digest = hashlib.sha256(b"".join(struct.pack("f", value) for value in losses))
for parameter in model.parameters():
    digest.update(parameter.detach().cpu().numpy().tobytes())
print("results:", digest.hexdigest())
free, total = torch.cuda.mem_get_info()
print(f"memory on the GPU: {(total - free) / 1e6:.0f} MB used, {torch.cuda.memory_allocated()} B allocated, {torch.cuda.max_memory_allocated()} B at the peak")
print("threads of Python:", threading.active_count())
print("threads:", [line for line in open("/proc/self/status") if line.startswith(("Threads", "VmRSS"))])
