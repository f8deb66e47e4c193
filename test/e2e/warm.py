# SPDX-License-Identifier: Apache-2.0
"""Runs programs that need no library of ours in forks of a process that has imported torch: the import takes longer than most of them."""
import atexit
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile

SERVER = pathlib.Path(__file__).resolve().parent / "oracle" / "forks.py"
LATER = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "LAZY_DYNAMO"}  # what nothing reads while torch is imported
server = None
core_seconds = 0.0  # of all forks: nobody here waits for them


def early(env):
    return {name: value for name, value in env.items() if name not in LATER}


def serves(env, usual):
    """Whether a fork is as good as a fresh process: what is read as Python and torch begin has to be the usual."""
    return early(env) == early(usual)


def begin(python, env):
    global server
    server = subprocess.Popen([python, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=early(env), start_new_session=True)
    atexit.register(end)


def end():
    server.stdin.close()
    server.wait()


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
