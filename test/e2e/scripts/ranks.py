# SPDX-License-Identifier: Apache-2.0
"""One rank of a training over gloo, under torchrun or with its variables.

usage: ranks.py STEPS            so many steps of a model in DistributedDataParallel
       ranks.py until FILE [MS]  steps until the file exists; rank N sleeps N * MS in each. A rank that is killed does not end the others.
                                 Beside FILE each rank leaves FILE.N, a line for each step: when it began, how many seconds it took, how
                                 many of them this thread ran, and how often it waited, other than for gloo and in its own pause
"""
import datetime
import os
import resource
import sys
import time

import torch
import torch.distributed as dist

ALONE = 0.02  # seconds a step takes when a rank was killed


def leave():
    # torch 2.15's gloo aborts ("terminate called") in a third of such programs when they end at once, alone too
    dist.barrier()
    time.sleep(2)
    dist.destroy_process_group()
    time.sleep(2)


def train(steps):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    leave()


def waits():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def go_on(file, pause):
    """Steps until the file exists, each with the other ranks. When one was killed, those that live keep step by the clock."""
    model, times, together, stop = torch.nn.Linear(64, 64), [], True, torch.zeros(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    met = (0, time.monotonic())  # the last step that all had, and when
    open(f"{file}.{dist.get_rank()}", "w").close()  # the steps begin
    while not stop.item():
        began, ran, waited = time.monotonic(), time.thread_time(), waits()
        optimizer.zero_grad()
        model(torch.ones(16, 64)).sum().backward()
        stop.fill_(os.path.exists(file))
        waited -= waits()
        try:
            if together:
                dist.all_reduce(stop, dist.ReduceOp.MAX)
                met = (len(times), time.monotonic())
        except RuntimeError:  # a rank was killed: gloo says so at once, or after the timeout
            together = False
        time.sleep(pause if together else max(0, met[1] + (len(times) - met[0]) * ALONE - time.monotonic()))
        waited += waits()
        optimizer.step()
        waited -= waits()
        times.append((began, time.monotonic() - began, time.thread_time() - ran, -waited))
    with open(f"{file}.{dist.get_rank()}", "w") as f:
        f.writelines(f"{began:.6f} {took:.6f} {ran:.6f} {waited}\n" for began, took, ran, waited in times)
    os._exit(0) if not together else leave()


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    if sys.argv[1] == "until":
        go_on(sys.argv[2], dist.get_rank() * float((sys.argv + ["2"])[3]) / 1000)
    else:
        train(int(sys.argv[1]))


if __name__ == "__main__":
    main()
