# SPDX-License-Identifier: Apache-2.0
"""A step that waits in one way (argv: sleep, lock, event, process, socket, file, compute), each step about as long. compute: a healthy twin."""
import concurrent.futures
import os
import socket
import sys
import tempfile
import threading
import time

import numpy
import torch

from clock import Clock

torch.set_num_threads(1)
SECONDS = 0.02


def sleeping():
    time.sleep(SECONDS)


def make_locked():
    lock, taken = threading.Lock(), threading.Event()

    def hold():
        while True:
            with lock:
                taken.set()
                time.sleep(SECONDS)
            time.sleep(0.001)

    threading.Thread(target=hold, daemon=True).start()

    def locked():
        taken.clear()
        taken.wait()
        with lock:
            pass

    return locked


def make_asking():
    ours, theirs = socket.socketpair()

    def answer():
        while theirs.recv(1):
            time.sleep(SECONDS)
            theirs.send(b"x")

    threading.Thread(target=answer, daemon=True).start()

    def asking():
        ours.send(b"x")
        ours.recv(1)

    return asking


def work(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(1000))


def make_pooled():
    pool = concurrent.futures.ProcessPoolExecutor(1)
    pool.submit(work, 0.01).result()

    def pooled():
        pool.submit(work, SECONDS).result()

    return pooled


def make_reading():
    path = os.path.join(tempfile.mkdtemp(), "numbers.npy")
    numpy.save(path, numpy.zeros(6 << 20))

    def reading():
        numpy.load(path)

    return reading


def nothing():
    pass


def main(way):
    make = {"lock": make_locked, "socket": make_asking, "process": make_pooled, "file": make_reading}.get(way)
    wait = make() if make else {"sleep": sleeping, "compute": nothing}[way]
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for _ in range(60):
        with clock.part("wait"):
            wait()
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()
    sys.stdout.flush()
    os._exit(0) if way in ("lock", "socket") else None


if __name__ == "__main__":
    main(sys.argv[1])
