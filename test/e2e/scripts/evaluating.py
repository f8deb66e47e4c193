# SPDX-License-Identifier: Apache-2.0
"""A training that runs its model without gradients, too, and says by its own clock how long that takes.

usage: evaluating.py rollout   a rollout of 128 passes before each 8 steps, with the lazy softmax of torch.distributions
       evaluating.py workers   an evaluation each 8 steps by a DataLoader of 2 workers, of 6 batches; two micro batches a step;
                               behind one of them a pause, as a checkpoint
"""
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

TOOK, STEPS = [], 40


def timed(function):
    began = time.perf_counter()
    function()
    TOOK.append((time.perf_counter() - began) * 1e3)


def net(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs))


def play(policy, states, count=128):
    state = torch.zeros(4)
    with torch.no_grad():
        for _ in range(count):
            action = torch.distributions.Categorical(logits=policy(state)).sample()
            state = state * 0.9 + sum(k for k in range(300)) % 7 * 0.01 + action.item() * 0.1
            states.append(state)


def rollout():
    policy, value = net(4, 2), net(4, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)
    for _ in range(STEPS // 8):
        states = []
        timed(lambda: play(policy, states))
        for part in torch.stack(states).split(16):
            optimizer.zero_grad()
            chances = torch.distributions.Categorical(logits=policy(part))
            (value(part).pow(2).mean() - chances.entropy().mean()).backward()
            optimizer.step()


def score(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == 0).sum().item() for (x,) in loader)
    model.train()
    return right


def workers():
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10), torch.nn.LogSoftmax(1))
    optimizer = torch.optim.AdamW(model.parameters())
    held_out = TensorDataset(torch.randn(384, 64))
    for step in range(STEPS):
        if step % 8 == 7:
            timed(lambda: score(model, DataLoader(held_out, batch_size=64, num_workers=2)))
        if step == 23:
            time.sleep(0.15)
        for _ in range(2):
            model(torch.randn(256, 64)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


{"rollout": rollout, "workers": workers}[sys.argv[1]]()
print("took", *(f"{ms:.3f}" for ms in TOOK))
