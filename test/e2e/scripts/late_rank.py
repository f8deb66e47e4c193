# SPDX-License-Identifier: Apache-2.0
"""Two ranks over gloo, under torchrun, of which rank 1 makes its batch with more products; "larger": with larger ones."""
import sys
import time

import torch
import torch.distributed as dist


def load(rank):
    x, y = torch.randn(16, 32), torch.randint(0, 4, (16,))
    is_larger = "larger" in sys.argv
    n = 100 if is_larger and rank == 0 else 400
    for _ in range(12 if is_larger or rank == 1 else 0):
        torch.mm(torch.ones(n, n), torch.ones(n, n))  # line: slow
    return x, y


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x, y = load(dist.get_rank())
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    dist.barrier()  # as in ranks.py: gloo aborts in some programs that end at once
    time.sleep(2)
    dist.destroy_process_group()
    time.sleep(2)


if __name__ == "__main__":
    main()
