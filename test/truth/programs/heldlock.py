# SPDX-License-Identifier: Apache-2.0
"""A thread computes in Python for 30 % of the time (argv: computes), or sleeps instead (sleeps), the twin. torch has argv[2] threads, and argv[3] processes burn a core each."""
import multiprocessing
import sys
import threading
import time

import torch

from clock import Clock

EACH, OF = 0.03, 0.1  # seconds that it computes, of so many


def score(until):
    total = 0
    while time.thread_time() < until:
        total += 1
    return total


def watch(stop, computes):
    while not stop.is_set():
        if computes:
            score(time.thread_time() + EACH)
            time.sleep(OF - EACH)
        else:
            time.sleep(OF)


def burn():
    while True:
        pass


def main(way, threads, burners):
    torch.set_num_threads(threads)
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, stop = torch.randn(64, 512), threading.Event()
    beside = [multiprocessing.get_context("spawn").Process(target=burn, daemon=True) for _ in range(burners)]
    for process in beside:
        process.start()
    thread = threading.Thread(target=watch, args=(stop, way == "computes"), name="watch")
    thread.start()
    clock = Clock()
    for _ in range(80):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    stop.set()
    thread.join()
    for process in beside:
        process.kill()
    clock.tell()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
