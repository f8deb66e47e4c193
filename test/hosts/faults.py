#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""faults.py - every system call and allocation of ours fails once, in turn, under hosts of every kind: the host is unchanged

usage: faults.py FOLDER_OF_PROGRAMS FOLDER_OF_SIMGPU LIBKPROF_SO [--every N] [--seed S] [--only HOST] [--call K] [--jobs J]

Each host runs beside an empty library first. Then beside ours, to count its calls (KPROF_TEST_FAIL=in:FILE, collector/base/sys/fail.c); then,
for each kind of call and each k up to its number, with the k-th failing as it does in life (of a call made more than 120 times the first
60 and 60 more), with all of a kind failing, and with all calls from some on failing.
Compared: standard output and error (but for lines that begin "kprof:", 9 at most), exit status, files; that it ends in time, that no
process, thread or descriptor stays that would not without the failure, and that what traces there are can be read to their end.
Where there is less in them than without the failure (of any kind of record, or of what is known of records of a kind), a line that is not there
else says so, or a count of what was lost. What comes and goes by itself is had from runs without a failure: as many as there is doubt.
--every N takes each N-th k, the first by the seed, so that all are had after N seeds, and those of the arena. Speaks TAP.
"""
import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 180
LINES_MOST = 9
TALLY = 4096
EACH_FIRST, SPREAD = 60, 60
AGAIN, PLAIN_MOST = 3, 40
KEPT = (".kprof", ".json", ".json.gz", ".heap.zst", ".table.txt", ".stacks.txt", ".memory.html", ".family", ".steps", ".prom", ".ends")
OF_THE_MACHINE = {"cores", "busy_threads", "torch_threads", "core_had_us", "core_waited_us", "core_others_us", "core_steps", "bare_steps", "bare_step_us", "bare_all_steps", "bare_all_us", "bare_long_steps", "bare_long_us", "script",
                  "fault_steps", "fault_steps_many", "faults_minor", "faults_major", "faults_bare", "fault_steps_bare", "fault_ns", "resident_steps", "address_steps", "file_steps"}  # of /proc, for a report's head: no event is lost with it


def hosts(programs, sim):
    everything = {"KPROF_RECORD_SHAPES": "1", "KPROF_PROFILE_MEMORY": "1"}
    steps = {"KPROF_SCHEDULE": "wait=1,warmup=1,active=2,repeat=2"}
    trains = [programs / "trains", programs]
    gpu = {"LD_LIBRARY_PATH": str(sim)}
    # name: settings of the host itself, ours, its command
    return {
        "train": ({}, steps, [*trains, "plain", "9"]),
        "train_native": ({}, {**everything, "KPROF_WITH_STACK": "native"}, [*trains, "plain", "3"]),
        "ring": ({}, {"KPROF_RING": "1s", "KPROF_KEEP": "1"}, [*trains, "rests", "9"]),
        "hang": ({}, {"KPROF_HANG": "1s", "KPROF_SCHEDULE": "none"}, [*trains, "rests", "9"]),
        "crash": ({}, {"KPROF_RING": "1s"}, [*trains, "fault", "9"]),
        "summary": ({}, {"KPROF_SUMMARY": "1", "KPROF_PROM": "kprof/metrics.prom", "KPROF_TRIGGER": "step>1.5x"}, [*trains, "rests", "9"]),
        "oom": ({}, {"KPROF_ON_OOM": "dump"}, [*trains, "runs_out", "9"]),
        "heap": ({}, {"KPROF_MALLOC": "trace"}, [programs / "small", programs]),
        "heap_count": ({}, {"KPROF_MALLOC": "count"}, [programs / "small", programs]),
        "children": ({}, {"KPROF_CHILDREN": "1"}, [*trains, "children", "3"]),
        "children_heap": ({}, {"KPROF_CHILDREN": "1", "KPROF_MALLOC": "trace"}, [programs / "small", programs]),
        "gpu": (gpu, {**steps, "KPROF_STEP": "api"}, [programs / "gpu", "plain", "9"]),
        "gpu_hooks": (gpu, {"KPROF_CUPTI": "off"}, [programs / "gpu", "children", "3"]),
        "python": ({}, {**everything, "KPROF_WITH_STACK": "1", "KPROF_STEP": "api"}, [sys.executable, HERE / "small.py", programs]),
    }


class Tally:
    """The file that the library counts its calls in."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(TALLY))

    def read(self):
        data = self.path.read_bytes()
        total, failed, which, rows = struct.unpack_from("<4Q", data)
        calls = {}
        names = []
        for i in range(rows):
            name, n = struct.unpack_from("<24sQ", data, 32 + 32 * i)
            names.append(name.rstrip(b"\0").decode())
            calls[names[-1]] = n
        return total, (names[which] if failed and which < rows else None), {k: v for k, v in calls.items() if v}


class Run:
    def __init__(self, folder, command, preload, env, most_threads=None):
        shutil.rmtree(folder, ignore_errors=True)
        self.cwd = folder / "cwd"
        self.cwd.mkdir(parents=True)
        watch = folder / "watch"
        watch.touch()
        base = {k: v for k, v in os.environ.items() if not k.startswith("KPROF") and k != "LD_PRELOAD"}
        base.update(env, LD_PRELOAD=preload, WATCH_FILE=str(watch))
        if most_threads is not None:
            base["WATCH_MOST"] = str(most_threads)
        with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
            process = subprocess.Popen([str(c) for c in command], cwd=self.cwd, env=base, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True)
            try:
                self.status = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.status = "it hangs"
        self.left = "a process is left" if is_left(process.pid) else ""
        process.wait()
        self.out = (folder / "out").read_bytes()
        lines = (folder / "err").read_bytes().splitlines()
        self.lines = [line.decode(errors="replace") for line in lines if line.startswith(b"kprof:")]
        self.err = [line for line in lines if not line.startswith(b"kprof:")]
        seen = [tuple(map(int, line.split())) for line in watch.read_text().splitlines()]
        self.most = tuple(max(column) for column in zip(*seen)) if seen else (0, 0)
        self.files = sorted((str(p.relative_to(self.cwd)), p.read_bytes()) for p in self.cwd.rglob("*")
                            if p.is_file() and p.relative_to(self.cwd).parts[0] != "kprof")
        self.ours = [p for p in (self.cwd / "kprof").rglob("*") if p.is_file()] if (self.cwd / "kprof").exists() else []
        self.unreadable, self.made = [], collections.Counter()
        self.lost = sum(int(n) for line in self.lines for n in re.findall(r"(\d+) dropped", line)) # as far as it is counted
        for path in self.ours:
            self.read(path)

    def read(self, path):
        """What this file has, by kind: a trace its records and what is known of each, others their lines."""
        of = path.parent.name
        kind = next((end for end in KEPT if path.name.endswith(end)), "")
        self.made[of, "files", kind] += 1
        if kind.endswith(".txt"):
            n = len(path.read_bytes().splitlines())
            self.made[of, "lines of", kind] += n if "table" in kind else min(n, 1)
        if ".json" not in path.name or path.name.endswith((".part", ".tmp")):
            return
        try:
            trace = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
            if path.name.startswith(("hang-", "oom-")):
                self.made.update((of, "key", name) for name in trace)
                return
            records(trace, of, self.made)
            ours = trace["kprof"]
            self.lost += ours["lost"] + ours["skipped"] + len(ours["drops"]) + (not ours["complete"]) + trace.get("kprof_gpu", {}).get("unlinked", 0)
        except (OSError, EOFError, ValueError, KeyError):
            self.unreadable.append(path.name)


def states_of(group):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, _, of_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_group) == group:
            yield state


def is_left(group):
    """Ends what runs in this group. What has ended and waits for its new parent, init, to see it is not left."""
    deadline = time.monotonic() + 0.2
    while (left := any(state not in "ZX" for state in states_of(group))) and time.monotonic() < deadline:
        time.sleep(0.01)  # a system call in a process of its own (io_apart.c) ends with the thread that waits for it
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return left


def shape(line):
    """A line without its numbers."""
    return re.sub(r"\d+", "N", line)


def records(trace, of, made):
    """Points of counters, like the stacks of a .stacks.txt, are as many as time tells apart."""
    for event in trace["traceEvents"]:
        kind = event["ph"], event.get("cat"), event["name"]
        if event["ph"] == "C":
            made[(of, *kind)] = 1
            continue
        made[(of, *kind)] += 1
        for name in event.get("args", ()):
            made[(of, *kind[:2], "args", name)] += 1
    heap = trace.get("kprof_heap", {})
    for name in ("allocations", "frees"):
        made[of, "heap", name] += heap.get(name, 0)
    made[of, "heap", "frames of stacks"] += sum(len(site["stack"]) for site in heap.get("sites", ()))
    for name in (trace.keys() | trace["kprof"].keys()) - OF_THE_MACHINE:
        made[of, "key", name] += 1


def differences(bare, ours, most, failed, spec):
    what = []
    if ours.status != bare.status:
        what.append(f"status {bare.status} became {ours.status}")
    if ours.out != bare.out:
        what.append(f"stdout {ours.out[-200:]!r}")
    if ours.err != bare.err:
        what.append(f"stderr {ours.err[:3]!r}")
    if ours.files != bare.files:
        what.append("files")
    if ours.left:
        what.append(ours.left)
    if len(ours.lines) > LINES_MOST:
        what.append(f"{len(ours.lines)} lines")
    # what a number stands for is asked before it is closed; where that fails it is left alone
    if ours.most[0] > most[0] + (failed == "stat" or "+" in spec) or ours.most[1] > most[1]:
        what.append(f"descriptors, threads left {ours.most}, not {most}")
    what += [f"{name} cannot be read" for name in ours.unreadable]
    if failed not in ("unlink", "rename") and "+" not in spec:
        what += [f"{p.name} is left" for p in ours.ours if not p.name.endswith(KEPT)]
    return what


class Plain:
    """What the host's runs without a failure have in common; as many of them as it takes to know what comes and goes by itself."""

    def __init__(self):
        self.runs = 0
        self.least, self.lost, self.usual, self.most = None, 0, set(), (0, 0)

    def add(self, run):
        self.runs += 1
        if self.least is not None and run.lost > self.lost:
            return  # it lost something by itself, and says so: no measure for others
        self.lost = run.lost
        self.least = run.made if self.least is None else collections.Counter({k: min(n, run.made[k]) for k, n in self.least.items()})
        self.usual |= {shape(line) for line in run.lines}
        self.most = tuple(map(max, self.most, run.most))

    def missing(self, run):
        return [f"{' '.join(str(part) for part in k if part)} {run.made[k]} of {n}" for k, n in self.least.items() if run.made[k] < n]

    def untold(self, run):
        """What this run lacks with neither a count of it nor a line that no unharmed run has."""
        lines = [line for line in run.lines if not line.startswith("kprof: wrote") and shape(line) not in self.usual]
        return [] if lines or run.lost > self.lost else self.missing(run)


def can_tell(spec):
    """Our lines are written by `write` to what `stat` says is the standard error of the start."""
    return not spec.endswith("+:0") or spec.split(":")[0] not in ("any", "stat", "write")


def some(n, first):
    """1 to n, or the first of them and as many spread over the rest."""
    rest = range(first + 1, n + 1)
    return [*range(1, min(n, first) + 1), *rest[::max(1, len(rest) // SPREAD)]]


def wishes(total, calls):
    each = [f"{name}:{k}:0" for name, n in sorted(calls.items()) for k in some(n, EACH_FIRST)]
    return each + [f"{name}:1+:0" for name in sorted(calls)] + [f"any:{k}+:0" for k in some(total, 10)]


class Sweep:
    def __init__(self, args):
        self.args = args
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="kprof-faults-"))
        self.failed = self.passed = self.less = self.untellable = 0
        self.pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        self.seen = {}

    def run(self, name, bare_env, env, command, spec, most_threads=None):
        folder = self.work / f"{name}.{spec.replace(':', '_')}"
        folder.mkdir(exist_ok=True)
        tally = Tally(folder / "tally")
        preload = f"{self.args.library}:{self.args.programs / 'libkpwatch.so'}"
        fail = f"in:{tally.path}" + (f",{spec}" if spec != "none" else "")
        ours = Run(folder / "run", command, preload, {**bare_env, **env, "KPROF_TEST_FAIL": fail}, most_threads)
        result = ours, *tally.read()
        if not self.args.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def again(self, host, spec, what, find):
        """What was seen, unless it is seen no more when the same fails again."""
        if what and not any(find(self.run(*host, spec)[0]) for _ in range(AGAIN)):
            print(f"# once: faults_{host[0]} {spec}: {', '.join(what[:6])}")
            return []
        return what

    def untold(self, host, spec, plain, ours):
        """What this run lacks without a word: unless it is had when the same fails again, or a run without a failure lacks it as well."""
        self.less += bool(plain.missing(ours))
        what = self.again(host, spec, plain.untold(ours), plain.untold)
        while what and plain.runs < PLAIN_MOST:
            plain.add(self.run(*host, "none")[0])
            what = plain.untold(ours)
        return [f"not told: {', '.join(what[:6])}"] if what else []

    def judge(self, host, spec, bare, plain, result):
        ours, total, failed, _ = result
        what = differences(bare, ours, plain.most, failed, spec)
        if all(line.startswith("descriptors") for line in what):  # depends on who is quicker, where children end beside load
            what = self.again(host, spec, what, lambda run: differences(bare, run, plain.most, failed, spec))
        if failed:
            self.seen[failed] = self.seen.get(failed, 0) + 1
        if failed and can_tell(spec):
            what += self.untold(host, spec, plain, ours)
        elif failed:
            self.untellable += 1
        if what:
            self.failed += 1
            print(f"not ok - faults_{host[0]} {spec} ({failed}): {'; '.join(what)}")
            for line in ours.lines[:4]:
                print(f"#   {line}")
        else:
            self.passed += 1
        sys.stdout.flush()
        return not what

    def choose(self, specs):
        if self.args.call:
            return [self.args.call]
        turn = self.args.seed % self.args.every
        return [s for i, s in enumerate(specs) if i % self.args.every == turn or s.startswith("arena:")]

    def host(self, name, bare_env, env, command):
        host = name, bare_env, env, command
        bare = Run(self.work / f"{name}.bare", command, str(self.args.programs / "libempty.so"), bare_env)
        runs = [self.run(*host, "none") for _ in range(3)]
        plain = Plain()
        for run in runs:
            plain.add(run[0])
        total = max(run[1] for run in runs)
        if bare.status in (126, 127) or total == 0 or not plain.least:
            self.failed += 1
            print(f"not ok - faults_{name}: it does not run, or nothing is counted")
            return
        good = all([self.judge(host, "none", bare, plain, run) for run in runs])
        specs = self.choose(wishes(total, {k: max(run[3].get(k, 0) for run in runs) for k in runs[0][3]}))
        jobs = {self.pool.submit(self.run, *host, spec, plain.most[1]): spec for spec in specs}
        for job in concurrent.futures.as_completed(jobs):
            good &= self.judge(host, jobs[job], bare, plain, job.result())
        calls = " ".join(f"{k} {v}" for k, v in sorted(runs[0][3].items()))
        kinds = sum(n > 0 for n in plain.least.values())
        print(f"{'ok' if good else 'not ok'} - faults_{name} # {len(specs)} failures, of {total} calls: {calls}; {kinds} kinds compared")

    def end(self):
        never = "" if self.args.every > 1 else " ".join(sorted(self.seen))
        print(f"# faults: {self.passed} runs as ever, {self.failed} not; {self.less} with less in the output; "
              f"{self.untellable} where nothing can be said; {never}")
        shutil.rmtree(self.work, ignore_errors=True)
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("sim", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("library", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--call", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    sweep = Sweep(args)
    for name, (bare_env, env, command) in hosts(args.programs, args.sim).items():
        if not args.only or name in args.only.split(","):
            sweep.host(name, bare_env, env, command)
    sys.exit(sweep.end())


if __name__ == "__main__":
    main()
