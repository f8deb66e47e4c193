# SPDX-License-Identifier: Apache-2.0
"""A training that SIGKILL ends in an op of its 21st step (argv: kill), or an exception behind it (raise), as too much memory does."""
import os
import signal
import sys
import threading
import time

import torch

from clock import Clock

torch.set_num_threads(1)
SECONDS = 2


def similarity(kept):
    return torch.mm(kept, kept.t())


def main(way):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for _ in range(20):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    kept = torch.ones(16000, 4096)
    clock.tell(seconds=SECONDS)
    if way == "kill":
        threading.Timer(SECONDS, os.kill, (os.getpid(), signal.SIGKILL)).start()
    similarity(kept)
    while way == "kill":
        time.sleep(1)
    raise MemoryError("too much")


if __name__ == "__main__":
    main(sys.argv[1])
