# SPDX-License-Identifier: Apache-2.0
"""Processes that compute with numpy alone: argv is how many."""
import json
import multiprocessing
import sys
import time

import numpy

ROUNDS = 12


def parse(n):
    total = 0
    for value in range(n):
        total = (total * 31 + value) % 65521
    return total


def pairs(n):
    values = numpy.arange(n, dtype=numpy.float64)
    return numpy.abs(values[:, None] - values[None, :]).sum()


def work(_):
    times = {"parse": 0.0, "pairs": 0.0}
    for _ in range(ROUNDS):
        began = time.thread_time()
        parse(100000)
        middle = time.thread_time()
        pairs(1200)
        times["parse"] += middle - began
        times["pairs"] += time.thread_time() - middle
    return times


def main(processes):
    with multiprocessing.Pool(processes) as pool:
        done = pool.map(work, range(processes), chunksize=1)
    whole = sum(sum(times.values()) for times in done)
    print("TRUTH", json.dumps({"pairs_share": 100 * sum(times["pairs"] for times in done) / whole, "peak_bytes": 2 * 8 * 1200 * 1200,
                               "parse_share": 100 * sum(times["parse"] for times in done) / whole}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
