# SPDX-License-Identifier: Apache-2.0
"""One rank of a training over gloo. usage: ranks.py STEPS, under torchrun"""
import sys
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[1])):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    # torch 2.15's gloo aborts ("terminate called") in a third of such programs when they end at once, alone too
    dist.barrier()
    time.sleep(2)
    dist.destroy_process_group()
    time.sleep(2)


if __name__ == "__main__":
    main()
