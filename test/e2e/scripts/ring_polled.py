# SPDX-License-Identifier: Apache-2.0
"""Works on the (simulated) GPU, hangs while a thread asks for an event as NCCL's watchdog does, and is killed. usage: ring_polled.py WORK_S HANG_S"""
import os
import signal
import sys
import threading
import time

import torch

work_s, hang_s = map(float, sys.argv[1:3])


def watchdog(event):
    while True:
        event.query()
        time.sleep(0.02)


x = torch.ones(64, 64, device="cuda")
until = time.monotonic() + work_s
steps = 0
while time.monotonic() < until:
    (x * 2).sum()
    torch.cuda.synchronize()
    steps += time.monotonic() > until - 1
print(steps, flush=True)  # of the last second
event = torch.cuda.Event()
event.record()
threading.Thread(target=watchdog, args=(event,), daemon=True).start()
time.sleep(hang_s)
os.kill(os.getpid(), signal.SIGKILL)
