# SPDX-License-Identifier: Apache-2.0
"""Has imported torch, and runs each program that it is told of in a fork of itself (test/e2e/warm.py asks).

On stdin a line of JSON for each: {"argv", "cwd", "env", "out", "err"}. On stdout the process id, and as it ends a line with its
code as subprocess has it, and its seconds of a core. The program's module is __main__, its folder leads sys.path, as ever.

forks.py SOCKET does so for any number of callers, each of which gets a fork of its own behind its connection, until the socket's
file is gone, or nobody has called for half an hour.
"""
import json
import os
import runpy
import signal
import socket
import sys
import time

given = dict(os.environ)
import torch._dynamo  # noqa: E402,F401  (each optimizer asks for it)

for added in os.environ.keys() - given.keys():  # TORCHINDUCTOR_CACHE_DIR, which a program may have from its caller
    del os.environ[added]


def await_callers(path):
    """Returns in a fork for each caller, whose connection is stdin and stdout; its number is the first line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.settimeout(5)
    called = time.monotonic()
    while os.path.exists(path) and time.monotonic() - called < 1800:
        try:
            connection = listener.accept()[0]
        except TimeoutError:
            continue
        called = time.monotonic()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            connection.setblocking(True)
            os.dup2(connection.fileno(), 0)
            os.dup2(connection.fileno(), 1)
            connection.close()
            listener.close()
            os.write(1, b"%d\n" % os.getpid())
            return
        connection.close()
    os._exit(0)


def become(ask):
    os.setsid()
    os.chdir(ask["cwd"])
    os.environ.update(ask["env"])
    for number, path in (1, ask["out"]), (2, ask["err"]):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ask["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))


def serve():
    """Returns in a child that has a program to run, and in this process when nobody asks any more."""
    asks, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    for line in iter(asks.readline, b""):
        pid = os.fork()
        if pid == 0:
            asks.close()
            answers.close()
            become(json.loads(line))
            return True
        answers.write(b"%d\n" % pid)
        _, status, used = os.wait4(pid, 0)
        answers.write(b"%d %f\n" % (os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime))
    return False


assert len(os.listdir("/proc/self/task")) == 1, "a fork has one thread: nothing that torch starts may run here"
signal.signal(signal.SIGINT, signal.SIG_IGN)
if len(sys.argv) > 1:
    await_callers(sys.argv[1])
if serve():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runpy.run_path(sys.argv[0], run_name="__main__")
