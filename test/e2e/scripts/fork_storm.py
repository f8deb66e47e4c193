# SPDX-License-Identifier: Apache-2.0
"""Forks while other threads run their first op and step; prints, as JSON, how many children there were, how many hung and how many failed.

usage: fork_storm.py HOW,.. FORKS [SECONDS [AT_ONCE [TORCH]]]   ends early when SECONDS are over, or at the third child that hangs
  HOW: os_fork, thread (the child runs its op in a thread of its own), multiprocessing, dataloader, subprocess, posix_spawn
  AT_ONCE: so many children run at the same time (8); they are forked one after another, then waited for
  TORCH: a folder with the torch of one file (test/doubles), whose op is run then; it has no dataloader
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
import warnings

HOWS, FORKS = sys.argv[1].split(","), int(sys.argv[2])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
AT_ONCE = int(sys.argv[4]) if len(sys.argv) > 4 else 8
TORCH = sys.argv[5] if len(sys.argv) > 5 else None
HANGS, PATIENCE = 3, 30
WORKERS = 2
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)
over = threading.Event()
forking = multiprocessing.get_context("fork")


if TORCH:
    mini_op = ctypes.CDLL(os.path.join(TORCH, "libtorch_cpu.so")).mini_op
else:
    import torch
    import torch.utils.data


def op():
    if TORCH:
        mini_op(b"aten::add")
    else:
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


def forked(work):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid


def in_thread():
    thread = threading.Thread(target=op)
    thread.start()
    thread.join()


def process():
    child = forking.Process(target=op)
    child.start()
    return child


def process_ends(child):
    child.join(PATIENCE)
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return child.exitcode


class Numbers:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return float((torch.ones(2) * i)[0])  # no tensor: to share its memory takes longer than the fork


def loader(count):
    """An epoch with so many workers, each of which makes one batch."""
    try:
        numbers = torch.utils.data.DataLoader(Numbers(count), batch_size=1, num_workers=count, timeout=PATIENCE, collate_fn=list)
        got = [batch[0] for batch in numbers]
    except RuntimeError as error:
        if "timed out" in str(error):
            return [None] * count
        raise
    return [0 if got == list(range(count)) else 1] * count


def command(number):
    with_fork = number % 2 == 0  # else vfork
    return subprocess.Popen(["true"], preexec_fn=(lambda: None) if with_fork else None)


def command_ends(child):
    try:
        return child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None


def each(start, end):
    """A way to have several children: all are started, then all are waited for."""
    return lambda count: [end(child) for child in [start(number) for number in range(count)]]


ways = {"os_fork": each(lambda _: forked(op), ends), "thread": each(lambda _: forked(in_thread), ends),
        "multiprocessing": each(lambda _: process(), process_ends), "dataloader": loader, "subprocess": each(command, command_ends),
        "posix_spawn": each(lambda _: os.posix_spawn("/bin/true", ["true"], os.environ), ends)}


def storm(how):
    statuses = []
    until = time.monotonic() + SECONDS
    while len(statuses) < FORKS and statuses.count(None) < HANGS and time.monotonic() < until:
        statuses += ways[how](min(AT_ONCE, FORKS - len(statuses)))
    hung = statuses.count(None)
    print(json.dumps({"how": how, "forks": len(statuses), "hung": hung, "failed": len(statuses) - hung - statuses.count(0)}), flush=True)


def main():
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than processors
    if not TORCH:
        torch.set_num_threads(1)
    sys.setswitchinterval(0.0005)  # the thread that forks waits less for the others
    op()
    threads = [threading.Thread(target=births) for _ in range(WORKERS)] + [threading.Thread(target=steps)]
    for thread in threads:
        thread.start()
    for how in HOWS:
        storm(how)
    over.set()
    for thread in threads:
        thread.join()


main()
