# SPDX-License-Identifier: Apache-2.0
"""Forks while other threads run their first op and step; prints, as JSON, how many children there were, how many hung and how many failed.

usage: fork_storm.py HOW FORKS [SECONDS]      ends early when SECONDS are over, or at the third child that hangs
  HOW: os_fork, thread (the child runs its op in a thread of its own), multiprocessing, dataloader, subprocess, posix_spawn
A step of the program (kprof_step) comes fifty times a second where the library is there, from a thread beside the one that forks.
"""
import ctypes
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.utils.data

HOW, FORKS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
HANGS, PATIENCE = 3, 30
WORKERS = 2
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)
over = threading.Event()
forking = multiprocessing.get_context("fork")


def op():
    torch.ones(2) + 1


def births():
    """Threads that are born, run their first op, and go."""
    while not over.is_set():
        thread = threading.Thread(target=op)
        thread.start()
        thread.join()


def steps():
    while not over.is_set():
        op()
        step_of_ours()
        time.sleep(0.02)


def ends(pid):
    """The status of a child; None when it hung, and is killed."""
    fd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    in_time = poll.poll(PATIENCE * 1000)
    os.close(fd)
    if not in_time:
        print("hangs:", [open(f"/proc/{pid}/task/{task}/{what}").read().strip() for task in os.listdir(f"/proc/{pid}/task")
                         for what in ("comm", "syscall")], file=sys.stderr, flush=True)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return os.waitstatus_to_exitcode(status) if in_time else None


def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return ends(pid)


def in_thread():
    thread = threading.Thread(target=op)
    thread.start()
    thread.join()


def process():
    child = forking.Process(target=op)
    child.start()
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return child.exitcode


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.ones(2) * i


def loader():
    try:
        got = sum(len(batch) for batch in torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=1, timeout=PATIENCE))
    except RuntimeError as error:
        if "timed out" in str(error):
            return None
        raise
    return 0 if got == 4 else 1


def command():
    with_fork = command.count % 2 == 0  # else vfork
    command.count += 1
    try:
        return subprocess.run(["true"], preexec_fn=(lambda: None) if with_fork else None, timeout=PATIENCE).returncode
    except subprocess.TimeoutExpired:
        return None


command.count = 0
ways = {"os_fork": lambda: in_child(op), "thread": lambda: in_child(in_thread), "multiprocessing": process, "dataloader": loader, "subprocess": command,
        "posix_spawn": lambda: ends(os.posix_spawn("/bin/true", ["true"], os.environ))}


def main():
    torch.set_num_threads(1)
    op()
    threads = [threading.Thread(target=births) for _ in range(WORKERS)] + [threading.Thread(target=steps)]
    for thread in threads:
        thread.start()
    count = hung = failed = 0
    until = time.monotonic() + SECONDS
    while count < FORKS and hung < HANGS and time.monotonic() < until:
        status = ways[HOW]()
        count += 1
        hung += status is None
        failed += status not in (None, 0)
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"forks": count, "hung": hung, "failed": failed}))


main()
