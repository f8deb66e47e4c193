# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over NCCL: RANK and WORLD_SIZE from the environment, one GPU a rank; rank SLOW is late in every step.

Late is 0.3 s after rank 0 has said that it begins its backward pass: a machine that is busy makes no other rank the late one.
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
slow = int(sys.argv[1]) if len(sys.argv) > 1 else -1
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=30), device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
store = dist.distributed_c10d._get_default_store()
for step in range(6):
    optimizer.zero_grad()
    loss = model(torch.zeros(8, 64, device="cuda")).sum()
    if rank == 0 and slow > 0:
        store.set(f"step {step}", "begins")
    if rank == slow:
        store.wait([f"step {step}"])
        time.sleep(0.3)
    loss.backward()
    optimizer.step()
total = torch.ones(4, device="cuda")
dist.all_reduce(total)
torch.cuda.synchronize()
dist.destroy_process_group()
print("rank", rank, "done")
