# SPDX-License-Identifier: Apache-2.0
"""A program that stands for the reason HOW, which its own frames do not tell. usage: stands_by.py HOW FOLDER"""
import ctypes
import fcntl
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

path = os.path.join(sys.argv[2], "file")
lock = threading.Lock()


def holds():
    with lock:
        time.sleep(600)


def takes(queue):
    with lock:
        queue.put(1)


def forked(queue):
    """A child of a program with threads: the one that held the lock is not in it."""
    threading.Thread(target=holds, daemon=True).start()
    time.sleep(0.3)
    child = multiprocessing.get_context("fork").Process(target=takes, args=(queue,), daemon=True)
    child.start()
    return child


def by_forked_lock():
    forked(None).join()


def by_forked_worker():
    queue = multiprocessing.get_context("fork").Queue()
    forked(queue)
    queue.get()


def takes_twice(queue):
    own = threading.Lock()
    with own:
        time.sleep(0.3)
        own.acquire(timeout=120)  # twice
    queue.put(1)


def by_started(way):
    context = multiprocessing.get_context(way)
    queue = context.Queue()
    context.Process(target=takes_twice, args=(queue,), daemon=True).start()
    queue.get()


def puts_much(queue):
    queue.put(b"x" * (1 << 20))


def by_unread_queue():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=puts_much, args=(queue,), daemon=True)
    child.start()
    child.join()
    queue.get()


def raises():
    raise ValueError("nobody reads it")


def by_lost_exception():
    pool = ThreadPoolExecutor(1)  # kept: its thread ends with it
    pool.submit(raises)
    queue.Queue().get()


def by_busy_thread():
    pool = ThreadPoolExecutor(1)
    pool.submit(time.sleep, 600)
    queue.Queue().get()


def by_killed_worker():
    queue = multiprocessing.get_context("fork").Queue()
    worker = multiprocessing.get_context("fork").Process(target=lambda: os.kill(os.getpid(), signal.SIGKILL), daemon=True)
    worker.start()
    queue.get()


def by_full_pipe():
    subprocess.Popen(["sh", "-c", "while :; do echo 0123456789; done"], stdout=subprocess.PIPE).wait()


def by_file_lock():
    if os.fork() == 0:
        with open(path, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            time.sleep(600)
    time.sleep(0.3)
    with open(path, "w") as wanted:
        fcntl.flock(wanted, fcntl.LOCK_EX)


def by_fifo():
    os.mkfifo(path)
    open(path).read()


def by_thread_at_exit():
    threading.Thread(target=uploads).start()


def uploads():
    time.sleep(600)  # upload


def takes_and_dies(semaphore):
    semaphore.acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def by_semaphore():
    context = multiprocessing.get_context("fork")
    semaphore = context.Semaphore()
    child = context.Process(target=takes_and_dies, args=(semaphore,))
    child.start()
    child.join()
    semaphore.acquire()  # semaphore


def by_pool():
    """The pool replaces a worker that was killed, and its work is lost."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(dies)  # pool


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def by_spin():
    """A loop of C that has given the GIL back."""
    ctypes.CDLL(spinner()).spin()  # spin


def spinner():
    source = os.path.join(sys.argv[2], "spin.c")
    with open(source, "w") as out:
        out.write("void spin(void) { for (volatile int i = 0;; i++) continue; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", source + ".so", source], check=True)
    return source + ".so"


def by_gil():
    """A thread in C that has kept the GIL."""
    threading.Thread(target=holds_gil, daemon=True).start()
    time.sleep(1)  # without


def holds_gil():
    ctypes.PyDLL(None).pause()  # gil


def by_compiler():
    subprocess.run(["sh", "-c", "while :; do :; done"])  # compiler


if __name__ == "__main__":
    print("there", flush=True)
    {"lock": by_forked_lock, "queued": by_forked_worker, "spawn": lambda: by_started("spawn"), "forkserver": lambda: by_started("forkserver"),
     "worker": by_killed_worker, "pipe": by_full_pipe, "flock": by_file_lock, "fifo": by_fifo, "exit": by_thread_at_exit, "semaphore": by_semaphore,
     "unread": by_unread_queue, "lost": by_lost_exception, "busy": by_busy_thread, "pool": by_pool, "spin": by_spin, "gil": by_gil, "compiler": by_compiler}[sys.argv[1]]()
