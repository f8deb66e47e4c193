# SPDX-License-Identifier: Apache-2.0
"""Runs programs under libkprof and under the oracle, and says what came out."""
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import warm

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("KPROF_BUILD", ROOT / "build"))
LIBRARY = BUILD / "libkprof.so"
KPROF = BUILD / "kprof"
ARCH = os.uname().machine
PYTHON = os.environ.get("KPROF_PYTHON", sys.executable)
SCRIPTS = HERE / "scripts"
LONG = 1800  # seconds after which something hangs; a busy machine may well take ten times as long as a free one
SCHEDULE = "wait=1,warmup=1,active=3,repeat=1"
# For `ours` of a program that compiles nothing: the compiler comes late (startup/lazy_dynamo.py), which torch.profiler's process has. test_everything.py
# has programs with all of torch, and so has what is compared call by call.
LATE = {"LAZY_DYNAMO": 1}
WROTE = re.compile(r"^kprof: wrote (\S+) \((?:(\d+) steps?[^,]*, )?(\d+) ops?, (?:\d+ on GPUs, )?(?:\d+ allocations?, )?(?:at least )?(\d+) dropped.*\)(?:; next: kprof .*)?$", re.M)


def clean_environment(**more):
    """The caller's environment without any profiler setting, one compute thread, no network, no proxy between programs of this machine.
    Python imports torch without collections and without Triton (startup/sitecustomize.py)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF", "LD_PRELOAD", "PT_PROFILER"))}
    env.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", HF_HUB_OFFLINE="1", PYTHONHASHSEED="0", TOKENIZERS_PARALLELISM="false",
               PYTHONPATH=str(HERE / "startup"))
    env.update(dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"))
    env.update({k: str(v) for k, v in more.items()})
    return env


USUAL = clean_environment()


class Run:
    """A finished program: code, out, err, and the folder it left its files in. With warm_start a fork that has torch runs it where that is as good."""

    def __init__(self, command, folder, env, timeout, cwd=None, kill_after=None, warm_start=False):
        self.folder = pathlib.Path(folder)
        self.command = [str(part) for part in command]
        limit = timeout if kill_after is None else kill_after
        if warm_start and self.command[0] == PYTHON and warm.serves(env, USUAL):
            self.pid, self.code, self.out, self.err, late = warm.run(self.command, env, limit, cwd)
        else:
            late = self.run(env, limit, cwd)
        if late and kill_after is None:
            raise AssertionError(f"{self.command} ran past {timeout} s\n{self.err[-2000:]}")

    def run(self, env, limit, cwd):
        """Runs it; tells whether it was killed as it took too long."""
        with subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=env, cwd=cwd, start_new_session=True, errors="replace") as process:
            self.pid, late = process.pid, False
            try:
                self.out, self.err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
                self.out, self.err = process.communicate()
            self.code = process.returncode
        return late

    @property
    def traces(self):
        return sorted(self.folder.glob("*.pt.trace.json*"))

    @property
    def spools(self):
        return sorted(self.folder.glob("*.kprof"))

    @property
    def trace(self):
        """The one trace; says everything when there is not exactly one."""
        assert len(self.traces) == 1, f"{len(self.traces)} traces in {list(self.folder.glob('*'))}\n{self.explain()}"
        return self.traces[0]

    @property
    def said(self):
        """The library's own lines."""
        return [line for line in self.err.splitlines() if line.startswith("kprof:")]

    @property
    def closing(self):
        """(file, steps, ops, dropped) of the last closing line."""
        found = WROTE.findall(self.err)
        assert found, f"no closing line\n{self.explain()}"
        path, *numbers = found[-1]
        return (path, *(int(number or 0) for number in numbers))

    def explain(self):
        return f"{' '.join(self.command)} -> {self.code}\nstdout: {self.out[-1500:]}\nstderr: {self.err[-3000:]}"

    def ok(self):
        assert self.code == 0, self.explain()
        return self


def needs(package):
    """Skips the test where it is missing. To import it here would take as long as the program that does."""
    if not importlib.util.find_spec(package):
        pytest.skip(f"no {package} here")


def script_command(script, *args, python=PYTHON):
    found = [folder / script for folder in (SCRIPTS, ROOT / "examples") if (folder / script).exists()]
    return [python, found[0], *args]


def run_plain(script, folder, *args, python=PYTHON, timeout=LONG, warm_start=False, **env):
    """The program alone."""
    return Run(script_command(script, *args, python=python), folder, clean_environment(**env), timeout, warm_start=warm_start)


def run_kprof(script, folder, *args, schedule=SCHEDULE, shapes=True, python=PYTHON, timeout=LONG, command=None, kill_after=None,
              cwd=None, **env):
    """The program under libkprof; KPROF_* variables as keywords, schedule=None records everything."""
    settings = {"LD_PRELOAD": LIBRARY, "KPROF_DIR": folder}
    if schedule:
        settings["KPROF_SCHEDULE"] = schedule
    if shapes:
        settings["KPROF_RECORD_SHAPES"] = 1
    settings.update(env)
    return Run(command or script_command(script, *args, python=python), folder, clean_environment(**settings), timeout,
               cwd=cwd, kill_after=kill_after)


def run_by_kprof(script, folder, *args, **options):
    """The same by `kprof run`, which makes what lies beside a trace (KPROF_EXPORT)."""
    command = [KPROF, "run", "--dir", folder, "--", *script_command(script, *args)]
    return run_kprof(script, folder, command=command, LD_PRELOAD="", **options)


class Oracle(Run):
    """A program that ran under torch.profiler: its trace, its tables."""

    def __init__(self, script, folder, *args, schedule="1,1,3,1", shapes=True, memory=False, stack=False, flops=False, modules=False,
                 tables=None, nesting=False, frames=False, execution_trace=None, gc=False, python=PYTHON, timeout=LONG, **env):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "kineto.pt.trace.json"
        command = [python, HERE / "oracle" / "kineto.py", "--out", self.path]
        command += ["--schedule", schedule] if schedule else []
        command += ["--shapes"] if shapes else []
        command += ["--memory"] if memory else []
        command += ["--stack"] if stack else []
        command += ["--flops"] if flops else []
        command += ["--modules"] if modules else []
        if nesting:
            command += ["--nesting", folder / "nesting.json"]
        if frames:
            command += ["--frames", folder / "frames.json"]
        command += ["--gc"] if gc else []
        if execution_trace:
            command += ["--execution-trace", execution_trace]
        if tables is not None:
            (folder / "wanted.json").write_text(json.dumps(tables))
            command += ["--tables", folder / "wanted.json", folder / "tables.json"]
        super().__init__([*command, *script_command(script, *args)[1:]], folder, clean_environment(**env), timeout, warm_start=True)
        self.ok()
        self.nesting = {(parent, name): n for parent, name, n in json.loads((folder / "nesting.json").read_text())} if nesting else None
        self.frames = [(name, tuple(map(tuple, chain)), n) for name, chain, n in json.loads((folder / "frames.json").read_text())] if frames else None
        self.tables = json.loads((folder / "tables.json").read_text()) if tables is not None else None

    @property
    def trace(self):
        return self.path


def cli(*args, timeout=LONG, **env):
    """The kprof command; returns the finished process, never raises for its exit code."""
    return subprocess.run([str(KPROF), *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          env=clean_environment(**env), errors="replace")
