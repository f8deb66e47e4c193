# SPDX-License-Identifier: Apache-2.0
"""Two processes train one network over gloo under torch.profiler, and keep their traces as test data.

usage: gloo.py OUT      writes OUT/traces/gloo_rank0.pt.trace.json.gz and gloo_rank1.pt.trace.json.gz
"""
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule


def communicate(rank, group):
    """Each kind of collective once."""
    told = torch.ones(32) * rank
    dist.all_reduce(told, group=group)
    dist.all_gather([torch.empty(32) for _ in range(2)], told)
    dist.broadcast(told, 0)
    dist.all_gather_into_tensor(torch.empty(64), told)
    dist.reduce_scatter_tensor(torch.empty(16), told)
    dist.all_to_all_single(torch.empty(32), told)
    dist.send(told, 1) if rank == 0 else dist.recv(told, 0)
    dist.barrier()


def work(rank, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", GLOO_SOCKET_IFNAME="lo", RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    group = dist.new_group([0, 1], group_desc="my_sub_group")
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ready = lambda profiler: profiler.export_chrome_trace(str(out / f"gloo_rank{rank}.pt.trace.json.gz"))
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                 on_trace_ready=ready) as profiler:
        for _ in range(5):
            loss = model(torch.randn(16, 64)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            communicate(rank, group)
            profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    multiprocessing.spawn(work, args=(folder,), nprocs=2)
