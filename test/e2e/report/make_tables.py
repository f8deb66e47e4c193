# SPDX-License-Identifier: Apache-2.0
"""make_tables.py OUTDIR PROGRAM - runs a program under torch.profiler, writes its trace and torch's own tables of it.

OUTDIR/tables.json has the text of every table, and the options of `kprof report` that must print the same.
"""
import os
import sys
import threading

import option_sets
import torch
import torch.nn as nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.bn = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6 * 7 * 7, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).flatten(1))


def train(step_end):
    data = TensorDataset(torch.randn(40, 3, 16, 16), torch.randint(0, 5, (40,)))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y in DataLoader(data, batch_size=8, num_workers=1):
        with record_function("forward [x]; 50%"):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step_end()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


@torch.jit.script
def scripted(x, n: int):
    for _ in range(n):
        x = torch.tanh(x) + x.sum()
    return x


def worker(seed):
    x = torch.full((20, 20), float(seed), requires_grad=True)
    with record_function("worker"):
        for _ in range(5):
            Square.apply(x @ x.t()).sum().backward()


def threads(step_end):
    for step in range(3):
        others = [threading.Thread(target=worker, args=(i,)) for i in range(2)]
        for thread in others:
            thread.start()
        scripted(torch.ones(8, 8), 3)
        for thread in others:
            thread.join()
        with record_function("outer"), record_function("outer"):
            try:
                with record_function("fails"):
                    torch.ones(2, 3) @ torch.ones(2, 3)
            except RuntimeError:
                pass
            a, b = torch.ones(3, requires_grad=True), torch.ones(4)
            torch.cat([a, b]).sum().backward()
        torch._foreach_add([torch.ones(2, 2), torch.ones(5)], 1.0)
        step_end()


def tiny(step_end):
    torch.ones(2) + 1
    step_end()


PROGRAMS = {
    # name: function, steps by schedule, arguments of profile()
    "train": (train, True, {}),
    "train_shapes": (train, True, dict(record_shapes=True, with_flops=True)),
    "train_memory": (train, True, dict(record_shapes=True, profile_memory=True)),
    "train_stack": (train, True, dict(record_shapes=True, with_stack=True,
                                      experimental_config=_ExperimentalConfig(verbose=True))),
    "threads": (threads, True, {}),
    "threads_shapes": (threads, False, dict(record_shapes=True)),
    "threads_overloads": (threads, True, dict(record_shapes=True, with_flops=True, profile_memory=True,
                                              experimental_config=_ExperimentalConfig(capture_overload_names=True))),
    "threads_stack": (threads, True, dict(with_stack=True)),
    "tiny": (tiny, False, {}),
    "unfinished": (tiny, False, {}),
}


def main():
    out, name = sys.argv[1:3]
    body, scheduled, arguments = PROGRAMS[name]
    torch.set_num_threads(1)
    torch.manual_seed(0)

    def ready(prof):
        prof.export_chrome_trace(os.path.join(out, "trace.json"))
        option_sets.write(out, option_sets.SOME, prof.key_averages)

    plan = schedule(wait=0, warmup=1, active=2, repeat=1) if scheduled else None
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready, **arguments) as prof:
        if name == "unfinished":
            open_range = torch.ops.profiler._record_function_enter_new("left open", None)
            with record_function("closed"):
                torch.ones(4).relu()
        body(prof.step if scheduled else lambda: None)
    if name == "unfinished":
        del open_range


if __name__ == "__main__":
    main()
