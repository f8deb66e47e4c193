# SPDX-License-Identifier: Apache-2.0
"""Runs programs that need no library of ours in forks of a process that has imported torch: the import takes longer than most of them.

Where KPROF_TEST_FORKS names a folder (scripts/test does), the process is that of all files of tests.
"""
import atexit
import fcntl
import hashlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import time

SERVER = pathlib.Path(__file__).resolve().parent / "oracle" / "forks.py"
LATER = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "LAZY_DYNAMO"}  # what nothing reads while torch is imported
server = None
core_seconds = 0.0  # of all forks: nobody here waits for them


def early(env):
    return {name: value for name, value in env.items() if name not in LATER}


def serves(env, usual):
    """Whether a fork is as good as a fresh process: what is read as Python and torch begin has to be the usual."""
    return early(env) == early(usual)


class Caller:
    """The connection to a process that other files of tests use, too."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.stdin, self.stdout = (self.connection.makefile(mode, buffering=0) for mode in ("wb", "rb"))
        self.pid = int(self.stdout.readline())

    def poll(self):
        return None

    def end(self):
        for part in (self.stdin, self.stdout, self.connection):
            part.close()


class Own(subprocess.Popen):
    def __init__(self, python, env):
        super().__init__([python, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env, start_new_session=True)

    def end(self):
        self.stdin.close()
        self.wait()


def call(folder, python, env):
    """The first that calls starts the process, while the others wait."""
    path = os.path.join(folder, hashlib.sha256(repr((python, sorted(env.items()))).encode()).hexdigest()[:8])
    os.makedirs(folder, exist_ok=True)
    with open(f"{path}.lock", "w") as lock, open(f"{path}.log", "w") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = None
        while True:
            try:
                return Caller(path)
            except (FileNotFoundError, ConnectionRefusedError):
                if started is None:
                    pathlib.Path(path).unlink(missing_ok=True)
                    started = subprocess.Popen([python, SERVER, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=env, start_new_session=True)
                assert started.poll() is None, pathlib.Path(f"{path}.log").read_text()
                time.sleep(0.05)


def begin(python, env):
    global server
    shared = os.environ.get("KPROF_TEST_FORKS", "")
    fits = shared and len(os.fsencode(shared)) < 90  # a longer one is no address of a socket
    server = call(shared, python, early(env)) if fits else Own(python, early(env))
    atexit.register(server.end)


def ended(timeout):
    return bool(select.select([server.stdout], [], [], timeout)[0])


def answer(timeout):
    said = server.stdout.readline() if ended(timeout) else b""
    assert said, "the process that forks says nothing"
    return said.split()


def run(command, env, timeout, cwd=None):
    """(pid, code, out, err, whether it was killed) of [python, script, arguments...]; what runs past the timeout is killed."""
    global core_seconds
    if server is None or server.poll() is not None:
        begin(command[0], env)
    with tempfile.TemporaryDirectory() as folder:
        out, err = (pathlib.Path(folder) / name for name in ("out", "err"))
        ask = {"argv": command[1:], "cwd": str(cwd or os.getcwd()), "env": {name: env[name] for name in LATER & env.keys()}, "out": str(out), "err": str(err)}
        server.stdin.write(json.dumps(ask).encode() + b"\n")
        pid = int(answer(60)[0])
        late = not ended(timeout)
        if late:
            os.killpg(pid, signal.SIGKILL)
        code, used = answer(60)
        core_seconds += float(used)
        return pid, int(code), out.read_text(errors="replace"), err.read_text(errors="replace"), late
