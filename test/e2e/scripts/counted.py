# SPDX-License-Identifier: Apache-2.0
"""Runs ops for ever on two threads and counts, in a shared file, each one that has ended: what a kill must leave behind.

usage: counted.py FILE [TORCH]      TORCH is the folder of a torch of one file (test/doubles); else torch itself is imported
"""
import ctypes
import mmap
import os
import sys
import threading


def range_of_double(folder):
    """once(label), as torch's own: a range with two ops."""
    double = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))
    there = threading.local()

    def once(label):
        if not hasattr(there, "range"):
            there.room = ctypes.create_string_buffer(4096)
            there.range = ctypes.c_void_p(ctypes.addressof(there.room) + 63 & ~63)
            there.name = ctypes.c_char_p(label.encode())
        double.mini_begin(there.range, there.name, 1)
        double.mini_op(b"aten::ones")
        double.mini_op(b"aten::neg")
        double.mini_end(there.range)

    return once


def range_of_torch():
    import torch

    def once(label):
        with torch.profiler.record_function(label):
            torch.neg(torch.ones(3))

    return once


def work(page, slot, label, once):
    count = ctypes.c_uint64.from_buffer(page, 8 * slot)  # one store: struct.pack_into writes a zero first
    done = 0
    while True:
        once(label)
        done += 1
        count.value = done


def main():
    with open(sys.argv[1], "r+b") as file:
        page = mmap.mmap(file.fileno(), 4096)
    once = range_of_double(sys.argv[2]) if len(sys.argv) > 2 else range_of_torch()
    threading.Thread(target=work, args=(page, 1, "count one", once), daemon=True).start()
    work(page, 0, "count zero", once)


if __name__ == "__main__":
    main()
