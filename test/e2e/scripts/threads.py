# SPDX-License-Identifier: Apache-2.0
"""Runs ops on the main thread and on two plain threads of its own, which torch.profiler does not see."""
import threading

import torch


def prepare(name, start, done):
    for _ in range(6):
        start.wait()
        torch.arange(24).reshape(4, 6).cumsum(0).remainder(5)  # no thread of the training below uses these
        done.wait()
    print(f"{name} done", flush=True)


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start, done = threading.Barrier(3), threading.Barrier(3)
    helpers = [threading.Thread(target=prepare, args=(f"helper {i}", start, done)) for i in range(2)]
    for helper in helpers:
        helper.start()
    for step in range(6):
        start.wait()
        done.wait()
        loss = model(torch.randn(4, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    for helper in helpers:
        helper.join()


if __name__ == "__main__":
    main()
