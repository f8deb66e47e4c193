# SPDX-License-Identifier: Apache-2.0
"""Two ranks that mp.spawn starts: nothing in their environment says which. The second is late by 20 ms a step.

usage: spawn_ranks.py [FOLDER]   with a folder each rank runs torch.profiler, and leaves FOLDER/rankN.json
"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        time.sleep(0.02 * rank)
        optimizer.zero_grad()
        model(torch.ones(4, 16)).sum().backward()
        optimizer.step()


def main(rank, store, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    dist.new_group([0, 1])
    if folder:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            train(rank)
        profiler.export_chrome_trace(os.path.join(folder, f"rank{rank}.json"))
    else:
        train(rank)
    dist.barrier()
    time.sleep(1)  # torch's gloo aborts now and then in a program that ends at once
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.ones(2).sum()  # the parent has a trace, too
    mp.spawn(main, args=(tempfile.mktemp(), (sys.argv + [""])[1]), nprocs=2)
