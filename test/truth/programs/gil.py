# SPDX-License-Identifier: Apache-2.0
"""A thread that computes metrics in Python has the GIL, and the thread of the steps waits for it."""
import threading
import time

import torch

from clock import Clock

torch.set_num_threads(1)


def smooth(values):
    total = 0.0
    for value in values:
        total = 0.9 * total + 0.1 * value * value
    return total


def metrics(stop):
    values = [float(i % 17) for i in range(240000)]
    while not stop.is_set():
        smooth(values)
        time.sleep(0.004)


def main():
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, stop = torch.randn(64, 512), threading.Event()
    thread = threading.Thread(target=metrics, args=(stop,), name="metrics")
    thread.start()
    clock = Clock()
    for _ in range(120):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    stop.set()
    thread.join()
    clock.tell()


if __name__ == "__main__":
    main()
