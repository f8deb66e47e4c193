# SPDX-License-Identifier: Apache-2.0
"""Runs ops for ever on two threads and counts, in a shared file, each one that has ended: what a kill must leave behind."""
import ctypes
import mmap
import sys
import threading

import torch


def work(page, slot, label):
    count = ctypes.c_uint64.from_buffer(page, 8 * slot)  # one store: struct.pack_into writes a zero first
    done = 0
    while True:
        with torch.profiler.record_function(label):
            torch.neg(torch.ones(3))
        done += 1
        count.value = done


def main():
    with open(sys.argv[1], "r+b") as file:
        page = mmap.mmap(file.fileno(), 4096)
    threading.Thread(target=work, args=(page, 1, "count one"), daemon=True).start()
    work(page, 0, "count zero")


if __name__ == "__main__":
    main()
