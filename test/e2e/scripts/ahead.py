# SPDX-License-Identifier: Apache-2.0
"""A training on a GPU that never waits for it, so its host is steps ahead; prints the milliseconds a step takes on the GPU."""
import time

import torch

STEPS = 30
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
batch = torch.ones(32, 64, device="cuda")


def step():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


step()
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in range(STEPS):
    step()
torch.cuda.synchronize()
print((time.perf_counter() - begin) * 1e3 / STEPS)
