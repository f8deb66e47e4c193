#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - other projects' own tests, run without us and with us in several modes, and compared test by test

usage: run.py LIBEMPTY_SO LIBKPROF_SO [--suite GLOB]... [--mode NAME]... [--select EXPRESSION] [--limit SECONDS] [--stall SECONDS] [--again N] [--keep DIR] [--list]

Each suite of suites.py runs once beside an empty library and once beside ours in each mode. A test that comes to something else is run
again alone, three times without us and three times with us. Exits 1 when a test differs by our doing, 2 when nothing could be run.
"""
import argparse
import fnmatch
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import sources

NOT_RUN = "not run"
ROOM = 'mount -t tmpfs none /dev/shm && ip link set lo up && { "$@"; exit $?; }'  # the shell stays: a process 1 cannot be killed by itself
QUIET = 300  # seconds without a test: imports and collection before the first, a trace is written after the last


def room():
    """Words before a command that give it processes, loopback and /dev/shm of its own: all of a run ends with it. None where that may not be had."""
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--ipc", "bash", "-c", ROOM, "room"]
    try:
        return words if subprocess.run(words + ["true"], capture_output=True).returncode == 0 else []
    except OSError:
        return []


def ended(status):
    number = -status if status < 0 else status - 128  # the room's shell says 128 and the signal
    return signal.Signals(number).name if number in set(signal.Signals) else "status %d" % status


class Log:
    """What each.py wrote of one process of pytest."""

    def __init__(self, path):
        self.path, self.at, self.rest = path, 0, b""
        self.tests, self.outcomes, self.texts, self.running = [], {}, {}, None
        self.counted = self.stopped = False

    def read(self):
        """Reads on; True when there was something new."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                new = file.read()
        except FileNotFoundError:
            return False
        self.at += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        for line in lines:
            self.take(json.loads(line))
        return bool(new)

    def take(self, said):
        if said["what"] == "tests":
            self.tests, self.counted = said["tests"], True
        elif said["what"] == "time":
            self.stopped = True
        elif said["what"] == "begin":
            self.running = said["test"]
        else:
            self.outcomes[said["test"]] = said["outcome"]
            self.texts[said["test"]] = said.get("text", "")
            self.running = None


class Result:
    """What a suite came to in one mode."""

    def __init__(self):
        self.outcomes, self.texts, self.notes, self.seconds, self.traces = {}, {}, [], 0, 0


class Runner:
    def __init__(self, options, work):
        self.work, self.options, self.around = work, options, room()
        self.library = {}
        for name, path in (("without", options.empty), ("with", options.library)):
            (work / name).mkdir()
            self.library[name] = shutil.copy(path, work / name / "libkprof.so")
        shutil.copy(HERE / "each.py", work / "each.py")
        (work / "pytest.ini").write_text("[pytest]\n")

    def environment(self, suite, settings, seconds):
        """None of the caller's: what is said here, and where programs are."""
        here = self.work / "run"
        env = {"PATH": os.environ["PATH"], "HOME": str(here / "home"), "TMPDIR": str(here / "tmp"), "LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "root",
               "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.work), "HF_HUB_OFFLINE": "1",
               "PEERS_LOG": str(here / "log"), "PEERS_DONE": str(here / "done"),
               "PEERS_SECONDS": str(seconds), **dict(suite.env)}
        env["LD_PRELOAD"] = self.library["without" if settings is None else "with"]
        if settings is not None:
            env.update({"KPROF_DIR": str(here / "traces"), "KPROF_LOG": "none", **settings})
        return env

    def once(self, suite, at, python, settings, targets, done, until):
        """One process of pytest. Returns its log, and why it ended early, or ''."""
        here = self.work / "run"
        shutil.rmtree(here, ignore_errors=True)
        for name in ("home", "tmp", "traces"):
            (here / name).mkdir(parents=True)
        (here / "done").write_text(json.dumps(sorted(done)))
        command = [python, "-m", "pytest", "-q", "-p", "each", "-p", "no:cacheprovider", "-c", str(self.work / "pytest.ini"), "--rootdir", str(at),
                   "--continue-on-collection-errors", *suite.options, *targets]
        command += ["-k", self.options.select] if self.options.select else []
        with open(here / "out", "wb") as out:
            process = subprocess.Popen([*self.around, *command], cwd=at, env=self.environment(suite, settings, until - time.monotonic()),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
            log = Log(here / "log")
            try:
                why = self.watch(process, log, suite)
            finally:
                self.end(process)
        log.read()
        return log, why

    def watch(self, process, log, suite):
        moved = time.monotonic()
        while True:
            try:
                status = process.wait(0.2)
            except subprocess.TimeoutExpired:
                status = None
            now = time.monotonic()
            if log.read():
                moved = now
            if status is not None:
                return "" if status in ((2,) if log.stopped else (0, 1, 5)) else "died (%s)" % ended(status)
            if now - moved > ((self.options.stall or suite.stall) if log.running else max(QUIET, self.options.stall or 0)):
                return "hangs" + ("" if log.running else " at its end" if log.outcomes else "")

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def suite(self, suite, at, python, settings, seconds):
        """All tests of a suite in one mode: pytest again for the rest where a test kills it or hangs."""
        result, began = Result(), time.monotonic()
        wanted = None
        while True:
            log, why = self.once(suite, at, python, settings, suite.targets, result.outcomes, began + seconds)
            wanted = wanted or log.tests
            before = len(result.outcomes)
            result.outcomes.update(log.outcomes)
            result.texts.update(log.texts)
            result.traces += len(list((self.work / "run/traces").rglob("*.pt.trace.json*")))
            if why:
                if log.running:
                    result.outcomes[log.running] = why
                    result.texts[log.running] = self.tail()
                else:
                    result.notes.append("%s%s: %s" % (why, "" if log.counted else " before its first test", self.tail()[-300:]))
            if not why or len(result.outcomes) == before or not log.running:
                break
        for test in wanted or ():
            result.outcomes.setdefault(test, NOT_RUN)
        result.seconds = time.monotonic() - began
        return result

    def tail(self):
        return (self.work / "run/out").read_text(errors="replace")[-2000:]

    def alone(self, suite, at, python, settings, test):
        """What one test comes to by itself, three times."""
        found = set()
        for _ in range(3):
            log, why = self.once(suite, at, python, settings, (test,), (), time.monotonic() + QUIET)
            found.add(why if why and log.running else log.outcomes.get(test, why or NOT_RUN))
        return found


def is_end(outcome):
    return outcome.startswith(("died", "hangs"))


def verdict(plain, ours, alone_plain, alone_ours):
    """(whether it is our doing, why): a test that came to `plain` without us and to `ours` with us."""
    if is_end(plain) and is_end(ours):
        return False, "does not end without us either"
    if len(alone_plain) > 1:
        return False, "differs from itself without us"
    if alone_ours != alone_plain:
        return True, "alone as well"
    if is_end(ours):
        return True, "not when alone, thrice"
    return False, "equal when alone, thrice"


class Report:
    def __init__(self, keep):
        self.rows, self.bad, self.keep = [], 0, keep

    def suite(self, runner, suite, at, python, modes, seconds):
        say("# %s: without us" % suite.name)
        plain = runner.suite(suite, at, python, None, seconds)
        self.store(suite.name, "plain", plain)
        for test in [t for t, what in plain.outcomes.items() if what == "cannot be collected"]:
            self.bad += 1
            say("not ok - %s: %s cannot be collected without us:\n%s" % (suite.name, test, plain.texts[test][-600:]))
        ran = [t for t, what in plain.outcomes.items() if what != NOT_RUN]
        say("#   %d tests in %d s%s" % (len(ran), plain.seconds, counts(plain)))
        if not ran:
            self.bad += 1
            say("#   nothing could be run: %s" % (plain.notes or runner.tail()))
        alone = {}
        for mode, settings in modes.items():
            ours = runner.suite(suite, at, python, settings, seconds)
            self.store(suite.name, mode, ours)
            self.compare(runner, suite, at, python, mode, settings, plain, ours, alone)

    def compare(self, runner, suite, at, python, mode, settings, plain, ours, alone):
        both = [t for t in plain.outcomes if NOT_RUN not in (plain.outcomes[t], ours.outcomes.get(t, NOT_RUN))]
        differing = [t for t in both if plain.outcomes[t] != ours.outcomes[t]] + [t for t in ours.outcomes if t not in plain.outcomes]
        bad, other = [], []
        for n, test in enumerate(differing):
            was, is_now = plain.outcomes.get(test, "not there"), ours.outcomes[test]
            if n < runner.options.again and test in plain.outcomes:
                if test not in alone:
                    alone[test] = runner.alone(suite, at, python, None, test)
                is_bad, why = verdict(was, is_now, alone[test], runner.alone(suite, at, python, settings, test))
            else:
                is_bad, why = True, "not run again"
            (bad if is_bad else other).append("%s: %s became %s (%s)" % (test, was, is_now, why))
        bad += ["the whole: " + note for note in ours.notes if note not in plain.notes]
        self.rows.append((suite.name, mode, len(both) - len([t for t in differing if t in plain.outcomes]), len(plain.outcomes) - len(both), bad, other))
        self.bad += len(bad)
        say("%s - %s %s: %d equal, %d not run, %d differ, %d unsteady without us or alone equal; %d traces, %d s (%d s without us)"
            % ("not ok" if bad else "ok", suite.name, mode, *self.rows[-1][2:4], len(bad), len(other), ours.traces, ours.seconds, plain.seconds))
        for line in bad:
            say("#   differs: " + line)
        for line in other:
            say("#   unsteady: " + line)

    def store(self, suite, mode, result):
        if self.keep:
            path = pathlib.Path(self.keep) / ("%s.%s.json" % (suite.replace("/", "-"), mode))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"outcomes": result.outcomes, "texts": {t: x for t, x in result.texts.items() if x}, "notes": result.notes}, indent=1))

    def table(self, modes, skipped):
        say("\n| suite | " + " | ".join(modes) + " |\n|---|" + "---|" * len(modes))
        for name in dict.fromkeys(row[0] for row in self.rows):
            cells = {row[1]: "%d equal, %s%s" % (row[2], "**%d differ**" % len(row[4]) if row[4] else "0 differ",
                                                 ", %d not run" % row[3] if row[3] else "") for row in self.rows if row[0] == name}
            say("| %s | %s |" % (name, " | ".join(cells.get(mode, "-") for mode in modes)))
        say("\n# peers-tests: %d suites by mode, %d equal tests, %d differ, %d not run; %d suites skipped"
            % (len(self.rows), sum(r[2] for r in self.rows), self.bad, sum(r[3] for r in self.rows), len(skipped)))


def counts(result):
    kinds = {}
    for what in result.outcomes.values():
        kinds[what.split()[0].strip(",")] = kinds.get(what.split()[0].strip(","), 0) + 1
    return ": " + ", ".join("%d %s" % (n, kind) for kind, n in sorted(kinds.items(), key=lambda pair: -pair[1])) if kinds else ""


def say(text):
    print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("empty")
    parser.add_argument("library")
    parser.add_argument("--suite", action="append", default=[], metavar="GLOB", help="only suites of these names")
    parser.add_argument("--mode", action="append", default=[], metavar="NAME", help="only these modes")
    parser.add_argument("--select", metavar="EXPRESSION", help="only tests that pytest -k selects")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="for a suite in a mode, instead of the table's")
    parser.add_argument("--stall", type=int, metavar="SECONDS",
                        help="how long a test may run before it hangs, instead of the table's, and how long the end may take: on a busy machine")
    parser.add_argument("--again", type=int, default=20, metavar="N", help="at most N differing tests of a suite and mode are run again alone")
    parser.add_argument("--keep", metavar="DIR", help="each test's outcome and what it raised, as JSON")
    parser.add_argument("--suites", default=str(HERE / "suites.py"), metavar="FILE", help="another table")
    parser.add_argument("--list", action="store_true", help="names the suites and the modes")
    return parser.parse_args()


def tables(path):
    spec = importlib.util.spec_from_file_location("suites", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["suites"] = module
    spec.loader.exec_module(module)
    return module


def python_of(venv):
    if os.environ.get("KPROF_PYTHON"):
        return os.environ["KPROF_PYTHON"]
    done = subprocess.run([str(HERE.parent.parent / "scripts/venv"), venv], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise sources.Missing("scripts/venv %s failed" % venv)
    return done.stdout.strip()


def main():
    options = arguments()
    table = tables(options.suites)
    suites = [s for s in table.SUITES if not options.suite or any(fnmatch.fnmatchcase(s.name, glob) for glob in options.suite)]
    unknown = set(options.mode) - set(table.MODES)
    if options.list or unknown or not suites:
        say("suites: %s\nmodes: %s" % (" ".join(s.name for s in table.SUITES), " ".join(table.MODES)))
        return 0 if options.list else 2
    modes = {name: env for name, env in table.MODES.items() if not options.mode or name in options.mode}
    work = pathlib.Path(tempfile.mkdtemp(prefix="kprof-peers-", dir=os.environ.get("KPROF_PEERS_TMP", "/var/tmp")))
    report, skipped = Report(options.keep), []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the run that goes on is ended, what is known is told
    try:
        runner = Runner(options, work)
        for suite in suites:
            try:
                python = python_of(suite.venv)
                at = sources.folder_of(suite.source, python)
            except sources.Missing as why:
                skipped.append(suite.name)
                say("ok - %s # SKIP %s" % (suite.name, why))
                continue
            report.suite(runner, suite, at / suite.folder, python, modes, suite.limit if options.limit is None else options.limit)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        report.table(modes, skipped)
    return 1 if report.bad else 0 if report.rows else 2


if __name__ == "__main__":
    sys.exit(main())
