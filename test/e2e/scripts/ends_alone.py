# SPDX-License-Identifier: Apache-2.0
"""Ops and five steps of the torch of one file, then an end of the kind HOW. usage: ends_alone.py TORCH HOW [PAUSE]"""
import atexit
import ctypes
import faulthandler
import functools
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

libc, kprof, torch = ctypes.CDLL(None), ctypes.CDLL(None), ctypes.CDLL(os.path.join(sys.argv[1], "libtorch_cpu.so"))


def steps(count):
    for _ in range(count):
        torch.mini_op(b"aten::end")
        assert kprof.kprof_step() == 0


def raises(error):
    raise error


def refused(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        return


def by_c(function, path):
    """exec by a function that Python does not call."""
    ctypes.CDLL(os.path.join(sys.argv[1], "libexecs.so")).exec_by(function.encode(), path)


def throws(how):
    """An exception of C++ that nothing catches, and its like."""
    ctypes.CDLL(os.path.join(sys.argv[1], "libthrows.so")).throw_by(how.encode())


def itself():
    """The same program once more, which ends in the way that stands behind the pause."""
    os.execv(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], sys.argv[3].split(",")[1], sys.argv[3].split(",")[0]])


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


def by(number, handler=signal.SIG_DFL):
    signal.signal(number, handler)
    os.kill(os.getpid(), number)
    time.sleep(600)


def writes_into_nothing(handler):
    signal.signal(signal.SIGPIPE, handler)
    read, write = os.pipe()
    os.close(read)
    os.write(write, b"x")


def in_child():
    """A child of a child goes on, and is killed."""
    if os.fork() == 0:
        if os.fork() == 0:
            steps(1)
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    os.wait()


def lost_a_worker(number):
    """As DataLoader does: it finds that a worker is gone."""
    worker = os.fork()
    if worker == 0:
        os.kill(os.getpid(), number)
        time.sleep(600)
    os.waitpid(worker, 0)
    raise ValueError("a planted one")


def aborts():
    os.abort()


def reads_a_cut_file():
    with tempfile.TemporaryFile() as file:
        file.truncate(8192)
        mapped = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        mapped[5000]


def takes_time():
    resource.setrlimit(resource.RLIMIT_CPU, (1, resource.RLIM_INFINITY))
    while True:
        pass


WAYS = {
    "plain": lambda: None,
    "text": lambda: sys.exit("the data is not there"),
    "three": lambda: sys.exit(3),
    "zero": lambda: sys.exit(0),
    "c": lambda: libc.exit(4),
    "_exit": lambda: in_thread(os._exit, 5),
    "_Exit": lambda: by_c("_Exit", b""),
    "thrown": lambda: ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev(),
    "itself": itself,
    "exec": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 6"]),
    "exec_refused": lambda: refused(os.execv, "/nothing/there", ["x"]),
    "raises": lambda: raises(ValueError("a planted one")),
    "worker": lambda: lost_a_worker(signal.SIGKILL),
    "worker_fault": lambda: lost_a_worker(signal.SIGSEGV),
    "worker_asked": lambda: lost_a_worker(signal.SIGTERM),
    "thread": lambda: in_thread(sys.exit, 7),
    "raises_in_thread": lambda: in_thread(raises, KeyError("k")),
    "atexit": lambda: atexit.register(raises, KeyError("k")),
    "child": lambda: subprocess.run(["sh", "-c", "kill -9 $$"], check=False),
    "grandchild": in_child,
    "interrupt": lambda: by(signal.SIGINT, signal.default_int_handler),
    "term": lambda: by(signal.SIGTERM),
    "handled": lambda: by(signal.SIGTERM, lambda *_: sys.exit(143)),
    "saved": lambda: by(signal.SIGTERM, lambda *_: sys.exit(0)),
    "pipe": lambda: writes_into_nothing(signal.SIG_DFL),
    "quit": lambda: by(signal.SIGQUIT),
    "alarm": lambda: by(signal.SIGALRM),
    "usr1": lambda: by(signal.SIGUSR1),
    "cpu": takes_time,
    "abort": lambda: in_thread(os.abort),
    "abort_in_main": aborts,
    "assert": lambda: by_c("assert", b""),
    "abort_by_name": lambda: in_thread(libc.abort),
    "fault": lambda: in_thread(ctypes.string_at, 0),
    "fault_in_main": lambda: ctypes.string_at(0),
    "cut_file": reads_a_cut_file,
    "divide": lambda: by_c("divide", b""),
    "illegal": lambda: by_c("illegal", b""),
    "sent": lambda: (subprocess.Popen(["sh", "-c", f"sleep 1; kill -SEGV {os.getpid()}"]), time.sleep(600)),
    "raised": lambda: signal.raise_signal(signal.SIGFPE),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kept": lambda: by(signal.SIGABRT, lambda *_: sys.exit(9)),
    "fault_told": lambda: (faulthandler.enable(), ctypes.string_at(0)),
    "kill_at_exit": lambda: atexit.register(os.kill, os.getpid(), signal.SIGKILL),
}
for function in "execl", "execlp", "execle", "execv", "execvp", "execvpe", "fexecve", "execveat":
    WAYS[function] = functools.partial(by_c, function, b"/bin/sh")
    WAYS[function + "_refused"] = functools.partial(by_c, function, b"/nothing/there")
for how in "runtime", "index", "alloc", "number", "both", "again", "thread", "joinable", "smash":
    WAYS["throw_" + how] = functools.partial(throws, how)
steps(5)
time.sleep(float((sys.argv[3:] or ["0"])[0].split(",")[0]))
WAYS[sys.argv[2]]()
steps(2)
