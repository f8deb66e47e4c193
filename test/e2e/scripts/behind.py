# SPDX-License-Identifier: Apache-2.0
"""A rank of a training over gloo, for 45 s. usage: behind.py STORE [RANK]: rank RANK takes three times as long for its own part."""
import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    rank = int(os.environ["RANK"])
    is_behind = sys.argv[2:] == [str(rank)]
    dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(8))], lr=1e-9)
    until, goes_on = time.monotonic() + 45, torch.ones(1)
    while goes_on.item():
        time.sleep(0.06 if is_behind else 0.02)
        goes_on.fill_(time.monotonic() < until)
        dist.all_reduce(goes_on, dist.ReduceOp.MIN)
        optimizer.step()
    dist.barrier()
    time.sleep(2)  # gloo aborts in some programs that end at once


main()
