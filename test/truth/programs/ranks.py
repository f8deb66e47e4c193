# SPDX-License-Identifier: Apache-2.0
"""DDP over gloo: rank 1 reads a slow shard (argv: slow), stops in it at step 20 (hang), or is as the others (even), the twin."""
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

from clock import Clock

torch.set_num_threads(1)
STOPPED = 12


class Shard(torch.utils.data.Dataset):
    def __init__(self, way, rank):
        self.way, self.rank = way, rank

    def __len__(self):
        return 40

    def refresh_token(self):
        print("TRUTH", '{"seconds": %d}' % STOPPED, flush=True)
        threading.Timer(STOPPED, os._exit, (3,)).start()
        time.sleep(100)

    def __getitem__(self, at):
        if self.rank == 1 and self.way == "slow":
            time.sleep(0.025)
        if self.rank == 1 and self.way == "hang" and at == 20:
            self.refresh_token()
        return torch.ones(16, 256)


def main(way):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    clock, loader = Clock(), iter(torch.utils.data.DataLoader(Shard(way, rank), batch_size=None))
    while True:
        with clock.part("load"):
            x = next(loader, None)
        if x is None:
            break
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    if rank == 1:
        clock.tell()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
