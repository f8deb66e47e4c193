# SPDX-License-Identifier: Apache-2.0
"""Allocates in the step before the window, and in the window, from functions of their own. Needs no torch."""
import ctypes

step = getattr(ctypes.CDLL(None), "kprof_step", lambda: 0)


def only_in_the_wait():
    return bytearray(100000)


def only_in_the_warm_up():
    return bytearray(100000)


def only_in_the_window():
    return bytearray(100000)


step()
for of_step in (only_in_the_wait, only_in_the_warm_up, only_in_the_window, len):
    kept = of_step() if of_step is not len else None
    step()
