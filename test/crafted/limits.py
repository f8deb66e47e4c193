#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limits.py - runs every command that reads files over files that were made to harm it, and says what each run took

usage: limits.py KPROF [--large] [--seconds S] [--megabytes M] [--disk M] [--only COMMAND] [FILE...]

A run fails when a signal ends it, when a sanitizer says something, when it takes more processor time or memory than
was allowed, when a file of its grows beyond --disk megabytes, or when it leaves something in TMPDIR. Without FILE it
makes such files itself (crafted.py), with --large those, too, that only take too much. A .gz of a spool is unpacked first. Speaks TAP: a line for each file and command.
"""
import argparse
import gzip
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import crafted

CPU_SECONDS = 120  # a run that goes on is ended
SAID = re.compile(rb"AddressSanitizer|LeakSanitizer|runtime error:")

# Words before the file, words after it; {out} is an empty folder.
OF_ALL = {
    "report": ["report", "{}"], "report --torch": ["report", "--torch", "--group-by-stack-n", "5", "{}"],
    "report --by line": ["report", "--by", "line", "{}"], "advise": ["advise", "{}"], "html": ["html", "{}", "-o", "{out}/page.html"],
    "diff": ["diff", "{}", "{}", "--all"], "events": ["events", "{}"], "stacks": ["stacks", "{}"], "stacks --html": ["stacks", "--html", "{}"],
    "memory": ["memory", "{}"], "slice": ["slice", "{}", "--step", "1-2", "-o", "{out}/slice.json"],
    "perfetto": ["export", "--format", "perfetto", "{}", "-o", "{out}/a.pftrace"], "ndjson": ["export", "--format", "ndjson", "{}", "-o", "{out}/a.ndjson"],
}
OF_SPOOLS = {
    "export": ["export", "--export", "trace,table,stacks,memory", "--dir", "{out}", "{}"], "recover": ["recover", "--keep", "--force", "--dir", "{out}", "{}"],
    "heaptrack": ["memory", "--format", "heaptrack", "{}"], "leaks": ["memory", "--leaks", "{}"],
    "lines": ["events", "--json", "--lines", "{}"],
}


def bounds(disk):
    def set_them():
        resource.setrlimit(resource.RLIMIT_FSIZE, (disk << 20, disk << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return set_them


class Run:
    """One command over one file: its status (negative: the signal), what it said, what it took."""

    def __init__(self, command, temporary, disk):
        environment = {**os.environ, "TMPDIR": str(temporary), "ASAN_OPTIONS": "abort_on_error=1:quarantine_size_mb=8:detect_leaks=1",
                       "UBSAN_OPTIONS": "print_stacktrace=1"}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, env=environment, preexec_fn=bounds(disk))
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = self.status = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.said = said.read(1 << 20)
        self.seconds = used.ru_utime + used.ru_stime
        self.megabytes = used.ru_maxrss >> 10

    def wrong(self, options):
        if self.status < 0:
            yield "ended by %s" % signal.Signals(-self.status).name
        if SAID.search(self.said):
            yield "a sanitizer said: %s" % SAID.search(self.said).group().decode()
        if options.seconds and self.seconds > options.seconds:
            yield "%.1f s of processor time" % self.seconds
        if options.megabytes and self.megabytes > options.megabytes:
            yield "%d MB" % self.megabytes


def unpacked(path, folder):
    """A spool that was packed, as a spool."""
    if not path.name.endswith(".kprof.gz"):
        return path
    target = folder / path.name[:-3]
    with gzip.open(path) as packed, open(target, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    return target


def over(path, options, work):
    """Every command over one file; the number of those that failed."""
    failed = 0
    rows = {**OF_ALL, **OF_SPOOLS} if path.suffix == ".kprof" else OF_ALL
    for name, words in rows.items():
        if options.only and options.only != name:
            continue
        out, temporary = work / "out", work / "tmp"
        for folder in (out, temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        run = Run([options.kprof] + [word.replace("{out}", str(out)).replace("{}", str(path)) for word in words], temporary, options.disk)
        wrong = list(run.wrong(options)) + (["something is left in TMPDIR"] if any(temporary.iterdir()) else [])
        said = run.said.decode(errors="replace").strip().splitlines()
        print("%s - %s %s%s # status %d, %.1f s, %d MB%s" % ("not ok" if wrong else "ok", path.name, name, ": " + ", ".join(wrong) if wrong else "", run.status,
                                                          run.seconds, run.megabytes, ": " + said[-1][:150] if said else ""), flush=True)
        if wrong:
            print("\n".join("# " + line for line in said[:25]), flush=True)
        failed += bool(wrong)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kprof")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--megabytes", type=int, default=0)
    parser.add_argument("--disk", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    options.kprof = os.path.abspath(options.kprof)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        files = [unpacked(path, work) for path in options.files] or crafted.make(work, options.large)
        return 1 if sum([over(path, options, work) for path in files]) else 0


if __name__ == "__main__":
    sys.exit(main())
