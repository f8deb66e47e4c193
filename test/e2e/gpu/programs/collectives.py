# SPDX-License-Identifier: Apache-2.0
"""Every kind of collective over NCCL, one optimizer step after each round: RANK and WORLD_SIZE from the environment."""
import datetime
import os

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=30), device_id=device)
pair = dist.new_group([0, 1], group_desc="pair of two")
weight = torch.nn.Parameter(torch.zeros(4, device=device))
optimizer = torch.optim.SGD([weight], lr=0.1)


def zeros(n, dtype=torch.float):
    return torch.zeros(n, device=device, dtype=dtype)


for _ in range(6):
    weight.grad = zeros(4)
    dist.all_reduce(weight.grad, async_op=True).wait()
    dist.all_reduce(zeros(7, torch.int64), group=pair)
    dist.broadcast(zeros(3, torch.half), 0)
    dist.all_gather_into_tensor(zeros(8), zeros(4))
    dist.all_gather([zeros(4), zeros(4)], zeros(4))
    dist.reduce_scatter_tensor(zeros(4), zeros(8))
    sizes = [2, 4] if rank == 0 else [4, 2]
    dist.all_to_all_single(zeros(6, torch.bfloat16), zeros(6, torch.bfloat16), sizes, sizes)
    if rank == 0:
        dist.send(zeros(5), 1)
    else:
        dist.recv(zeros(5), 0)
    dist.reduce(zeros(9), 0)
    dist.barrier()
    optimizer.step()
torch.cuda.synchronize()
dist.destroy_process_group()
print("rank", rank, "done")
