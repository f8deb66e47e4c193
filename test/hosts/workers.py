# SPDX-License-Identifier: Apache-2.0
"""workers.py fork|spawn|forkserver - workers of multiprocessing that do nothing but allocate."""
import multiprocessing
import sys


def work(n):
    return sum(len(bytes(1000)) for _ in range(n))


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work, args=(100,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
