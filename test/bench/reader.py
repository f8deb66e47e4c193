#!/usr/bin/env python3
"""reader - how long `kprof report` takes for large traces, and how much memory, beside Python's json.load

usage: reader.py KPROF [TRACE [MEGABYTES ...]]

Each large trace repeats the events of a recorded one, later each time, until it has so many megabytes (190 and 1000).
The times of one size come from one run, so quote their ratio. From 5000 on kprof runs once and alone: json.load would
take six times the file in memory.
"""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "test/data/traces/full.pt.trace.json.gz"
TS = re.compile(r'("ts":\s*)([0-9]+)')


def cut(text):
    """The text before the list of events, that of each event, and the text behind the list."""
    decoder, events = json.JSONDecoder(), []
    at = first = text.index("[", text.index('"traceEvents"')) + 1
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        if text[at] == "]":
            return text[:first], events, text[at:]
        event, end = decoder.raw_decode(text, at)
        events.append((event, text[at:end]))
        at = end


def write(path, source, most):
    head, events, tail = cut(gzip.open(source, "rt").read())
    timed = [float(event["ts"]) + float(event.get("dur", 0)) for event, _ in events if event["ph"] == "X"]
    span = int(max(timed) - min(timed)) + 1000
    parts = [(event["ph"] == "M", TS.search(text), text) for event, text in events]
    size, turn, count = len(head), 0, 0
    with open(path, "w") as out:
        out.write(head)
        while size < most:
            for is_head, ts, text in parts:
                if is_head and turn:
                    continue
                if ts and turn and not is_head:
                    text = text[:ts.start(2)] + str(int(ts[2]) + turn * span) + text[ts.end(2):]
                size += out.write((",\n  " if count else "\n  ") + text)
                count += 1
            turn += 1
        out.write("\n  " + tail)
    return count


def timed(words):
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit("reader: %s ended with %d" % (words, status))
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    kprof, source = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else RECORDED
    python = [sys.executable, "-c", "import gzip, json, sys; p = sys.argv[1]; json.load((gzip.open if p.endswith('z') else open)(p, 'rb'))"]
    print("%8s %9s  %-24s %8s %8s %8s" % ("MB", "events", "what", "s", "cpu s", "MB used"))
    for megabytes in [int(word) for word in sys.argv[3:]] or [190, 1000]:
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "big.pt.trace.json")
            count = write(plain, source, megabytes * 1000000)
            ways = [("kprof report", [kprof, "report", plain]), ("kprof report, one core", ["taskset", "-c", "0", kprof, "report", plain])]
            if megabytes < 500:
                subprocess.run(["gzip", "-1k", plain], check=True)
                ways.append(("kprof report, gzip", [kprof, "report", plain + ".gz"]))
            if megabytes < 5000:
                ways.append(("json.load", python + [plain]))
            else:
                ways = ways[:1]
            for name, words in ways:
                best = min(timed(words) for _ in range(1 if "json" in name or len(ways) == 1 else 3))
                print("%8d %9d  %-24s %8.2f %8.2f %8.0f" % ((megabytes, count, name) + best), flush=True)


if __name__ == "__main__":
    main()
