# SPDX-License-Identifier: Apache-2.0
"""Calls of every kind around a torch of one file: generators, exceptions, coroutines, threads before and after. Any Python from 3.8.

usage: python_calls.py TORCH plain|own_before|own_within|own_removed|cprofile|cprofile_around
       python_calls.py TORCH oracle     prints what sys.setprofile itself sees in steps 2 to 4, as JSON
"""
import collections
import cProfile
import ctypes
import json
import os
import sys
import threading

torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)
HOW = sys.argv[2]
seen = collections.Counter()
own = []
go, gone = threading.Event(), threading.Event()


def op(name):
    torch.mini_op(name)


def count(frame, event, arg):
    """What libkprof shall see: the calls that begin within the window, on every thread."""
    if event == "call":
        seen[f"{os.path.basename(frame.f_code.co_filename)}({frame.f_lineno}): {frame.f_code.co_name}"] += 1
    elif event == "c_call" and frame.f_code.co_filename == __file__:
        seen[f"C {arg.__name__}"] += 1


def mine(frame, event, arg):
    if frame.f_code.co_name == "work":
        own.append(event)


def generate(n):
    for i in range(n):
        yield i


def throw():
    raise ValueError("no")


async def coroutine(n):
    return n + 1


class Callable:
    def __call__(self):
        return len("abc")


def recurse(n):
    return recurse(n - 1) if n else 0


def early():
    """A thread that is there when the window begins, and is called into while it lasts."""
    while not gone.is_set():
        go.wait()
        go.clear()
        op(b"aten::early")
        done.set()


def late():
    op(b"aten::late")


done = threading.Event()


def work():
    for i in generate(3):
        op(b"aten::add")
    for fails in (throw, lambda: int("z")):
        try:
            fails()
        except ValueError:
            pass
    try:
        coroutine(1).send(None)
    except StopIteration:
        pass
    Callable()()
    recurse(20)
    sorted([2, 1], key=lambda v: -v)
    started = threading.Thread(target=late)
    started.start()
    started.join()
    done.clear()
    go.set()
    done.wait()


def step(number):
    if HOW == "oracle":
        sys.setprofile(count if 1 <= number < 4 else None)
        threading.setprofile(count if 1 <= number < 4 else None)
    else:
        step_of_ours()


def main():
    helper = threading.Thread(target=early)
    helper.start()
    profiler = cProfile.Profile()
    if HOW == "own_before":
        sys.setprofile(mine)
    if HOW == "cprofile_around":
        profiler.enable()
    for number in range(6):
        if HOW in ("own_within", "own_removed") and number == 3:
            sys.setprofile(mine)
        if HOW == "cprofile" and number == 3:
            profiler.enable()
        work()
        if HOW.startswith("cprofile") and number == 3:
            profiler.disable()
        if HOW == "own_removed" and number == 3:
            sys.setprofile(None)
        step(number)
    sys.setprofile(None)
    gone.set()
    go.set()
    helper.join()
    if HOW == "oracle":
        print(json.dumps(seen))
    if HOW.startswith("cprofile"):
        print("profiled", sorted({entry.code.co_name for entry in profiler.getstats() if getattr(entry.code, "co_filename", "") == __file__}))
    if HOW.startswith("own"):
        print("own calls", own.count("call"))
    print("done")


main()
