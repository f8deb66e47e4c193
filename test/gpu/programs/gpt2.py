# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT-2 of transformers on made-up tokens: bfloat16, AdamW, a DataLoader with two workers, a logged loss in each step.

--small: for a GPU that only pretends.
"""
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

small = "--small" in sys.argv
torch.manual_seed(0)
LENGTH, BATCH, STEPS = (16, 2, 20) if small else (512, 8, 40)


class Tokens(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        return torch.randint(0, 1000, (LENGTH,))


config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=1000) if small else GPT2Config()
model = GPT2LMHeadModel(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times, total = [], 0.0
for tokens in DataLoader(Tokens(), batch_size=BATCH, num_workers=2, pin_memory=True):
    begin = time.perf_counter()
    tokens = tokens.to("cuda", non_blocking=True)
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append((time.perf_counter() - begin) * 1e3)
print(f"mean loss {total / STEPS:.3f}; median step {statistics.median(times[3:]):.2f} ms")
