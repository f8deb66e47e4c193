# SPDX-License-Identifier: Apache-2.0
"""Runs the points of gpu-check, each in its time, and writes the report after every one of them.

Points that measure time run first, one after the other; the rest run in as many lanes as --lanes says.
"""
import concurrent.futures
import copy
import gzip
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
POINTS = []
BUDGET = 540  # seconds that the times of the points are meant for; a larger budget makes each of them longer
VERDICTS = ("good", "BAD", "seen", "not run")


def point(name, question, seconds=60, alone=False):
    """alone: it measures time, so nothing else may run beside it."""
    def keep(function):
        POINTS.append((name, question, seconds, function, alone))
        return function

    return keep


class NoTime(Exception):
    pass


class Done:
    """A finished command."""

    def __init__(self, command, code, out, err, seconds):
        self.command, self.code, self.out, self.err, self.seconds = command, code, out, err, seconds

    def says(self, name):
        """The values of the lines "name: value"."""
        return [line.split(": ", 1)[1] for line in self.out.splitlines() if line.startswith(name + ": ")]


class Machine:
    """What runs where: python, build, the simulated GPU's variables when there is no real one."""

    def __init__(self, options):
        self.simulated, self.python = options.simulated, options.python
        self.build, self.folder = pathlib.Path(options.build).resolve(), pathlib.Path(options.work).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.library, self.kprof = self.build / "libkprof.so", self.build / "kprof"
        self.slack = max(1, options.budget / BUDGET)
        self.deadline = self.limit = time.monotonic() + options.budget
        self.variables = self.simulated_variables() if self.simulated else {}
        self.cupti = self.find_cupti()
        self.kept = pathlib.Path(options.keep).resolve() if options.keep else None
        self.commands, self.seen = [], []

    def simulated_variables(self):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        env["SIMGPU_BUILD"] = str(self.build / "simgpu")
        said = subprocess.run([ROOT / "scripts" / "simgpu-run", "--print"], env=env, capture_output=True, text=True, check=True).stdout
        return dict(line.split("=", 1) for line in said.splitlines())

    def find_cupti(self):
        """The libcupti that torch would load; None: as the loader finds it."""
        if self.simulated:
            return self.build / "simgpu" / "libcupti.so.13"
        code = "import glob, os, sysconfig; print(*glob.glob(os.path.join(sysconfig.get_paths()['purelib'], 'nvidia', '*', 'lib', 'libcupti.so.1*')), sep='\\n')"
        said = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False).stdout.split()
        system = [path for pattern in ("lib64", "extras/CUPTI/lib64", "targets/*/lib") for path in pathlib.Path("/usr/local/cuda").glob(pattern + "/libcupti.so.1?")]
        return next((pathlib.Path(path) for path in [*said, *system]), None)

    def environment(self, kprof, plain, env):
        """plain: nothing of the simulated GPU is preloaded (programs without an RPATH)."""
        made = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF", "LD_PRELOAD"))}
        made.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONUNBUFFERED="1")
        made.update({k: v for k, v in self.variables.items() if not (plain and k == "LD_PRELOAD")})
        if kprof:
            made["LD_PRELOAD"] = ":".join([str(self.library), *([made["LD_PRELOAD"]] if made.get("LD_PRELOAD") else [])])
        made.update({k: str(v) for k, v in env.items()})
        return made

    def run(self, *command, kprof=False, plain=False, seconds=60, **env):
        """Runs a command within its time and what is left of the point's; never raises for what the command does."""
        left = min(seconds * self.slack, self.limit - time.monotonic())
        if left < 1:
            raise NoTime
        words = [str(word) for word in command]
        shown = [f"{k}={v}" for k, v in env.items()] + (["LD_PRELOAD=libkprof.so"] if kprof else []) + words
        self.commands.append(" ".join(shlex.quote(word.replace(str(ROOT) + "/", "")) for word in shown))
        begin = time.monotonic()
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env=self.environment(kprof, plain, env), start_new_session=True, cwd=ROOT) as process:
            try:
                out, err = process.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                stacks = native_stacks(process.pid, time.monotonic() < self.deadline - 60)
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                err += f"\n(killed after {left:.0f} s)\n{stacks}"
        return Done(self.commands[-1], process.returncode, out, err, time.monotonic() - begin)

    def under_kprof(self, name, *command, schedule="wait=1,warmup=1,active=3,repeat=1", **options):
        """The command under libkprof; (finished command, its traces)."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"KPROF_DIR": folder, **({"KPROF_SCHEDULE": schedule} if schedule else {}), **options}
        done = self.run(*command, kprof=True, **settings)
        for line in [line for line in done.err.splitlines() if line.startswith("kprof:")][-6:]:
            self.see(line.replace(str(self.folder), ""))
        traces = sorted(folder.glob("*.pt.trace.json*"))
        for trace in traces:
            self.keep(trace, f"{name}.{trace.name}")
        return done, traces

    def keep(self, path, name):
        """A copy for whoever reads the report, compressed; with --keep only."""
        if self.kept and path.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            packed = path.suffix == ".gz"
            with open(path, "rb") as source, (open if packed else gzip.open)(self.kept / (name if packed else name + ".gz"), "wb") as copied:
                shutil.copyfileobj(source, copied)

    def probe(self, question, *more, **options):
        path = ["--cupti", self.cupti] if self.cupti else []
        done = self.run(self.build / "gpu-probe", question, *path, *more, plain=True, **options)
        self.see(*done.out.splitlines())
        if done.code != 0:
            self.see(f"exit {done.code}", *done.err.splitlines()[-5:])
        return done

    def see(self, *lines):
        self.seen += [str(line) for line in lines]

    def complain(self, done, lines=8):
        self.see(done.command, f"exit {done.code}", *done.err.splitlines()[-(40 if "(killed after" in done.err else lines):])


def native_stacks(pid, has_time):
    """Where each thread of a process that hangs stands, as cuda-gdb or gdb tells in 20 s; else what the kernel says of it."""
    for debugger in ("cuda-gdb", "gdb") if has_time else ():
        if shutil.which(debugger):
            try:
                said = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, errors="replace", timeout=20, check=False).stdout
            except subprocess.TimeoutExpired:
                continue
            return "\n".join(line for line in said.splitlines() if line.startswith(("#", "Thread")))
    lines = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        lines.append(f"{task.name} {(task / 'comm').read_text().strip()} {(task / 'wchan').read_text()} {(task / 'syscall').read_text().strip()}")
    return "\n".join(lines)


def perform(machine, name, question, seconds, function):
    machine = copy.copy(machine)  # lanes: what this point ran and saw is its own
    machine.commands, machine.seen = [], []
    machine.limit = min(machine.deadline, time.monotonic() + seconds * machine.slack)
    begin = time.monotonic()
    try:
        if machine.limit - begin < 5:
            raise NoTime
        verdict = function(machine) or "seen"
    except NoTime:
        verdict = "not run: no time left"
    except Exception:  # a broken point must not take the others with it
        machine.see(*traceback.format_exc().splitlines()[-4:])
        verdict = "BAD: the check itself broke"
    return {"point": name, "question": question, "verdict": verdict, "seconds": round(time.monotonic() - begin, 1),
            "commands": machine.commands, "seen": machine.seen}


def text(results, machine, title):
    counts = {word: sum(r["verdict"].startswith(word) for r in results) for word in VERDICTS}
    lines = [f"# {title}", "", f"{time.strftime('%Y-%m-%d')}; " + ", ".join(f"{n} {word}" for word, n in counts.items()), "",
             "| point | question | verdict |", "|---|---|---|"]
    lines += [f"| {r['point']} | {r['question']} | {r['verdict']} |" for r in results]
    for r in results:
        lines += ["", f"## {r['point']}: {r['question']}", "", f"**{r['verdict']}** ({r['seconds']} s)", ""]
        lines += [f"    $ {command[:300]}" for command in r["commands"]]
        lines += [f"    {re.sub(r'/[^ ]*/', '', line)[:300] if line.startswith('kprof:') else line[:300]}" for line in r["seen"][:60]]
    return "\n".join(lines) + "\n"


def run_all(machine, options):
    wanted = options.only.split(",") if options.only else None
    title = "gpu-check on the simulated GPU" if machine.simulated else "gpu-check on a real GPU"
    order, results, out = [entry[0] for entry in POINTS], [], pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)

    def keep(result):
        results.append(result)
        results.sort(key=lambda r: order.index(r["point"]))
        print(f"{result['point']:14s} {result['seconds']:6.1f} s  {result['verdict']}", flush=True)
        out.write_text(text(results, machine, title))
        out.with_suffix(".json").write_text(json.dumps(results, indent=1))

    chosen = [entry for entry in POINTS if not wanted or entry[0] in wanted]
    if wanted:
        chosen.sort(key=lambda entry: wanted.index(entry[0]))
    for name, question, seconds, function, alone in chosen:
        if alone:
            keep(perform(machine, name, question, seconds, function))
    with concurrent.futures.ThreadPoolExecutor(options.lanes) as lanes:
        started = [lanes.submit(perform, machine, name, question, seconds, function) for name, question, seconds, function, alone in chosen if not alone]
        for done in concurrent.futures.as_completed(started):
            keep(done.result())
    print(f"report: {out}", file=sys.stderr)
    return 1 if any(r["verdict"].startswith("BAD") for r in results) else 0
