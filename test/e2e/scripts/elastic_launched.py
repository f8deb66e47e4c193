# SPDX-License-Identifier: Apache-2.0
"""Starts a function as two ranks over gloo, as torchrun's own interface does. Rank 1 fails behind step 3: usage: elastic_launched.py [HOW]."""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def fails():
    raise ValueError("a planted one")  # fails


def rank(how):
    dist.init_process_group("gloo")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(8))], lr=1e-9)
    for step in range(1000):
        dist.all_reduce(torch.ones(3))
        optimizer.step()
        if step == 3 and dist.get_rank() == 1 and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 3 and dist.get_rank() == 1:
            fails()


if __name__ == "__main__":
    elastic_launch(LaunchConfig(1, 1, 2, run_id="x", rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.1), rank)(sys.argv[1])
