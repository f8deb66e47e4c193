# SPDX-License-Identifier: Apache-2.0
"""Trains a little and ends in the way that its argument names, with work still pending on the GPU."""
import os
import signal
import sys

import torch

how = sys.argv[1]
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(512)


def step(batch):
    optimizer.zero_grad()
    model(batch.cuda(non_blocking=True)).sum().backward()
    optimizer.step()


if how == "forked":
    for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2, multiprocessing_context="fork"):
        step(batch)
else:
    for _ in range(8):
        step(torch.zeros(8, 512))
print("trained", flush=True)
a = torch.zeros(2048, 2048, device="cuda")
for _ in range(50):
    a = a @ a
if how == "_exit":
    os._exit(0)
if how == "sigterm":
    os.kill(os.getpid(), signal.SIGTERM)
if how == "raise":
    raise SystemExit(7)
