# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks that stand or end in scripted ways, and what `kprof hang` and `kprof why` say of each.

usage: python ends.py [-k TEXT] [--keep FOLDER] [--minutes M] [--notes FILE]; ENDS_RUNS: how often each (20), RANKS: of each job (8)
torchrun starts the ranks over gloo (test/e2e/scripts/ends.py), one of which is the odd one, another in each run. A row
says how often the odd rank and the cause were told, how often its line was (of ends that have one), and how often
another rank was accused. Each run is a line at once; with --notes it is kept, and a later call goes on from there.
Exit 0: all are told in all runs.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KPROF = pathlib.Path(os.environ.get("KPROF_BUILD", HERE.parent.parent / "build")) / "kprof"
PYTHON = os.environ.get("KPROF_PYTHON", sys.executable)
PROGRAM = HERE.parent / "e2e" / "scripts" / "ends.py"
RUNS, RANKS = int(os.environ.get("ENDS_RUNS", "20")), int(os.environ.get("RANKS", "8"))
SECONDS, LIMIT_BYTES, LOOKS = 600, 1 << 30, 3
MEMORY = pathlib.Path("/sys/fs/cgroup/memory")  # of control groups v1; of v2 the folder above


@dataclasses.dataclass
class End:
    """`how` as the program knows it; `cause`: what is to be told, a word or a pattern; `line`: of the comment in the program, or none."""
    name: str
    how: str
    cause: str
    line: str = ""
    signal: int = 0  # sent to the odd rank from outside


WAITED = r"by SIGTERM after step 2, and others .* in c10d::allreduce_ for \d+\.\d s$"
HANGS = [End("stuck in Python", "python", "absent", "python"), End("stuck in C", "c", "absent", "c"), End("lock of two threads", "lock", "absent", "lock"),
         End("never comes, waits for work", "queue", "absent", "queue"), End("collectives in other order", "order", "mismatch", "order"),
         End("before the first step", "first", "absent", "python"), End("at exit", "atexit", "absent", "python"),
         End("SIGSTOP", "none", "stopped", signal=signal.SIGSTOP)]
DEATHS = [End("SIGKILL", "none", "by SIGKILL", signal=signal.SIGKILL), End("cgroup limit", "cgroup", "by SIGKILL"),
          End("abort", "abort", "by SIGABRT", "abort"), End("exception", "exception", "by ValueError", "exception"), End("SIGSEGV", "segv", "by SIGSEGV", "segv"),
          End("a collective's limit", "limit", WAITED), End("NCCL's watchdog", "watchdog", WAITED)]


def line_of(comment):
    text = PROGRAM.read_text().splitlines()
    found, = [number for number, line in enumerate(text, 1) if line.endswith(f"# {comment}")]
    return found


def asked(*command):
    done = subprocess.run([KPROF, *command, "--json"], capture_output=True, text=True, timeout=SECONDS, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


class Job:
    """torchrun, its ranks, and the folder of both."""

    def __init__(self, end, odd, folder, group):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.end, self.odd, self.out, self.store = end, odd, folder / "out", folder / "store"
        dies = end in DEATHS
        flags = ["--schedule", "active=1000000", "--hang", f"{SECONDS}s"] if dies else ["--control", "--schedule", "none"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF_", "LD_PRELOAD"))}
        env |= {"OMP_NUM_THREADS": "1", "ENDS_CGROUP": str(group or "")}
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
        command = [KPROF, "run", *flags, "-o", self.out, "--", PYTHON, *launch, PROGRAM, self.store, end.how, str(odd)]
        self.log = open(folder / "log", "w", encoding="utf-8")  # noqa: SIM115 - for as long as the job runs
        self.process = subprocess.Popen([str(part) for part in command], env=env, stdout=self.log, stderr=subprocess.STDOUT)

    def pid(self):
        """Of the odd rank, once it is where it stands or ends."""
        path, until = pathlib.Path(f"{self.store}.odd"), time.monotonic() + SECONDS
        while not path.exists() or not path.read_text().endswith("\n"):
            assert time.monotonic() < until and self.process.poll() is None, f"{self.end.name}: the odd rank came to no step"
            time.sleep(0.05)
        return int(path.read_text())

    def close(self):
        """Ends torchrun and its ranks, each of which leads a session of its own."""
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.log.close()


def children_of(pid):
    """The processes that descend from one that runs."""
    try:
        tasks = [task.joinpath("children").read_text().split() for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    own = [int(child) for children in tasks for child in children]
    return own + [below for child in own for below in children_of(child)]


def hang_settled(job):
    """What `kprof hang` says once it has said the same LOOKS times. A job still goes on for a moment."""
    said, same, until = None, 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        told = asked("hang", job.out)
        what = told and (told["verdict"], [(p["rank"], p["accused"], p["in"], p["at"] and p["at"]["line"]) for p in told["processes"]])
        same = same + 1 if told and what == said and told["verdict"] != "goes on" else 0
        said = what
        if same == LOOKS:
            return told
        time.sleep(0.3)
    raise TimeoutError("no two answers of kprof hang are alike")


def hang_judge(job):
    told = hang_settled(job)
    accused = {p["rank"]: p for p in told["processes"] if p["accused"]}
    at = (accused.get(job.odd) or {}).get("at") or {}
    return told["text"], job.odd in accused and told["verdict"] == job.end.cause, at.get("line"), set(accused) - {job.odd}


def death_judge(job):
    job.process.wait(timeout=SECONDS)
    first = (asked("why", job.out) or {"ends": [{"rank": None, "how": "nothing"}]})["ends"][0]
    line = re.search(r" at ends\.py:(\d+)", first["how"])
    is_told = first["rank"] == job.odd and re.match(job.end.cause, first["how"])
    return f"rank {first['rank']}: {first['how']}", bool(is_told), int(line[1]) if line else None, {first["rank"]} - {job.odd}


def once(end, odd, folder, group):
    job = Job(end, odd, folder, group)
    try:
        pid = job.pid()
        if end.signal:
            os.kill(pid, end.signal)
        return (hang_judge if end in HANGS else death_judge)(job)
    finally:
        job.close()


def group_make():
    """A control group of LIMIT_BYTES; None: none can be made here."""
    path = (MEMORY if MEMORY.is_dir() else MEMORY.parent) / f"ends{os.getpid()}"
    try:
        path.mkdir()
        (path / ("memory.limit_in_bytes" if MEMORY.is_dir() else "memory.max")).write_text(str(LIMIT_BYTES))
    except OSError:
        if path.is_dir():
            path.rmdir()
        return None
    return path


@dataclasses.dataclass
class Row:
    """What was told of one end in all runs so far."""
    end: End
    runs: int = 0
    told: int = 0
    lines: int = 0
    others: int = 0
    wrong: list = dataclasses.field(default_factory=list)

    def run(self, root, group):
        """One run: what was told, as a note of it keeps it."""
        odd, since = self.runs % RANKS, time.monotonic()
        text, is_told, line, accused = once(self.end, odd, root / "job", group)
        has_line = bool(self.end.line) and line == line_of(self.end.line)
        note = {"end": self.end.name, "odd": odd, "told": is_told, "line": has_line, "others": bool(accused), "text": text}
        is_right = self.add(note)
        print(f"{self.end.name}, run {self.runs}, {time.monotonic() - since:.0f} s: {'right' if is_right else 'wrong:' + self.wrong[-1]}", flush=True)
        return note

    def add(self, note):
        self.runs, self.told, self.lines, self.others = self.runs + 1, self.told + note["told"], self.lines + note["line"], self.others + note["others"]
        is_right = note["told"] and not note["others"] and note["line"] == bool(self.end.line)
        if not is_right:
            self.wrong.append(f"  odd rank {note['odd']}: {note['text']}")
        return is_right

    def text(self):
        of_lines = f"{self.lines}/{self.runs}" if self.end.line else "-"
        return "\n".join([f"{self.end.name:30} {f'{self.told}/{self.runs}':>14} {of_lines:>8} {self.others:>14}", *self.wrong])


def rounds(rows, root, group, minutes, notes):
    """Runs each end once a round, so that a run that is cut short has as many of each."""
    until = time.monotonic() + 60 * minutes if minutes else None
    for done in range(RUNS):
        for row in rows:
            if until and time.monotonic() > until:
                return
            if row.runs > done:
                continue  # a call before has made it
            note = row.run(root, group)
            if notes:
                with notes.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(note) + "\n")


def gone_on(rows, notes):
    """Adds the runs of calls before."""
    for note in map(json.loads, notes.read_text(encoding="utf-8").splitlines() if notes and notes.exists() else []):
        for row in rows:
            if row.end.name == note["end"]:
                row.add(note)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", default="", help="the ends with this text in their name")
    parser.add_argument("--keep", help="a folder for the last job")
    parser.add_argument("--minutes", type=float, help="begin no run after so long")
    parser.add_argument("--notes", type=pathlib.Path, help="a file with a line a run: those in it are not made again")
    args = parser.parse_args()
    root, group = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="ends")).resolve(), group_make()
    root.mkdir(exist_ok=True)
    ends = [end for end in HANGS + DEATHS if args.k in end.name]
    skipped = [end for end in ends if end.how == "cgroup" and not group]
    rows = [Row(end) for end in ends if end not in skipped]
    gone_on(rows, args.notes)
    rounds(rows, root, group, args.minutes, args.notes)
    print(f"{'end, of ' + str(RANKS) + ' ranks':30} {'rank and cause':>14} {'line':>8} {'others accused':>14}")
    print(*(row.text() for row in rows), sep="\n")
    for end in skipped:
        print(f"{end.name:30} skipped: no control group can be made here")
    if group:
        group.rmdir()
    if not args.keep:
        shutil.rmtree(root)
    wrong = [row for row in rows if row.wrong or not row.runs]
    print(f"{sum(row.runs for row in rows)} runs; " + (f"{len(wrong)} of {len(rows)} ends are told wrong" if wrong else f"all {len(rows)} ends are told right"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
