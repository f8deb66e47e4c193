# SPDX-License-Identifier: Apache-2.0
"""Switches an activity off in the step that warms up, and on again in the window. usage: toggled_warming.py cpu|cuda"""
import ctypes
import sys

import torch


def main():
    kprof, activity = ctypes.CDLL(None), sys.argv[1].encode()
    x = torch.ones(64, 64, device="cuda" if torch.cuda.is_available() else "cpu")
    for step, op in enumerate([x.sigmoid, x.cos, x.erf, x.erf]):
        if step == 0:
            assert kprof.kprof_toggle(activity, 0) == 0
        elif step == 2:
            assert kprof.kprof_toggle(activity, 1) == 0
        op()
        if x.is_cuda:
            torch.cuda.synchronize()
        kprof.kprof_step()


if __name__ == "__main__":
    main()
