# SPDX-License-Identifier: Apache-2.0
"""A training in a job of one rank: the group of all, and one of its own. usage: groups.py"""
import tempfile
import time

import torch
import torch.distributed as dist


def main():
    store = tempfile.NamedTemporaryFile()
    dist.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
    group = dist.new_group([0], group_desc="a \"group\" of its own")
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(7):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)
        optimizer.step()
    dist.destroy_process_group()
    time.sleep(1)  # torch's gloo aborts now and then in a program that ends at once


main()
