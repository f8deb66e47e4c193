# SPDX-License-Identifier: Apache-2.0
"""A queue that a sleeping thread fills: the step waits in Queue.get for it."""
import queue
import threading
import time

import torch

from clock import Clock

torch.set_num_threads(1)


def fetch():
    time.sleep(0.03)
    return torch.full((64, 256), 0.5)


def feed(batches, count):
    for _ in range(count):
        batches.put(fetch())


def main():
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = queue.Queue(2)
    thread = threading.Thread(target=feed, args=(batches, 80), name="feeder")
    thread.start()
    clock = Clock()
    for _ in range(80):
        with clock.part("get"):
            x = batches.get()
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    thread.join()
    clock.tell()


if __name__ == "__main__":
    main()
