# SPDX-License-Identifier: Apache-2.0
"""A training with torch that measures itself as steps.c does: train.py SIDE STEPS MEET [SAVE_EACH FOLDER | oom]

oom: the hundredth step behind MEET asks for more memory than there is, and goes on."""
import os
import sys
import time

import torch

side, steps, meet = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
has_oom = sys.argv[4:] == ["oom"]
each, folder = (int(sys.argv[4]), sys.argv[5]) if len(sys.argv) > 5 else (0, None)
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 64), torch.randint(0, 10, (8,))
large = {"w": torch.randn(1_000_000)}
longest, at, saved, unsaved = 0.0, 0, 0, 0


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def fail():
    try:
        torch.empty(1 << 50, dtype=torch.uint8)
    except RuntimeError:
        pass


def save():
    try:
        torch.save(large, folder + "/checkpoint.new")
        os.replace(folder + "/checkpoint.new", folder + "/checkpoint")
        return True
    except (OSError, RuntimeError):
        return False


for i in range(steps):
    if i == meet:
        open(side + ".at", "w").close()
        while not os.path.exists(side + ".go"):
            time.sleep(0.001)
    since = time.monotonic()
    loss = step()
    if has_oom and i == meet + 100:
        fail()
    took = time.monotonic() - since
    if i > 10 and took > longest:  # the first ones load libraries
        longest, at = took, i
    if each and i and i % each == 0:
        good = save()
        saved, unsaved = saved + good, unsaved + (not good)
    time.sleep(0.001)
print("loss %.10f, saved %d, not saved %d" % (loss.item(), saved, unsaved))
with open(side + ".said", "w") as file:
    file.write("step_us=%d step_at=%d save_us=0 end_us=%d\n" % (longest * 1e6, at, time.time() * 1e6))
