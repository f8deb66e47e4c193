# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel on one GPU by NCCL: a group of one rank still makes its collectives' ops, ranges and calls."""
import os

import torch
import torch.distributed as dist
from torch import nn

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
torch.manual_seed(0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=torch.device("cuda", 0))
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.ones(64, 256, device="cuda")).square().mean().backward()
    gathered = torch.empty(256, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.ones(256, device="cuda"))
    optimizer.step()
torch.cuda.synchronize()
dist.destroy_process_group()
print("steps 6")
