# SPDX-License-Identifier: Apache-2.0
"""Profile functions of the program's own, set in every way there is while libkprof has one there; prints what each of them saw. Any Python from 3.8.

usage: own_profile.py TORCH
"""
import ctypes
import os
import sys
import threading

torch = ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))
step_of_ours = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)
seen = []


def name_of(frame, event, arg):
    return arg.__name__ if event.startswith("c_") else frame.f_code.co_name


def first(frame, event, arg):
    seen.append(("first", event, name_of(frame, event, arg)))


def second(frame, event, arg):
    seen.append(("second", event, name_of(frame, event, arg)))


def plainly():
    sys.setprofile(first)
    len("x")
    sys.setprofile(None)


def inner(value):
    sys.setprofile(first)
    len("x")
    return value


def within_others():
    """C functions that began before the profile function was there, and end under it."""
    list(map(inner, [1]))
    sorted([2, 1], key=lambda value: -value)
    exec("len('x'); abs(-1)")
    sys.setprofile(None)
    exec("inner(exec('inner(abs(-1))'))", globals())
    len("x")
    sys.setprofile(None)


def one_after_another():
    sys.setprofile(first)
    len("x")
    sys.setprofile(second)
    len("x")
    sys.setprofile(None)
    len("x")
    sys.setprofile(first)
    len("x")
    sys.setprofile(None)


def wrongly():
    try:
        sys.setprofile()
    except TypeError:
        pass
    try:
        exec("sys.setprofile(first); int('z')")
    except ValueError:
        len("x")
    sys.setprofile(None)


def in_a_thread():
    def run():
        len("x")
        sys.setprofile(None)

    threading.setprofile(first)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.setprofile(None)


def in_all_threads():
    if not hasattr(threading, "setprofile_all_threads"):
        return
    threading.setprofile_all_threads(first)
    len("x")
    threading.setprofile_all_threads(None)
    sys.setprofile(None)


def when_a_window_ends():
    step_of_ours()
    sys.setprofile(first)
    len("x")
    sys.setprofile(None)


for case in (plainly, within_others, one_after_another, wrongly, in_a_thread, in_all_threads, when_a_window_ends):
    torch.mini_op(b"aten::add")
    step_of_ours()
    case()
    print(case.__name__, [one for one in seen if one[2] not in ("_shutdown", "step_of_ours")], sys.getprofile())
    seen.clear()
