# SPDX-License-Identifier: Apache-2.0
"""Calls that end in rough ways, around a torch of one file; a trace function of the program's own in the last window. Any Python from 3.8.

usage: python_rough.py TORCH plain     prints what the program's trace function saw
       python_rough.py TORCH oracle    the same, and before it what sys.setprofile itself sees in steps 2 to 4, as JSON
"""
import asyncio
import collections
import ctypes
import json
import os
import sys
import threading

torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)
HOW = sys.argv[2]
seen = collections.Counter()
traced = collections.Counter()
inner, ended = threading.Event(), threading.Event()


def count(frame, event, arg):
    if event == "call":
        seen[f"{os.path.basename(frame.f_code.co_filename)}({frame.f_lineno}): {frame.f_code.co_name}"] += 1


def trace(frame, event, arg):
    """As a debugger or coverage does it."""
    if frame.f_code.co_filename != __file__:
        return None
    traced[event, frame.f_code.co_name] += 1
    return trace


def deep(n):
    return deep(n - 1) + 1 if n else 0


def deep_and_out(n):
    if not n:
        raise KeyError("from the depth")
    deep_and_out(n - 1)


def left_open():
    try:
        yield 1
        yield 2
    finally:
        at_close()


def at_close():
    pass


def around():
    yield from left_open()


def thrown_into():
    while True:
        try:
            yield
        except ValueError:
            caught()


def caught():
    pass


def key(value):
    raise TypeError(value)


class Left:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return True

    def __del__(self):
        gone()


def gone():
    pass


async def numbers():
    for i in range(3):
        yield i
        await asyncio.sleep(0)


async def consume():
    return [i async for i in numbers()]


async def both():
    return await asyncio.gather(consume(), consume())


def short():
    """A thread that begins and ends within the window."""
    torch.mini_op(b"aten::short")
    deep(10)


def crossing():
    """A thread that a window finds inside a call and leaves inside it."""
    while not ended.is_set():
        inner.wait(0.002)


def rough():
    deep(900)
    try:
        deep_and_out(900)
    except KeyError:
        pass
    generator = around()
    next(generator)
    generator.close()
    generator = thrown_into()
    next(generator)
    generator.throw(ValueError)
    generator.close()
    try:
        sorted([2, 1], key=key)
    except TypeError:
        pass
    with Left():
        raise KeyError
    torch.mini_op(b"aten::add")
    asyncio.new_event_loop().run_until_complete(both())
    threads = [threading.Thread(target=short) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def step(number):
    if HOW == "oracle":
        sys.setprofile(count if 1 <= number < 4 else None)
        threading.setprofile(count if 1 <= number < 4 else None)
    else:
        step_of_ours()


def main():
    other = threading.Thread(target=crossing)
    other.start()
    for number in range(6):
        if number == 4:
            sys.settrace(trace)
        rough()
        if number == 4:
            sys.settrace(None)
        step(number)
    ended.set()
    inner.set()
    other.join()
    if HOW == "oracle":
        print(json.dumps(seen))
    print(sorted(traced.items()))


main()
