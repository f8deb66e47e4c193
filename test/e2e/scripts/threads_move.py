# SPDX-License-Identifier: Apache-2.0
"""Threads come and go, and call functions that are made and freed, until standard input ends."""
import random
import sys
import threading


def deep(n):
    return sum(range(50)) if n <= 0 else deep(n - 1)


def short():
    lines = "\n" * random.randrange(50)
    exec(compile(f"def made(n):\n{lines}    return sum(range(n))\nfor _ in range(20): made(100)", "made", "exec"), {})
    deep(random.randrange(300))


def spawn():
    while not over.is_set():
        some = [threading.Thread(target=short) for _ in range(8)]
        for one in some:
            one.start()
        for one in some:
            one.join()


over = threading.Event()
spawners = [threading.Thread(target=spawn) for _ in range(4)]
for one in spawners:
    one.start()
sys.stdin.read()
over.set()
for one in spawners:
    one.join()
print("whole")
