# SPDX-License-Identifier: Apache-2.0
"""A training on one core, of steps of about 20 ms. In step 30 others take that core for 80 ms and more."""
import multiprocessing
import os
import time

import torch

OTHERS, STEP_S, TAKEN = 4, 0.02, 30


def take(turn):
    """Burns a step's time of the core for each byte."""
    while turn.recv_bytes():
        begin = time.thread_time()
        while time.thread_time() - begin < STEP_S:
            pass


def compute(seconds):
    """Ops for so long on the core, whatever the clock on the wall says."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        torch.ones(256, 256) @ torch.ones(256, 256)


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
turns = []
for _ in range(OTHERS):
    receives, sends = multiprocessing.Pipe(False)
    turns.append(sends)
    multiprocessing.get_context("fork").Process(target=take, args=(receives,), daemon=True).start()
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    for turn in turns if step == TAKEN else []:
        turn.send_bytes(b"x")
    optimizer.zero_grad()
    model(torch.ones(64, 64)).sum().backward()
    compute(STEP_S)
    optimizer.step()
