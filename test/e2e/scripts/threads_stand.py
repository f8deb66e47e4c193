# SPDX-License-Identifier: Apache-2.0
"""Threads that stand, each in another way. usage: threads_stand.py [torch]: with torch imported, and an op"""
import ctypes
import faulthandler
import queue
import signal
import sys
import threading
import time


def waits():
    queue.Queue().get()


def locked(lock):
    lock.acquire()


def in_c():
    ctypes.CDLL(None).pause()


class Ünder:
    def träge(self):
        time.sleep(1000)


def outer(n):
    if n:
        return outer(n - 1)
    print("ready", flush=True)
    time.sleep(
        1000)


def main():
    faulthandler.register(signal.SIGUSR1)
    lock = threading.Lock()
    lock.acquire()
    for target in (waits, lambda: locked(lock), in_c, Ünder().träge):
        threading.Thread(target=target, daemon=True).start()
    if sys.argv[1:]:
        import torch
        torch.ones(3).sum()
    outer(5)


main()
