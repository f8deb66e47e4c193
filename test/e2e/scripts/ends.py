# SPDX-License-Identifier: Apache-2.0
"""A rank of a training over gloo. usage: ends.py STORE HOW [RANK]: rank RANK ends or stands in the way HOW behind step 3; the others go on."""
import atexit
import ctypes
import datetime
import os
import queue
import sys
import threading
import time
import types

import torch
import torch.distributed as dist

LIMITS = {"limit": 5}  # seconds of a collective; of the others 600
STEPS = 100000


def sleeps():
    time.sleep(600)  # python


def waits_in_c():
    ctypes.CDLL(None).pause()  # c


def deadlock():
    first, second = threading.Lock(), threading.Lock()
    with first:
        threading.Thread(target=other_way, args=(first, second), daemon=True).start()
        time.sleep(0.3)
        second.acquire()  # lock


def other_way(first, second):
    with second:
        first.acquire()  # other lock


def waits_for_work():
    queue.Queue().get()  # queue


def eats():
    """Enters the control group that ENDS_CGROUP names, and takes more memory than it may."""
    with open(os.path.join(os.environ["ENDS_CGROUP"], "cgroup.procs"), "w") as procs:
        procs.write(str(os.getpid()))
    kept = []
    while True:
        kept.append(b"x" * (8 << 20))  # cgroup


def other_order(x):
    dist.broadcast(x, src=1)  # order


def other_group(x):
    dist.all_reduce(x, group=groups[0])  # group


def two_more(x):
    """Two calls that the others leave out, of another group of all ranks."""
    works = [dist.all_reduce(x.clone(), group=groups[0], async_op=True) for _ in range(2)]
    works[0].wait()  # more


def fails():
    raise ValueError("a planted one")  # exception


def watches(seconds=5):
    """As NCCL's watchdog in the ranks that wait: a thread of torch's name ends the process as C++ does."""
    ctypes.CDLL(None).prctl(15, b"pt_nccl_watchdg")  # PR_SET_NAME
    while not begun or time.monotonic() - begun[-1] < seconds:
        time.sleep(0.05)
    ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev()


def crashes():
    ctypes.string_at(0)  # segv


def aborts():
    os.abort()  # abort


WAYS = {"python": sleeps, "limit": sleeps, "watchdog": sleeps, "c": waits_in_c, "lock": deadlock, "queue": waits_for_work, "cgroup": eats, "exception": fails, "segv": crashes, "abort": aborts}


def train(how, is_odd, x):
    for step in range(STEPS):
        if step == 3:
            print("there", flush=True)
        if step == 3 and is_odd:
            there()
        if step == 3 and is_odd and how in WAYS:
            WAYS[how]()
        if step == 3 and is_odd and how == "order":
            other_order(x)
        if step == 3 and is_odd and how == "group":
            other_group(x)
        if step == 3 and is_odd and how == "more":
            two_more(x)
        if step == 3 and is_odd and how == "atexit":
            atexit.register(sleeps)
            return
        iterate(x)


def there():
    """Tells the test, by a file beside the store, which process the odd rank is."""
    with open(sys.argv[1] + ".odd", "w") as out:
        out.write(f"{os.getpid()}\n")


def iterate(x):
    x.grad = torch.ones_like(x)
    begun.append(time.monotonic())
    dist.all_reduce(x.grad)  # all
    optimizers[0].step()


def have_no_compiler():
    """torch.optim would import it, which takes as long as torch itself."""
    none = types.ModuleType("torch._dynamo")
    none.disable = lambda function, *_, **__: function
    none.graph_break = lambda *_, **__: None
    sys.modules["torch._dynamo"] = torch._dynamo = none


def main():
    store, how, odd = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["-1"])[0])
    is_odd = int(os.environ["RANK"]) == odd
    torch.set_num_threads(1)
    torch.ones(2).sum()
    dist.init_process_group("gloo", init_method="file://" + store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]), timeout=datetime.timedelta(seconds=LIMITS.get(how, 600)))
    if is_odd and how == "first":
        print("there", flush=True)
        there()
        sleeps()
    have_no_compiler()
    if how in ("group", "more"):
        groups.append(dist.new_group())
    if how == "watchdog" and not is_odd:
        threading.Thread(target=watches, daemon=True).start()
    x = torch.ones(64, requires_grad=False)
    optimizers.append(torch.optim.SGD([torch.nn.Parameter(x)], lr=1e-9))
    train(how, is_odd, x)


optimizers, begun, groups = [], [], []
if __name__ == "__main__":
    main()
