# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over NCCL: RANK and WORLD_SIZE from the environment, one GPU a rank; rank SLOW sleeps in every step."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
slow = int(sys.argv[1]) if len(sys.argv) > 1 else -1
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60), device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    if rank == slow:
        time.sleep(0.03)
    optimizer.zero_grad()
    model(torch.zeros(8, 64, device="cuda")).sum().backward()
    optimizer.step()
total = torch.ones(4, device="cuda")
dist.all_reduce(total)
torch.cuda.synchronize()
dist.destroy_process_group()
print("rank", rank, "done")
