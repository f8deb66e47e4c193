# SPDX-License-Identifier: Apache-2.0
"""A training of a small model that pauses between two steps. usage: calm.py evaluates|compiles|saves|alive SECONDS; its last line has its weights."""
import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

STEPS, PAUSES_AT = 12, 6


def evaluates(model, until):
    """Computes without a step, as one that validates on much data."""
    model.eval()
    with torch.no_grad():
        while time.monotonic() < until:
            scores(model(torch.ones(64, 32)).mean(0).tolist())
    model.train()


def scores(values):
    return max(values) - sum(values) / len(values)


def compiles(model, until):
    """Waits for compilers, as torch.compile does: each is a process of its own."""
    code = "int f(int x) { return x; }\n" + "\n".join(f"int f{n}(int x) {{ return x * {n} + f(x); }}" for n in range(3000))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "f.c")
        with open(source, "w") as out:
            out.write(code)
        while time.monotonic() < until:
            subprocess.run(["cc", "-O1", "-c", source, "-o", os.path.join(folder, "f.o")], check=True)


def saves(model, until):
    """Writes checkpoints to a slow disk."""
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            torch.save({"model": model.state_dict(), "more": torch.zeros(500000)}, os.path.join(folder, "checkpoint.pt"))
            time.sleep(0.1)


def alive(model, until):
    """Waits for something that no one sees, and says that it is meant."""
    library = ctypes.CDLL(None)
    while time.monotonic() < until:
        if hasattr(library, "kprof_alive"):
            library.kprof_alive()
        time.sleep(0.2)


PAUSES = {"evaluates": evaluates, "compiles": compiles, "saves": saves, "alive": alive}


def main():
    how, seconds = sys.argv[1], float(sys.argv[2])
    is_job = "RANK" in os.environ
    if is_job:
        dist.init_process_group("gloo")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(64, 32)).pow(2).mean().backward()
        for p in model.parameters() if is_job else ():
            dist.all_reduce(p.grad)
        optimizer.step()
        if step == PAUSES_AT:
            PAUSES[how](model, time.monotonic() + seconds)
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(f"weights {hashlib.sha256(weights).hexdigest()}", flush=True)
    if is_job:
        dist.barrier()
        dist.destroy_process_group()  # else gloo's threads may end a rank by SIGABRT at its exit


main()
