# SPDX-License-Identifier: Apache-2.0
"""Calls the walk over frames as torch's Optimizer.step does, from a file of that name; no torch needed, Python 3.8 or newer.

usage: optimizer.py LIBRARY      exits 0 when every object was told from every other; prints what was found
"""
import ctypes
import sys
import threading

library = ctypes.CDLL(sys.argv[1])  # releases the GIL around each call, as torch does
library.kp_caller_optimizer.restype = ctypes.c_uint64
library.kp_caller_is_gone.restype = ctypes.c_bool
library.kp_caller_is_gone.argtypes = [ctypes.c_uint64]


class Range:
    """record_function: the one that stepped is asked for when it ends."""

    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.leave()

    def leave(self):
        self.seen.append(library.kp_caller_optimizer())


def step(self, seen):
    return self


def make_wrapper(function):
    def wrapper(*args, **kwargs):
        self, *_ = args
        with Range(args[1]):
            return function(*args, **kwargs)

    return wrapper


class Adam:
    step = make_wrapper(step)


class Slots:
    __slots__ = ()
    step = make_wrapper(step)


def identity(optimizer):
    seen = []
    optimizer.step(seen)
    return seen[0]


def in_generator(optimizer):
    yield identity(optimizer)


def other_thread(optimizer):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(identity(optimizer)))
    thread.start()
    thread.join()
    return seen[0]


def main():
    library.kp_caller_find()
    assert library.kp_caller_optimizer() == 0, "no wrapper here"
    if identity(Adam()) == 0:
        print("not found")
        return
    first, second, third = Adam(), Adam(), Slots()
    found = [identity(optimizer) for optimizer in (first, second, third)]
    assert len(set(found)) == 3 and all(one >> 63 for one in found), found
    assert [one & (1 << 48) - 1 for one in found] == [id(first), id(second), id(third)], found
    for _ in range(3):
        assert [identity(optimizer) for optimizer in (first, second, third)] == found
    assert other_thread(first) == found[0] and list(in_generator(second)) == [found[1]]
    assert list(map(identity, [first])) == [found[0]], "by way of C"
    assert not any(map(library.kp_caller_is_gone, found))
    del first
    assert [library.kp_caller_is_gone(one) for one in found] == [True, False, False]
    del third
    assert library.kp_caller_is_gone(found[2])
    print("found")


main()
