# SPDX-License-Identifier: Apache-2.0
"""Trains a layer for ten steps. The program has an execution trace of its own (the file in argv) from its step 5 to 7."""
import sys

import torch
from torch.profiler import ExecutionTraceObserver


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    observer = ExecutionTraceObserver()
    for step in range(10):
        if step == 5:
            observer.register_callback(sys.argv[1])
            observer.start()
        if step == 7:
            observer.stop()
            observer.unregister_callback()
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
