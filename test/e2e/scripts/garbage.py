# SPDX-License-Identifier: Apache-2.0
"""Trains, and has Python collect garbage three times in each step: twice here, once in a thread. Says how many functions
gc.callbacks held in each step, and holds at the end."""
import gc
import threading

import torch

gc.disable()  # collections come when they are asked for, and only then
told = []
gc.callbacks.append(lambda phase, info: told.append((phase, info["generation"])))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held = []


def cycles():
    for _ in range(50):
        one = []
        one.append(one)


def in_thread():
    cycles()
    gc.collect(1)


for step in range(7):
    held.append(len(gc.callbacks))
    cycles()
    gc.collect(0)
    model(torch.ones(1, 4)).sum().backward()
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    gc.collect()
    optimizer.step()
print(held, len(gc.callbacks), len(told) == 7 * 3 * 2)
