# SPDX-License-Identifier: Apache-2.0
"""What a user sees first: the steps without the start-up, all ranks together, a row a phase. On traces made by hand."""
import base64
import errno
import json
import os
import re
import subprocess
import time
import zlib

import pytest

import harness
import pagedata

START_UP, STEP, STEPS = 100_000, 1000, 4
WITHOUT_EXIT = "without an exit (killed, or by os._exit)"
UNTIL_THEN = "This is what was recorded until then."
GAP = "outside any op or range"  # the row of what no other row has


def event(name, cat, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def memory(ts, size, address, total):
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
            "args": {"Total Allocated": total, "Bytes": size, "Addr": address, "Device Id": -1, "Device Type": 0}}


def training(begin=START_UP, span=STEP, peak_at_start=False):
    """An import of 100 ms, and four steps, which an optimizer ends."""
    events = [event("aten::uniform_", "cpu_op", 0, 50_000)]
    first = 9 << 20 if peak_at_start else 4096
    events += [memory(10, first, 64, first), memory(20, -first, 64, 0)]
    for i in range(STEPS):
        at = begin + i * span
        events += [event("aten::mm", "cpu_op", at, 600), memory(at + 10, 1 << 20, 128, 1 << 20), memory(at + 500, -(1 << 20), 128, 0),
                   event("Optimizer.step#SGD.step", "user_annotation", at + 800, 200)]
    return events


def write(path, events, **head):
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}))
    return path


def told(*argv):
    done = harness.cli(*argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def summed(*argv):
    return sum(int(line.rpartition(" ")[2]) for line in told("stacks", *argv).splitlines())


def head_of(page, member):
    for block in re.findall(r"[A-Za-z0-9+/=]{100,}", page.read_text()):
        try:
            head = zlib.decompressobj().decompress(base64.b64decode(block))
        except (ValueError, zlib.error):
            continue
        if found := re.search(member, head):
            return tuple(int(n) for n in found.groups())
    return None


def start_of(page):
    return head_of(page, rb'"start":\[(\d+),(\d+)\]')


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "a.pt.trace.json", training())


def test_stacks_begin_with_the_steps_and_say_what_is_left_out(trace, tmp_path):
    assert summed(trace) == (STEPS - 1) * STEP
    assert summed(trace, "--step", "all") == START_UP + STEPS * STEP
    assert summed(trace, "--step", "2") == STEP and summed(trace, "--step", "1-2") == 2 * STEP
    said = harness.cli("stacks", trace, "--svg", "-o", tmp_path / "a.svg")
    assert "steps 1 to 3; 101.0 ms before and 0.0 ms after are left out; --step all shows all" in said.stderr
    assert "a.pt.trace.json, steps 1 to 3: wall time" in (tmp_path / "a.svg").read_text()
    none = harness.cli("stacks", trace, "--step", "9", "-o", tmp_path / "none")
    assert none.returncode == 1 and "the trace has steps 1 to 3" in none.stderr and not (tmp_path / "none").exists()
    assert summed(trace, "--metric", "memory") == (STEPS - 1) * (1 << 20)


def test_the_report_says_what_lies_outside_and_counts_as_the_closing_line(trace):
    said = told("report", trace)
    assert re.search(r": wall time 104 ms, 4 steps \(step 0 is left out: ", said, re.M)
    assert re.search(r"^outside +101 ms before step 1 \(start-up\), 0 ms after step 3 \(", said, re.M)


@pytest.mark.parametrize("source, said", [("call", "start-up and step 0"), ("module", "start-up and calls that are not counted"),
                                          ("api", "start-up and step 0")])
def test_what_lies_before_steps_that_are_calls_is_told_as_calls(tmp_path, source, said):
    """Calls of a model count from the 17th on: the first have no number of a step. Those of a named function all count."""
    marks = [event(f"ProfilerStep#{i}", "user_annotation", START_UP + i * STEP, STEP, **({} if i else {"partial": "start-up"})) for i in range(STEPS)]
    path = write(tmp_path / "a.pt.trace.json", training() + marks, kprof={"step_source": source})
    assert re.search(rf"^outside +101 ms before step 1 \({said}\), 0 ms after step 3", told("report", path), re.M)


def test_the_rows_are_those_of_the_steps_and_step_all_gives_all(trace):
    said = json.loads(told("report", "--json", "-n", "0", trace))
    rows = {row["name"]: row for row in said["rows"]}
    assert said["rows_of"] == "steps" and "aten::uniform_" not in rows
    assert (rows["aten::mm"]["self_ms"], rows["aten::mm"]["count"]) == (1.8, 3)
    assert rows["aten::mm"]["ms_a_step"] == pytest.approx(0.6)
    assert sum(row["self_percent"] for row in said["rows"]) == pytest.approx(100)
    everything = json.loads(told("report", "--json", "-n", "0", "--step", "all", trace))
    rows = {row["name"]: row for row in everything["rows"]}
    assert everything["rows_of"] == "all" and rows["aten::uniform_"]["self_ms"] == 50 and rows["aten::mm"]["count"] == 4
    assert rows["aten::mm"]["ms_a_step"] == pytest.approx(0.6)
    assert "aten::uniform_" in told("report", "--torch", trace)


def test_the_view_begins_with_the_steps(trace):
    tabs = {tab["tab"]: tab["rows"] for tab in json.loads(told("view", "--json", trace))["tabs"]}
    assert {row["name"] for row in tabs["Ops"]} == {"aten::mm", "Optimizer.step#SGD.step"}
    assert sum(row["total_ms"] for row in tabs["Tree"] if row["level"] == 0) == pytest.approx(3.0)
    assert tabs["Steps"][-1]["name"].startswith("all, with start-up") and tabs["Steps"][-1]["time_ms"] == 104.0


def test_events_and_slice_know_the_steps_of_an_optimizer(trace, tmp_path):
    lines = [json.loads(line) for line in told("events", "--step", "2", "--json", "--cat", "cpu_op", trace).splitlines()]
    assert [(line["name"], line["ts"]) for line in lines] == [("aten::mm", START_UP + 2 * STEP)]
    part = tmp_path / "part.pt.trace.json"
    told("slice", "--step", "2-3", trace, "-o", part)
    assert json.loads(told("report", "--json", "--step", "all", part))["rows"][0]["self_ms"] == 1.2
    for command in ("events", "slice"):
        done = harness.cli(command, "--step", "9", trace)
        assert done.returncode == 1 and "the trace has steps 1 to 3" in done.stderr and done.stdout == ""
    none = harness.cli("events", "--name", "nobody", trace)
    assert none.returncode == 1 and "no such event" in none.stderr and none.stdout == ""


# ---- what a DataLoader waits for, and programs without steps ----

@pytest.mark.parametrize("calls", [False, True])
def test_the_line_that_loads_is_named_or_the_line_before_it(tmp_path, calls):
    """Loading sleeps in line 9: with calls of Python that is seen, with stacks of ops only what line ran before."""
    events = []
    for i in range(3):
        at = 1000 * i
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 900),
                   event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", at + 10, 600),
                   event("aten::randn", "cpu_op", at + 20, 30, **{"Call stack": "train.py(8): __getitem__;train.py(14): main;"}),
                   event("aten::mm", "cpu_op", at + 650, 200, **{"Call stack": "train.py(15): main;"})]
        if calls:
            events += [event("<built-in function sleep>", "python_function", at + 60, 500, **{"Call stack": "train.py(9): __getitem__;train.py(14): main;"})]
    trace = write(tmp_path / "a.pt.trace.json", longer(events), with_stack=1)
    found = json.loads(told("advise", "--json", trace))["findings"][0]
    assert found["id"] == "data-loading"
    if calls:
        assert (found["line"], found["after"]) == ("train.py:9 __getitem__", None)
    else:
        assert found["after"] == "train.py:8 __getitem__" and "whether it waits or computes: kprof run --with-stack 1" in found["change"]


@pytest.mark.parametrize("items, after, until, told_as", [
    ([8], 8, 8, "around train.py:8 __getitem__"),  # the wait is between an item's op and the next item's
    ([8, 10], 10, 8, "between train.py:10 __getitem__ and train.py:8 __getitem__"),
    ([], None, None, None)])
def test_a_wait_between_items_is_told_by_the_ops_before_and_behind(tmp_path, items, after, until, told_as):
    events = []
    for i in range(3):
        at = 1000 * i
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 900),
                   event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", at + 10, 600, **{"Call stack": "train.py(14): main;"}),
                   *(event("aten::randn", "cpu_op", at + 60 + 100 * k + 10 * n, 5, **{"Call stack": f"train.py({line}): __getitem__;train.py(14): main;"})
                     for k in range(5) for n, line in enumerate(items)),
                   event("aten::stack", "cpu_op", at + 600, 5, **{"Call stack": "torch/collate.py(3): collate;train.py(14): main;"}),
                   event("aten::mm", "cpu_op", at + 650, 200, **{"Call stack": "train.py(15): main;"})]
    trace = write(tmp_path / "a.pt.trace.json", longer(events), with_stack=1)
    found = json.loads(told("advise", "--json", trace))["findings"][0]
    place = lambda line: line and f"train.py:{line} __getitem__"
    assert (found["id"], found["line"]) == ("data-loading", "train.py:14 main")
    assert (found["after"], found["until"]) == (place(after), place(until))
    line = "train.py:14 main" + (f", {told_as}" if told_as else "")
    assert f"    line    {line}\n" in told("advise", trace)


def longer(events):
    """Ten times as long: a step loads for more than a worker's hand-over costs."""
    return [{**e, "ts": 10 * e["ts"], "dur": 10 * e["dur"]} for e in events]


@pytest.mark.parametrize("call, said", [("<built-in function sleep>", "Loading waits for 100 %"),
                                        ("<built-in method read of _io.BufferedReader object at 0x7f00>", "reads files for 100 %"),
                                        ("train.py(4): decode", "Loading is computation"), (None, "--with-stack 1")])
def test_a_loader_without_workers_is_told_whether_its_items_wait(tmp_path, call, said):
    events = loading("_SingleProcessDataLoaderIter")
    events += [event(call, "python_function", 1000 * i + 60, 500) for i in range(3)] if call else []
    found = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", longer(events))))["findings"][0]
    assert found["id"] == "data-loading" and said in found["change"] and "Let workers load" in found["change"], found
    short = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events)))["findings"][0]
    assert short["change"].startswith("Make items cheaper first: ") and short["severity"] == "warning", short
    assert ("% waits (" in short["change"], "--with-stack 1" in short["change"]) == ("% waits (" in said, "--with-stack 1" in said)


def test_a_program_without_steps_says_how_to_count_them(tmp_path):
    trace = write(tmp_path / "a.pt.trace.json", [event("aten::mm", "cpu_op", 0, 10)], kprof={"version": "1"})
    assert "kprof run --schedule active=1000" in told("report", trace)
    assert "INCOMPLETE  no steps were found in the trace. To count calls of the model as steps" in told("advise", trace)
    child = write(tmp_path / "b.pt.trace.json", [event("aten::mm", "cpu_op", 0, 10)], kprof={"version": "1", "parent_pid": "7"})
    assert "INCOMPLETE  this is a worker" in told("advise", child)


@pytest.mark.parametrize("facts, named", [({}, "'call:*:CLASS.forward'"), ({"model": "mine:Net.forward"}, "call:mine:Net.forward")])
def test_the_hint_for_tokens_names_the_programs_own_model(tmp_path, facts, named):
    trace = write(tmp_path / "a.pt.trace.json", [event("aten::mm", "cpu_op", 0, 10)], kprof={"version": "1", **facts})
    said = told("report", trace)
    assert f"\n         For each token add --step {named}{'' if facts else ' with your model' + chr(39) + 's class'}; for your own function" in said and "gpt2" not in said, said


# ---- recordings without ops, and other words for -n ----

def test_functions_by_name_are_advised_by_their_time(tmp_path):
    trace = write(tmp_path / "a.pt.trace.json", [event("parse", "symbol", 100 * i, 50) for i in range(4)], kprof={"version": "1"})
    assert told("advise", trace) == "calls    4 of parse: 0.200 ms, 50.000 us each\nnext     kprof report has all of them\n"


def test_rows_are_counted_by_the_words_that_others_use(trace):
    few = told("report", "-n", "1", trace)
    assert "2 more rows" in few and few == told("report", "--top", "1", trace) == told("report", "--limit", "1", trace)
    assert told("report", "--torch", "-n", "1", trace) == told("report", "--torch", "--row-limit", "1", trace) != told("report", "--torch", trace)
    assert told("memory", "-n", "1", trace) == told("memory", "--row-limit", "1", trace)


# ---- which run is the latest ----

def test_a_run_that_left_nothing_is_not_mistaken_for_an_older_one(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    write(folder / "h_7.1790857026000000000.pt.trace.json", training())
    assert "written nothing" not in harness.cli("report", folder).stderr
    assert harness.cli("run", "-o", folder, "--", "/bin/true").returncode == 0
    for name in (folder, folder / "latest"):
        done = harness.cli("report", name)
        assert done.returncode == 0 and "the last run into" in done.stderr and "has written nothing; this is of an older one" in done.stderr
    write(folder / f"h_8.{time.time_ns()}.pt.trace.json", training())
    done = harness.cli("report", folder)
    assert "written nothing" not in done.stderr and f"more than one run; the latest alone: kprof report {folder}/latest" in done.stderr
    assert "more than one run" not in harness.cli("report", folder / "latest").stderr


# ---- who takes the memory ----

def test_memory_is_that_of_the_op_that_asked_with_its_shapes(tmp_path):
    events = []
    for i in range(3):
        at = 1000 * i
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 900),
                   event("aten::mm", "cpu_op", at + 10, 200, **{"Input Dims": [[4, 8], [8, 2]], "Call stack": "train.py(7): forward;"}),
                   event("aten::empty", "cpu_op", at + 20, 20, **{"Input Dims": [[], []], "Call stack": "train.py(7): forward;"}),
                   memory(at + 30, 1 << 20, 64 + i, 1 << 20), memory(at + 500, -(1 << 20), 64 + i, 0)]
    trace = write(tmp_path / "a.pt.trace.json", events, profile_memory=1, record_shapes=1, with_stack=1)
    first = json.loads(told("report", "--sort", "mem", "--json", trace))
    assert first["by"] == "shape"
    assert [(row["name"], row["shapes"], row["self_bytes"], row["line"]) for row in first["rows"][:1]] == [
        ("aten::mm", "[[4, 8], [8, 2]]", 3 << 20, "train.py:7 forward")]
    assert json.loads(told("report", "--sort", "mem", "--by", "op", "--json", trace))["by"] == "op"
    said = told("memory", trace)
    assert re.search(r"Allocated most.*\n +Bytes +Blocks.*\n +3\.00 MiB +3  train\.py:7 forward +aten::mm +\[\[4, 8\], \[8, 2\]\]", said)
    assert "Not recorded" not in said


def test_memory_and_report_have_the_same_rows_of_what_was_allocated_most(tmp_path):
    """An op of one shape that two lines call is one row in both, though each line alone is less than another op."""
    events, sizes = [], {"a": 3 << 20, "b": 2 << 20, "c": 2 << 20}
    for i, (what, line) in enumerate([("a", 5), ("b", 6), ("c", 7), ("b", 8)]):
        name, shapes = ("aten::relu", [[9]]) if what == "a" else ("aten::mm", [[4, 8], [8, 2]])
        at = 1000 * i
        events += [event(name, "cpu_op", at + 10, 200, **{"Input Dims": shapes, "Call stack": f"train.py({line}): forward;"}),
                   memory(at + 30, sizes[what], 64 + i, 1 << 20)]
    trace = write(tmp_path / "a.pt.trace.json", events, profile_memory=1, record_shapes=1, with_stack=1)
    rows = [(row["name"], row["self_bytes"]) for row in json.loads(told("report", "--sort", "mem", "--json", trace))["rows"]]
    assert rows[:2] == [("aten::mm", 6 << 20), ("aten::relu", 3 << 20)]
    said = told("memory", trace).split("Allocated most")[1]
    assert re.findall(r"^ +(\d)\.00 MiB +(\d)  .*?(aten::\w+)", said, re.M) == [("6", "3", "aten::mm"), ("3", "1", "aten::relu")]
    assert re.search(r"train\.py:\d forward, and 2 more +aten::mm ", said) and "At op's end" not in said  # all of it was there then


def test_memory_has_one_row_for_all_shapes_of_an_op_and_what_it_kept(tmp_path):
    events = []
    for i, (shapes, kept) in enumerate((([[4, 8], [8, 2]], True), ([[4, 8], [8, 9]], True), ([[4, 8], [8, 9]], False))):
        at = 1000 * i
        events += [event("aten::mm", "cpu_op", at + 10, 200, **{"Input Dims": shapes}), memory(at + 30, 1 << 20, 64 + i, 1 << 20)]
        events += [] if kept else [memory(at + 90, -(1 << 20), 64 + i, 0)]
    trace = write(tmp_path / "a.pt.trace.json", events, profile_memory=1, record_shapes=1, with_stack=1)
    said = told("memory", trace).split("Allocated most")[1]
    assert re.findall(r"^ +(\d)\.00 MiB +(\d)\.00 MiB +(\d)  .*?(aten::\w+) +(\[\[4, 8\], \[8, 9\]\])", said, re.M) == [("3", "2", "3", "aten::mm", "[[4, 8], [8, 9]]")], said
    assert "\n  At op's end: " in said and "kprof report --sort mem --by op " in said
    row, = (row for row in json.loads(told("report", "--sort", "mem", "--by", "op", "--json", trace))["rows"] if row["name"] == "aten::mm")
    assert row["self_bytes"] == 2 << 20


def test_a_name_is_cut_between_its_letters(tmp_path):
    events = [e for i in range(3) for e in (event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 900), event("x" + 60 * "é" + "y", "cpu_op", 1000 * i, 800))]
    trace = write(tmp_path / "a.pt.trace.json", events)
    said = subprocess.run([harness.KPROF, "diff", "--all", trace, trace], capture_output=True, env=harness.clean_environment()).stdout.decode()
    row, = (line for line in said.splitlines() if line.startswith("x"))
    assert row.split()[0].startswith("xé") and row.split()[0].endswith("éy") and ".." in row.split()[0] and len(row.split()[0]) == 44, row


def test_lines_are_told_as_a_reader_says_them(tmp_path):
    """Backward stands before its line, a script run as ../train.py has its name, and an op of two lines leads to them."""
    events = []
    for i, line in enumerate((5, 6)):
        forward = {"Sequence number": i + 3, "Fwd thread id": 0, "Call stack": f"job/../train.py({line}): forward;job/../train.py(9): <module>"}
        events += [event("aten::mm", "cpu_op", 1000 * i, 200, **forward),
                   event("MmBackward0", "cpu_op", 1000 * i + 300, 300, 2, **{"Sequence number": i + 3, "Fwd thread id": 1}),
                   event("aten::mm_backward", "cpu_op", 1000 * i + 310, 280 - 100 * i, 2)]
    trace = write(tmp_path / "a.pt.trace.json", events, with_stack=1)
    said = told("report", trace)
    assert re.search(r"^aten::mm_backward .*  backward of train\.py:5 forward, and 1 more$", said, re.M), said
    assert "\nlines of one operator: kprof report --within aten::mm_backward --by line\n" in said
    lines = told("report", "--within", "aten::mm_backward", "--by", "line", trace)
    assert re.search(r"^backward of train\.py:5 forward +0\.280 ", lines, re.M) and "lines of one op" not in lines, lines


def test_memory_without_shapes_says_first_which_setting_shows_them(trace, tmp_path):
    assert "Not recorded: shapes (--record-shapes), your lines (--with-stack ops)" in told("memory", trace).splitlines()[4]
    none = write(tmp_path / "none.pt.trace.json", [event("aten::mm", "cpu_op", 0, 10)])
    done = harness.cli("report", "--sort", "mem", none)
    assert done.returncode == 1 and "record with --profile-memory" in done.stderr and done.stdout == ""


def test_memory_begins_with_the_steps_where_they_have_the_peak(trace, tmp_path):
    assert told("memory", trace).startswith("Steps 1 to 3: 3.0 of the recording's 104.0 ms (--step all shows all)\n")
    assert told("memory", trace, "--step", "all").startswith("CPU: peak 1.00 MiB")
    assert told("memory", trace, "--step", "2").startswith("Step 2: ") and told("memory", trace, "--steps", "2").startswith("Step 2: ")
    assert "Shown: steps 1 to 3, 3.00 ms." in told("memory", trace, "--html")
    early = write(tmp_path / "early.pt.trace.json", training(peak_at_start=True))
    assert told("memory", early).startswith("CPU: peak 9.00 MiB at 0.0")


def test_memory_has_one_clock_in_text_page_and_drawing(trace):
    """The profiler's start, which lies before the first step; a window's begin would be another."""
    at, = re.findall(r"peak .* MiB at ([0-9.]+ ms) after the profiler's start \(step \d+\)", told("memory", trace))
    assert float(at.split()[0]) > 1
    assert f": peak 1.00 MiB at {at} after the profiler's start</text>" in told("memory", trace, "--svg")
    page = told("memory", trace, "--html")
    assert f"<p>At {at}" in page and "after the profiler's start." in page


def test_the_page_says_when_its_times_begin(tmp_path):
    events = [event("PyTorch Profiler (0)", "Trace", 100, 5000), event("aten::mm", "cpu_op", 350, 10)]
    told("html", write(tmp_path / "a.pt.trace.json", events), "-o", tmp_path / "page.html")
    assert head_of(tmp_path / "page.html", rb'"zero":(-?\d+)') == (250_000,)  # its first event, after the profiler's start


def test_the_page_begins_with_the_steps(trace, tmp_path):
    for flags, start in (([], (0, 2)), (["--step", "2"], (1, 1)), (["--step", "all"], None)):
        told("html", trace, *flags, "-o", tmp_path / "page.html")
        assert start_of(tmp_path / "page.html") == start
    none = harness.cli("html", trace, "--step", "9", "-o", tmp_path / "none.html")
    assert none.returncode == 1 and not (tmp_path / "none.html").exists()


# ---- ranks ----

def rank(folder, number, waits, busy=900, **head):
    events = []
    for i in range(len(waits)):
        events += [event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000), event("aten::mm", "cpu_op", 1000 * i, busy - waits[i]),
                   event("gloo:all_reduce", "user_annotation", 1000 * i + busy - waits[i], waits[i], tid=2)]
    return write(folder / f"h_r{number}_{number + 7}.179085702600000000{number}.pt.trace.json", events,
                 distributedInfo={"rank": number, "world_size": 2}, **head)


@pytest.mark.parametrize("had_us, own_us, said", [
    (3000, 0, "The job's 2 ranks on this machine ran 4 threads on 2 cores and had 50 % of their time; other programs or a container limit may have had the rest"),
    (3000, 3000, "The job's 2 ranks on this machine ran 4 threads on 2 cores and had 100 % of their time. Other threads of this program ran for 3 ms together"),
    (600, 0, "Other programs or a container limit used the cores: the job's 2 ranks on this machine ran 4 threads on 2 cores and had 10 % of their time")])
def test_the_ranks_of_one_machine_are_no_other_programs_to_one_another(had_us, own_us, said, tmp_path):
    """Of 6 ms on two cores. Both lack a core alike, and none is late."""
    facts = {"version": "1", "cores": "2", "busy_threads": "2", "omp_num_threads": "1", "torch_threads": "1", "core_had_us": had_us, "core_waited_us": 2 * had_us,
             "core_others_us": own_us}
    folder = tmp_path / "run"
    folder.mkdir()
    for number in range(2):
        rank(folder, number, [500 if (i + number) % 2 else 480 for i in range(6)], host_name="h", kprof=facts)
    both = told("advise", folder)
    assert both.count(said) == 2 and both.count("each rank had no CPU core for 67 % of the time that it wanted one") >= 2 and "rank 1 had no CPU core" not in both, both
    assert said.split(" ran for ")[0] in told("advise", folder) and "other ranks of the job" not in both
    alone = told("advise", next(folder.iterdir()))
    assert ("Other threads of this program ran for 3 ms" if own_us else "Other programs, other ranks of the job or a container limit used the cores") in alone, alone
    assert harness.cli("html", folder, "-o", tmp_path / "page.html").returncode == 0


def test_a_collective_of_a_backend_has_the_line_of_the_op_that_started_it(tmp_path):
    """The range on a thread of gloo has no call stack."""
    events = []
    for at in range(0, 6000, 1000):
        events += [event(f"ProfilerStep#{at // 1000}", "user_annotation", at, 1000), event("aten::mm", "cpu_op", at, 400),
                   event("c10d::barrier", "cpu_op", at + 410, 5, **{"Call stack": "train.py(9): main"}), event("gloo:barrier", "user_annotation", at + 420, 500, tid=2)]
    finding, = [found for found in json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events)))["findings"] if found["id"] == "exposed-communication"]
    assert (finding["where"], finding["line"]) == ("gloo:barrier", "train.py:9 main"), finding


def test_all_ranks_together_say_which_came_last(tmp_path):
    rank(tmp_path, 0, [500, 600, 550])
    rank(tmp_path, 1, [20, 30, 20])
    first = r"ranks    rank 1 arrived last at 3 of 3 collectives; waited for others per step: rank 0 527 us, rank 1 0(\.0*)? \w+\n" \
        r" {9}rank 1 spends 0\.9 ms .*, the other rank 0\.4 ms; aten::mm takes 0\.9 ms .*, 0\.4 ms on the other\. .* kprof run --record-shapes .*\n"
    said = told("advise", tmp_path)
    assert re.match(first, said) and "CRITICAL  the step waits" in said and "for rank 1, which arrived last at 3 of 3 collectives" in said
    assert "change  Even out the work" in said
    assert re.search(first + r"\Z", told("report", tmp_path)) and "55.0 % communication between ranks" in told("report", tmp_path)
    assert told("report", tmp_path).count("\ngloo:... runs on its own threads, at the same time as other rows") == 2
    done = harness.cli("html", tmp_path, "-o", tmp_path / "page.html")
    assert done.returncode == 0 and "latest run: 2 ranks" in done.stderr and (tmp_path / "page.html").read_text().count('class="rank"') == 2


def test_the_rank_that_comes_last_waits_for_no_other(tmp_path):
    """With the traces of all ranks: alone each may wait for others or for the network."""
    paths = [rank(tmp_path, number, waits) for number, waits in enumerate(([500, 600, 550], [60, 70, 80]))]
    found = [json.loads(line)["findings"] for line in told("advise", "--json", *paths).splitlines()]
    waits = [f["what"] for of in found for f in of if f["id"] == "exposed-communication"]
    assert waits[0] == "the step waits for rank 1, which arrived last at 3 of 3 collectives; the wait is 87 % of the collective time"  # (440 + 530 + 470) of 1650
    assert len(waits) == 2 and "waits for the network (" in waits[1] and waits[1].endswith("arrived last at 3 of 3 collectives)")
    assert [f["id"] for f in found[1]] == ["late-rank", "exposed-communication"]
    assert "Even out" in found[0][0]["change"] and "Even out" in found[1][0]["change"] and "Even out" not in found[1][1]["change"]
    assert (found[1][0]["step_ms"], found[1][0]["share"]) == pytest.approx((0.48, 0.48))  # what the other waits for it
    said = told("advise", *paths)
    assert said.count("waits for rank 1") == 2 and "waits for other ranks" not in said and "WARNING  the step waits" in said and "rank arrived last at 3 of 3 collectives): 70.0 us per step" in said
    assert said.index("ranks    rank 1") < said.index(paths[0].name) < said.index("for rank 1") < said.index(paths[1].name) < said.index("for the network (")
    alone = told("advise", paths[1])
    assert "or for the network" in alone


@pytest.mark.parametrize("aside, verdict", [(400, "nothing found: no known mistake"), (100, "healthy: ")])
def test_a_step_that_is_no_part_of_a_training_is_not_called_healthy(aside, verdict, tmp_path):
    """A filter over the input on the training thread is no mistake that a rule knows."""
    events = []
    for i in range(4):
        parts = [("aten::conv1d", "cpu_op", aside, {"Call stack": "audio.py(37): room;train.py(9): main"}),
                 ("aten::linear", "cpu_op", 480 - aside, {"Call stack": "nn.Module: Linear_0;train.py(9): main"}),
                 ("autograd::engine::evaluate_function: LinearBackward0", "cpu_op", 400, {"Sequence number": i, "Fwd thread id": 1}),
                 ("Optimizer.step#SGD.step", "user_annotation", 100, {})]
        at = 1000 * i
        events.append(event(f"ProfilerStep#{i}", "user_annotation", at, 1000))
        for name, category, duration, args in parts:
            events.append(event(name, category, at, duration, **args))
            if category == "user_annotation":
                events.append(event("aten::_foreach_add_", "cpu_op", at, duration))
            at += duration
    said = told("advise", write(tmp_path / "a.pt.trace.json", events, with_stack=1))
    assert f"verdict  {verdict}" in said, said
    assert ("But operators take 40 % of a step outside of forward, backward, optimizer and data loading, most of it at audio.py:37 room\n" in said) == (aside == 400)
    answer = json.loads(told("advise", "--json", tmp_path / "a.pt.trace.json"))
    assert answer["elsewhere_line"] == ("audio.py:37 room" if aside == 400 else None)


@pytest.mark.parametrize("stacks, most", [(1, "most of a step, lines with their backward: head.py:7 loss 60 %, body.py:3 forward 30 %\n"),
                                          (0, "most of a step: LinearBackward0 40 %, aten::linear 30 %, aten::cross_entropy 20 %\n")])
def test_a_line_counts_with_its_backward_and_without_lines_operators_are_named(stacks, most, tmp_path):
    events = []
    for i in range(4):
        parts = [("aten::linear", 300, 2 * i, "body.py(3): forward;train.py(9): main"), ("aten::cross_entropy", 200, 2 * i + 1, "head.py(7): loss;train.py(9): main")]
        at = 1000 * i
        events.append(event(f"ProfilerStep#{i}", "user_annotation", at, 1000))
        for name, duration, number, stack in parts:
            events.append(event(name, "cpu_op", at, duration, **{"Sequence number": number, "Fwd thread id": 0}, **({"Call stack": stack} if stacks else {})))
            at += duration
        events.append(event("LinearBackward0", "cpu_op", at, 400, **{"Sequence number": 2 * i + 1, "Fwd thread id": 1}))
    assert f"note     {most}" in told("advise", write(tmp_path / "a.pt.trace.json", events, with_stack=stacks))


def test_the_late_rank_is_not_healthy(tmp_path):
    """Its own trace computes all the time. Found in any order of the traces."""
    paths = [rank(tmp_path, number, waits, 980) for number, waits in enumerate(([500, 600, 550], [20, 30, 20]))]
    assert "verdict  healthy: " in told("advise", paths[1])
    for order in (paths, paths[::-1]):
        said = told("advise", *order)
        of = said[said.index(paths[1].name):].split("\nNot recorded, so not checked")[0]
        assert "healthy" not in of and "CRITICAL  the other rank waits" in of and "which arrived last at 3 of 3 collectives: 527 us per step, 52.7 % (3 of 3 steps)" in of
        lines = [json.loads(line) for line in told("advise", "--json", *order).splitlines()]
        late, = (line for line in lines if line["file"] == str(paths[1]))
        assert late["verdict"] == "found" and [f["id"] for f in late["findings"]] == ["late-rank"]


def test_overlap_is_advised_where_no_rank_is_late_alone(tmp_path):
    """What ranks wait for one that is late is no transfer that could run beside backward."""
    late, even = tmp_path / "late", tmp_path / "even"
    for folder, waits in ((late, ([500, 600, 550], [20, 30, 20])), (even, ([500, 20, 550, 20], [20, 500, 20, 550]))):
        folder.mkdir()
        for number, each in enumerate(waits):
            rank(folder, number, each)
    assert "bucket_cap_mb" not in told("advise", late)
    said = told("advise", even)
    assert "late by its own work: let communication overlap" in said
    assert "none of which is late" in said and "93 % of the collective" in said and "ms of each step" not in said and "is late:" not in said, said


def test_of_a_function_in_stacks_alone_the_ops_are_told_and_no_wall_time(tmp_path):
    """With stacks of ops nothing tells how long the function lasts: of its 900 us two ops of 100 us are known."""
    events = []
    for i in range(3):
        events.append(event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000))
        events += [event("aten::mm", "cpu_op", 1000 * i + at, 100, **{"Call stack": "train.py(5): validate;train.py(9): main;"}) for at in (50, 850)]
    trace = write(tmp_path / "a.pt.trace.json", events, with_stack=1)
    said = told("report", "--within", "validate", trace)
    assert re.search(r"^ops +600 us, 3 steps \(0 to 2\), within validate \(only its operators; its duration was not recorded: use "
                     r"--with-stack 1 or record_function\)$", said, re.M), said
    assert "wall" not in said and "no operator runs" not in said
    assert re.search(r"^time .* 20\.0 % in operators|^time +20\.0 % in operators", told("report", trace), re.M)


def test_a_wait_outside_of_operators_is_not_said_to_be_one(tmp_path):
    """torch.cuda.synchronize() calls CUDA in no operator."""
    launched = [event("aten::mm", "cpu_op", 0, 30), event("cudaLaunchKernel", "cuda_runtime", 5, 10, correlation=1),
                event("gemm", "kernel", 20, 960, tid=7, correlation=1, device=0, stream=7)]
    inside = write(tmp_path / "a.pt.trace.json", [*launched, event("aten::item", "cpu_op", 30, 970), event("cudaStreamSynchronize", "cuda_runtime", 40, 950, correlation=2)])
    outside = write(tmp_path / "b.pt.trace.json", [*launched, event("cudaDeviceSynchronize", "cuda_runtime", 30, 970, correlation=2)])
    assert re.search(r"^time +100\.0 % in operators, ", told("report", inside), re.M)
    assert re.search(r"^time +100\.0 % in operators and calls of the GPU's runtime, .*\nGPU .* the host waits for it 97\.0 %$", told("report", outside), re.M)


def test_a_host_that_waits_for_a_gpu_that_is_idle_says_what_for(tmp_path):
    """Each of ten waits takes 90 us: for a kernel of 2 us, or for work of which none is in the trace."""
    def waiter(name, is_recorded):
        events = [event("gemm", "kernel", 997, 3, tid=7, device=0, stream=7)]
        for at in range(0, 1000, 100):
            events.append(event("cudaStreamSynchronize", "cuda_runtime", at + 6, 90, correlation=at + 2))
            if is_recorded:
                events += [event("cudaLaunchKernel", "cuda_runtime", at, 5, correlation=at + 1), event("gemm", "kernel", at + 80, 2, tid=7, correlation=at + 1, device=0, stream=7)]
        return write(tmp_path / name, events)

    delays, others = waiter("a.pt.trace.json", True), waiter("b.pt.trace.json", False)
    found = re.search(r"^GPU      busy ([\d.]+) %.*", told("report", delays), re.M).group()
    assert found.endswith("(delays of launches and copies, which take longer than their work)"), found
    waits, idle = re.search(r"waits for it ([\d.]+) %, for ([\d.]+) % with no recorded work on it", found).groups()
    assert float(waits) == 90.0 and float(idle) == 88.0, found
    given = json.loads(told("report", "--json", delays))
    assert given["gpu_wait_idle_ms"] == pytest.approx(0.88, abs=0.001)
    assert "(work of another process, or that is not in this trace)" in told("report", others)


def test_kernels_that_were_launched_and_not_recorded_are_told(tmp_path):
    """torch.profiler without CUPTI, as in WSL: the calls are there, and no work of the GPU."""
    events = []
    for i in range(2):
        events += [event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000), event("aten::mm", "cpu_op", 1000 * i, 900),
                   event("cudaLaunchKernel", "cuda_runtime", 1000 * i + 5, 10, correlation=i + 1)]
    trace = write(tmp_path / "a.pt.trace.json", events)
    assert "\nGPU      its work is not known: 2 of the 2 kernels that were launched are not in the trace\n" in told("report", trace)
    assert "Its profiler could not record the GPU: `kprof doctor` there says why\n" in told("advise", trace)
    cpu = write(tmp_path / "b.pt.trace.json", [e for e in events if e["cat"] != "cuda_runtime"])
    assert "\nGPU " not in told("report", cpu) and "could not record" not in told("advise", cpu)


def test_a_thread_that_torch_does_not_know_is_no_main_thread(tmp_path):
    """torch writes 0 as process and thread of one that runs no op, as tqdm's monitor: its wait is no time of the program."""
    monitor = [{**event(name, "python_function", ts, 1000 - ts), "pid": 0, "tid": 0}
               for ts, name in enumerate(["threading.py(1032): _bootstrap", "tqdm/_monitor.py(60): run", "threading.py(359): wait"])]
    work = [event("aten::mm", "cpu_op", 100, 500, tid=5), event("aten::add", "cpu_op", 600, 300, tid=5)]
    trace = write(tmp_path / "a.pt.trace.json", [*monitor, *work])
    report = told("report", trace)
    assert "threading.py(359): wait" not in report and re.search(r"^aten::mm +0\.500 +62\.\d ", report, re.M), report
    stacks = harness.cli("stacks", trace)
    assert "aten::mm 500" in stacks.stdout and "1 other thread, 1.0 ms in calls, left out" in stacks.stderr, stacks.stdout + stacks.stderr


def test_long_names_of_one_family_are_told_apart(tmp_path):
    """Kernels of rocBLAS and Inductor have most of their names in common: cut to the same they would be one row for the reader."""
    tiles = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT{}x16x64_MI16x16x1_SN_LDSB1_AFC0_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVB0_EPS0_{}"
    names = [tiles.format(256, "WG32"), tiles.format(256, "WG64"), tiles.format(128, "WG64"), "triton_red_fused__unsafe_view_add_addmm_mul_native_layer_norm_19",
             "triton_red_fused__unsafe_view_add_addmm_mul_native_layer_norm_20", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"]
    trace = write(tmp_path / "a.pt.trace.json", [event(name, "kernel", 100 * i, 90 - i, tid=7, device=0, stream=7) for i, name in enumerate(names)])
    for flags in ((), ("--by", "kernel")):
        shown = [line.split("  ")[0] for line in told("report", *flags, trace).splitlines() if line.startswith(("Cijk", "triton", "void", "vectorized"))]
        assert len(shown) == len(set(shown)) == 6, shown
        assert max(map(len, shown)) <= (72 if flags else 52)
    assert any(re.match("Cijk_.*MT128x16x64", name) for name in shown) and any(name.endswith("_19") for name in shown), shown


def test_a_kernel_by_its_linkers_name_is_shown_as_c(tmp_path):
    """ROCm's tracer writes some kernels so."""
    trace = write(tmp_path / "a.pt.trace.json", [event("_ZN5aiter10add_kernelIfEEvPT_i", "kernel", 0, 90, tid=7, device=0, stream=7)])
    assert re.search(r"^void aiter::add_kernel<float>\(float\*, int\) +0\.090 ", told("report", trace), re.M)
    assert re.search(r"^aiter::add_kernel<float>\(float\*, int\) +0\.090 ", told("report", "--by", "kernel", trace), re.M)
    assert json.loads(told("report", "--json", trace))["rows"][0]["name"] == "_ZN5aiter10add_kernelIfEEvPT_i"  # as the file has it


def test_counts_of_one_are_in_the_singular(tmp_path):
    events = []
    for i in range(2):
        events += [event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000), event("aten::mm", "cpu_op", 1000 * i, 30),
                   event("cudaLaunchKernel", "cuda_runtime", 1000 * i + 5, 10, correlation=i + 1),
                   event("gemm", "kernel", 1000 * i + 20, 100, tid=7, correlation=i + 1, device=0, stream=7)]
    said = told("advise", write(tmp_path / "a.pt.trace.json", events))
    assert "at most 1 launch waits\n" in said, said
    assert " of 2 steps)\n" in said, said


def test_a_loop_without_calls_between_two_ops_is_told_from_calls(tmp_path):
    """The recording began in the optimizer's call, in line 13: a step's marker begins there, too, and main() was there then."""
    def call(name, ts, dur, line):
        return event(name, "python_function", ts, dur, **{"CallFrom": f"train.py:{line}"})

    events = [call("train.py(16): <module>", 0, 40_000, 16), call("train.py(13): main", 0, 39_999, 16)]
    for i in range(4):
        at = 10_000 * i + 5
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 9_980, **{"Call stack": "train.py(13): main;"}), call("<built-in method randn>", at + 20, 100, 6),
                   event("aten::randn", "cpu_op", at + 30, 80), call("<built-in function linear>", at + 9_000, 300, 11), event("aten::linear", "cpu_op", at + 9_100, 100)]
    trace = write(tmp_path / "a.pt.trace.json", events, with_stack=1, kprof={"cores": 2})
    lines = told("report", "--by", "line", trace)
    assert re.search(r"^train\.py main +38\.\d+ ", lines, re.M) and "def main" not in lines and "train.py:13" not in lines, lines
    assert re.search(rf"^ProfilerStep\*, {GAP} .* train\.py main$", told("report", trace), re.M)
    assert "its functions: " not in lines
    of_ops = [event("aten::mm", "cpu_op", 10 * i, 1, **{"Call stack": "train.py(8): main"}) for i in range(4)]
    of_ops += [event(f"ProfilerStep#{i}", "user_annotation", 20 * i, 20) for i in range(2)]
    lines = told("report", "--by", "line", write(tmp_path / "ops.pt.trace.json", of_ops, with_stack=1, kprof={"cores": 2}))
    assert re.search(r"^line .*\noutside any line of", lines, re.M), lines
    assert "\noutside any line of" in lines and " kprof run --with-stack 1\n" in lines
    found = json.loads(told("advise", "--json", trace))["findings"][0]
    assert re.fullmatch(r"no operator runs, 9\.\d+ ms of it in the function's own Python code", found["what"]), found
    assert (found["after"], found["line"]) == ("train.py:6 main", "train.py:11 main") and "--with-stack" not in found["change"], found


# ---- phases ----

def test_the_report_of_phases_is_a_row_each(tmp_path):
    for number, (phase, lengths) in enumerate([("train", [1000, 3000]), ("validate", [500]), ("train", [2000])]):
        events, at = [], 10000 * number
        for i, length in enumerate(lengths, 2 * number):
            events += [event(f"ProfilerStep#{i}", "user_annotation", at, length), event("aten::mm", "cpu_op", at, length // 2)]
            at += length
        write(tmp_path / f"h_{phase}_7.179085702600000000{number}.pt.trace.json", events, kprof={"phase": phase})
    said = told("report", tmp_path)
    assert re.search(r"^train +2 +0 +- +3 +2\.000 +- +50\.0 %", said, re.M) and re.search(r"^validate +1 +0 +- +1 +0\.500 +- +50", said, re.M), said
    assert "of time: not known" in said
    assert re.search(r"^train +2 +0 +- +3 +2\.000 +92\.3 % ", told("report", "--from", "0", tmp_path), re.M), "of what was asked for"
    assert "an active= of more steps" in said
    assert "aten::mm" not in said and "kprof report --phase train" in said
    train = told("report", tmp_path, "--phase", "train")
    assert train.startswith("phase train of 2 traces:\n") and ", 3 steps (0 to 4)\n" in train, train
    assert re.search(r"^aten::mm +3\.000 +50\.0 +3\.000 +3 ", train, re.M) and train.count("aten::mm") == 1, train
    assert len(told("report", tmp_path, "--phase", "train", "--json").splitlines()) == 2, "a line a trace"


def phase_window(folder, number, phase, steps, tail, run):
    """A window with so many steps of 1 ms, each half an op, and a tail in no step and no op. run: (run, part, gapless, leaving)."""
    at = 10_000 * number
    events = [event("PyTorch Profiler (0)", "Trace", at, 1000 * steps + tail)]
    for i in range(steps):
        events += [event(f"ProfilerStep#{10 * number + i}", "user_annotation", at + 1000 * i, 1000), event("aten::mm", "cpu_op", at + 1000 * i, 500)]
    told_of_run = dict(zip(("phase_run", "phase_part", "phase_gapless", "phase_leaving"), run))
    return write(folder / f"h_{phase}_7.179085702600000000{number}.pt.trace.json", events, kprof={"phase": phase, **told_of_run})


def test_all_time_of_a_phase_is_in_its_rows_and_a_run_has_its_length(tmp_path):
    for number, tail in enumerate((500, 700, 900)):
        phase_window(tmp_path, 2 * number, "train", 2, 0, (1, number + 1, 1, 1 if number < 2 else 2))
        phase_window(tmp_path, 2 * number + 1, "validate", 2, tail, (number + 1, 1, 1, 2))
    said = told("report", tmp_path)
    assert re.search(r"^train +3 +1 +6\.000 +6 +1\.000 +42\.6 % +50\.0 %", said, re.M), said
    assert re.search(r"^validate +3 +3 +2\.700 +6 +1\.000 +57\.4 % +37\.0 %", said, re.M), said
    validate = told("report", "--phase", "validate", tmp_path)
    assert ": wall time 8.10 ms, 6 steps (10 to 51)\na run    2.70 ms (median of 3; 2.50 ms to 2.90 ms), from the start" in validate
    assert "\noutside  2.10 ms outside of the steps (25.9 %) is in the table" in validate, validate
    assert re.search(rf"^{GAP}, outside the steps +2\.100 +25\.9 +2\.100 +0 +- +0\.000 +0\.700$", validate, re.M), validate
    assert sum(float(row[1]) for row in re.finditer(r"^(?:aten|Prof|outside any).*?([\d.]+) +[\d.]+ +[\d.]+ +\d+ ", validate, re.M)) == pytest.approx(8.1), validate
    assert "a run    6.00 ms, from the start" in told("report", "--phase", "train", tmp_path)
    heads = [json.loads(line) for line in told("report", "--phase", "validate", "--json", tmp_path).splitlines()]
    assert [(head["runs"], head["ms_a_run"]) for head in heads] == [(1, 2.5), (1, 2.7), (1, 2.9)]


def test_advice_of_a_phase_says_what_lies_in_no_step(tmp_path):
    for number, tail in enumerate((500, 700, 900)):
        trace = phase_window(tmp_path, number, "validate", 2, tail, (number + 1, 1, 1, 2))
    report = r" .*: kprof report --phase validate\n"
    assert re.search(r"note     25\.9 % of the phase \(2\.1 ms\)" + report, told("advise", tmp_path))
    assert re.search(r"note     31\.0 % of the phase \(0\.9 ms\)" + report, told("advise", trace))
    run = harness.cli("run", "--advise", "-o", tmp_path / "new", "--", "sh", "-c", f"mkdir {tmp_path}/new; cp {trace} {tmp_path}/new").stderr
    assert re.search(r"kprof: 31\.0 % of the phase \(0\.9 ms\)" + report, run)
    one = json.loads(told("advise", "--json", trace))
    assert one["outside"].startswith("31.0 % of the phase")
    train = phase_window(tmp_path, 5, "train", 2, 100, (1, 1, 1, 2))
    assert json.loads(told("advise", "--json", train))["outside"] is None and "in no step" not in told("advise", train)


def test_within_takes_the_name_of_a_phase(tmp_path):
    for number, phase in enumerate(("train", "validate", "train", "validate")):
        phase_window(tmp_path, number, phase, 2, 100, (number // 2 + 1, 1, 1, 2))
    done = harness.cli("report", "--within", "validate", tmp_path)
    assert done.returncode == 0 and "validate is a phase" in done.stderr and done.stderr.count("is a phase") == 1, done.stderr
    assert done.stdout == told("report", "--phase", "validate", tmp_path)
    assert told("report", "--within", "train", "--phase", "train", tmp_path) == told("report", "--phase", "train", tmp_path)
    neither = harness.cli("report", "--within", "eval", tmp_path)
    assert neither.returncode == 1 and neither.stderr.count("function is named eval") == 1 and not neither.stdout, neither.stderr
    assert "--phase NAME, of train, validate" in neither.stderr
    some = told("report", "--within", "aten::mm", tmp_path)
    assert re.search(r"^train +2 +0 +- +4 +0\.500 +50\.0 % +100\.0 %", some, re.M), some


def test_advice_has_a_block_for_each_phase_over_all_its_traces(tmp_path):
    """Windows of one step each: together they have enough. Kernels with the ids of another window stay with their own ops."""
    at = 0
    for number, (phase, busy, gap) in enumerate([("train", 900, 100), ("validate", 1000, 3000), ("train", 900, 100), ("validate", 1000, 5000)]):
        events = [event("ProfilerStep#0", "user_annotation", at, busy + gap), event(f"aten::{phase}", "cpu_op", at + gap, busy, **{"External id": 5})]
        write(tmp_path / f"h_{phase}_7.179085702600000000{number}.pt.trace.json", events, kprof={"phase": phase})
        at += 10_000
    said = told("advise", tmp_path)
    train, validate = said.split("phase    validate: 2 steps in 2 traces\n")
    assert train.startswith("phase    train: 2 steps in 2 traces\nverdict  healthy: ") and "\nstep     1.00 ms (mean of 2): operators 90.0 %" in train, said
    assert "  no operator runs" not in train and "INCOMPLETE  fewer" not in said
    assert validate.startswith("verdict  80 % of a step: ") and "step     5.00 ms (mean of 2): operators 20.0 %" in validate and "  no operator runs" in validate and "where   before aten::validate" in validate, said
    lines = told("advise", "--json", tmp_path).splitlines()
    assert len(lines) == 4 and all(json.loads(line)["steps"] == 1 for line in lines)


# ---- calls of what is asked for, the slowest step, threads that only wait ----

def slow_steps(lengths):
    """Steps of so many milliseconds, with an op in each that lasts nearly as long."""
    events, at = [], 1000
    for number, ms in enumerate(lengths, 3):
        events += [event(f"ProfilerStep#{number}", "user_annotation", at, ms * 1000), event("aten::mm", "cpu_op", at + 10, ms * 1000 - 100)]
        at += ms * 1000
    return events


def test_a_range_that_is_asked_for_has_its_calls_and_their_time(tmp_path):
    events = slow_steps([12] * 4)
    for i in range(4):
        events += [event("loss", "user_annotation", 1000 + 12000 * i + 20, 3000), event("loss", "user_annotation", 1000 + 12000 * i + 30, 1000)]
    trace = write(tmp_path / "a.pt.trace.json", events)
    assert ", within loss: 4 calls, 3.00 ms each\n" in told("report", "--within", "loss", trace)
    assert ", within loss: 1 call, 3.00 ms each\n" in told("report", "--within", "loss", "--step", "4", trace)


def test_one_call_a_step_is_told_by_call_with_its_forward_passes(tmp_path):
    """Steps of an optimizer, of which two hold an evaluation: what is asked for is calls, not steps."""
    events, at = [], 1000
    for step in range(8):
        if step in (3, 5):
            events.append(event("tv.py(9): validate", "python_function", at, 1000))
            for batch in range(4):
                events += [event("nn.Module: Net_0", "python_function", at + 10 + 200 * batch, 100), event("nn.Module: Linear_0", "python_function", at + 20 + 200 * batch, 50),
                           event("nn.Module: Loss_0", "python_function", at + 120 + 200 * batch, 10)]
        events += [event("aten::mm", "cpu_op", at + 1100, 800), event("Optimizer.step#SGD.step", "user_annotation", at + 1950, 50)]
        at += 2000
    said = told("report", "--within", "validate", write(tmp_path / "a.pt.trace.json", events))
    assert ", within validate: 2 calls, 1.00 ms each (4 forward passes)\n" in said
    assert "call     1.00 ms (median; 1.00 ms to 1.00 ms)\n" in said and "optimizer" not in said
    assert re.search(r"count +longest ms +ms a call  line$", said, re.M), said


def test_what_lies_in_few_steps_names_these_and_all_numbers_are_of_its_calls(tmp_path):
    """One set: calls, wall time and rows. Those outside of whole steps are told, and --step all has them."""
    events = [event("save", "user_annotation", 100, 500)] + slow_steps([12] * 20)
    for step, calls in ((4, 2), (16, 1)):
        events += [event("save", "user_annotation", 1000 + 12000 * step + 2000 * i + 20, 1000) for i in range(calls)]
    trace = write(tmp_path / "a.pt.trace.json", events)
    said = told("report", "--within", "save", trace)
    assert "wall     3.00 ms, in 2 of 20 steps (7, 19), 1.2 % of all steps' time, within save: 3 calls, 1.00 ms each; outside whole steps 1 more call, 500 us (with it 1.5 %): --step all\n" in said
    assert "per step 1.50 ms (median; 1.00 ms to 2.00 ms)\n" in said
    row = re.search(r"^save +(.*)", said, re.M)[1].split()
    assert re.search(r"count +longest ms +ms a call +ms a step$", said, re.M) and row == ["3.000", "100.0", "3.000", "3", "1.000", "1.000", "1.500"], said
    whole = told("report", "--within", "save", "--step", "all", trace)
    assert ", 1.5 % of all steps' time" in whole and ", within save: 4 calls, 875 us each\n" in whole and re.search(r"count +longest ms +ms a call$", whole, re.M), whole
    one = json.loads(told("report", "--json", "--within", "save", trace))
    assert one["within"] == {"name": "save", "calls": 3, "ms_a_call": 1.0, "p50_ms": 1.0, "p90_ms": 1.0, "p99_ms": 1.0, "calls_are_cut": False, "calls_outside": 1, "of_steps": 20, "of_steps_time": 0.0125} and one["rows_of"] == "steps"
    assert {row["name"]: row["ms_a_call"] for row in one["rows"]}["save"] == pytest.approx(1.0)


def test_a_call_of_which_steps_have_a_part_is_told_with_its_whole_length(tmp_path):
    """Three calls of 50 ms with five optimizer's steps in each. Step 0 has no known begin: of the first call 10 ms are left out."""
    events = []
    for at in (0, 60_000, 120_000):
        events.append(event("train.py(3): train", "python_function", at, 50_000))
        for i in range(5):
            events += [event("aten::mm", "cpu_op", at + 10_000 * i, 9000), event("Optimizer.step#SGD.step", "user_annotation", at + 10_000 * i + 9000, 1000)]
    trace = write(tmp_path / "a.pt.trace.json", events)
    said = told("report", "--within", "train", trace)
    assert "wall     140 ms, 14 steps (1 to 14), 87.5 % of all steps' time, within train: 3 calls, 50.0 ms each; outside whole steps 10.0 ms: --step all\n" in said
    assert "per step 10.0 ms (median; 10.0 ms to 10.0 ms)\n" in said and "ms a call" not in said, said
    one = json.loads(told("report", "--json", "--within", "train", trace))
    assert (one["within"]["ms_a_call"], one["within"]["calls_are_cut"]) == (50.0, True) and "ms_a_call" not in one["rows"][0]
    whole = told("report", "--within", "train", "--step", "all", trace)
    assert ", within train: 3 calls, 50.0 ms each\n" in whole and "ms a call" in whole, whole
    later = told("report", "--within", "train", "--step", "7-14", trace)
    assert "wall     80.0 ms, 8 steps (7 to 14), 88.9 % of all steps' time, within train: 1 call, 50.0 ms each, of which a part" in later and "ms a call" not in later, later


def test_the_slowest_step_is_named_where_it_is_one(tmp_path):
    slow = told("report", write(tmp_path / "slow.pt.trace.json", slow_steps([12] * 14 + [84] + [12] * 5)))
    assert "step     12.0 ms (median; mean 15.6 ms; 12.0 ms to 84.0 ms). Slowest: step 17" in slow
    assert "slowest" not in told("report", write(tmp_path / "even.pt.trace.json", slow_steps([12, 13, 12, 14])))


@pytest.mark.parametrize("rows", [14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128])
def test_the_row_for_what_no_op_has_is_there_with_any_number_of_rows(tmp_path, rows):
    events = []
    for i in range(4):
        at = 1000 + 40_000 * i
        events += [event("Optimizer.step#SGD.step", "user_annotation", at, 1000)]
        events += [event(f"aten::op{k}", "cpu_op", at + 2000 + 100 * k, 50) for k in range(rows - 1)]
    said = told("report", "-n", "1", write(tmp_path / "a.pt.trace.json", events))
    assert re.search(rf"^{GAP} +{3 * (40 - 1 - 0.05 * (rows - 1)):.2f} ", said, re.M), said
    assert f"\n{rows} more rows" in said, said


def test_a_step_of_an_optimizer_says_what_it_is_and_has_a_row_for_its_gap(tmp_path):
    events = []
    for i in range(6):
        gap = 30_000 if i == 4 else 500
        events += [event("aten::mm", "cpu_op", 1000 + 40_000 * i + gap, 2000),
                   event("Optimizer.step#SGD.step", "user_annotation", 1000 + 40_000 * i + gap + 2000, 1000)]
    trace = write(tmp_path / "a.pt.trace.json", events)
    said = told("report", "--step", "4", trace)
    assert "step 4: from the end of optimizer step 3 to the end of 4, counted from 0\n" in said
    gap = re.search(rf"^{GAP} +([\d.]+) +([\d.]+)", said, re.M)
    ours = 40_000 + 30_000 - 500 - 2000 - 1000
    assert float(gap[1]) == pytest.approx(ours / 1000) and float(gap[2]) > 90, said
    all_steps = told("report", trace)
    assert float(re.search(rf"^{GAP} +([\d.]+)", all_steps, re.M)[1]) == pytest.approx(5 * 37 + 0.0, abs=0.01), all_steps
    assert "from the end of optimizer step" not in all_steps
    advice = told("advise", trace)
    assert advice.count("steps    each ends with its optimizer step, counted from 0: step 5 lasts from the end of 4 to the end of 5\n") == 1, advice


def test_a_thread_that_only_waits_costs_nothing(tmp_path):
    """tid 1 is the program's first thread: what it waits for is a part of the step."""
    wait = "<built-in method acquire of _thread.lock object at 0x7f0000000001>"
    own = {"Call stack": "train.py(5): idle;"}
    events = slow_steps([12] * 4) + [event(wait, "python_function", 1000, 40_000, tid=7, **own),
                                     event("threading.py(327): wait", "python_function", 1000, 40_000, tid=8, **own),
                                     event("busy.py(3): work", "python_function", 1000, 7000, tid=9, **own),
                                     event(wait, "python_function", 12_950, 30, **{"Call stack": "train.py(9): main;"})]
    trace = write(tmp_path / "a.pt.trace.json", events, with_stack=1)
    rows = {row["name"]: row["self_ms"] for row in json.loads(told("report", "--json", "--by", "line", "-n", "0", trace))["rows"]}
    assert rows["train.py:9 main"] == pytest.approx(0.03) and sum(rows.values()) == pytest.approx(48 + 7, rel=0.01), rows
    assert rows.get("train.py:5 idle", 0) < 7.1, rows


# ---- a killed program, workers with traces of their own, misspelt values ----

def test_a_killed_program_is_told_with_its_last_step(tmp_path):
    events = slow_steps([12] * 4)
    killed = write(tmp_path / "killed.pt.trace.json", events, kprof={"version": "1", "complete": False})
    whole = write(tmp_path / "whole.pt.trace.json", events, kprof={"version": "1", "complete": True})
    for command in ("report", "advise"):
        assert f"ended    {WITHOUT_EXIT} after step 6. {UNTIL_THEN}\n" in told(command, killed)
        assert WITHOUT_EXIT not in told(command, whole)
        assert [json.loads(told(command, "--json", trace))["ended"] for trace in (killed, whole)] == [f"{WITHOUT_EXIT} after step 6", None]


@pytest.mark.parametrize("by, said", [({"ended_by": "SIGSEGV"}, "ended    by SIGSEGV after step 6. This is what was"), ({"ended_by": "SIGKILL"}, "killed   by SIGKILL after step 6. This is what was"), (
    {"ended_by": "SIGKILL", "ended_without_memory": "1"}, "killed   by SIGKILL after step 6 (meanwhile the kernel killed a process for want of memory). This is what was")])
def test_the_signal_that_ended_a_program_is_told_where_it_is_noted(tmp_path, by, said):
    trace = write(tmp_path / "killed.pt.trace.json", slow_steps([12] * 4), kprof={"version": "1", "complete": False, **by})
    assert said in told("report", trace) and said in told("advise", trace)
    ended = {json.loads(told(command, "--json", trace))["ended"] for command in ("report", "advise")}
    assert ended == {json.loads(told("why", "--json", trace))["ends"][0]["how"]} and f"{ended.pop()}. This is what was" in told("report", trace)


def test_of_a_ring_its_last_seconds_are_told(tmp_path):
    ring = {"version": "1", "complete": False, "ended_by": "SIGKILL", "ended_after_us": 400000, "last_us": 30800000}
    trace = write(tmp_path / "killed.pt.trace.json", slow_steps([12] * 4), kprof=ring)
    for command in ("report", "advise"):
        assert "killed   by SIGKILL after step 6. This is the last 31.2 s before it ended.\n" in told(command, trace)
    assert told("why", trace).endswith(" after step 6; recorded is the last 31.2 s before it ended\n")
    assert json.loads(told("why", "--json", trace))["ends"][0]["recorded"] == "the last 31.2 s before it ended"


def test_steps_of_a_ring_that_no_mark_numbers_are_those_of_the_ring(tmp_path):
    steps = [e for i in range(4) for e in (
        event("aten::mm", "cpu_op", 1000 * i, 500), event("Optimizer.step#SGD.step", "user_annotation", 1000 * i + 600, 300))]
    trace = write(tmp_path / "killed.pt.trace.json", steps, kprof={"version": "1", "complete": False, "last_us": 30800000})
    assert f"ended    {WITHOUT_EXIT} after step 3 of what is recorded. This is the last 30.8 s before it ended.\n" in told("report", trace)


def test_a_program_that_was_killed_before_its_first_step_is_told_so(tmp_path):
    killed = write(tmp_path / "early.pt.trace.json", [event("aten::mm", "cpu_op", 0, 2_400_000)], kprof={"version": "1", "complete": False})
    report, advice = told("report", killed), told("advise", killed)
    assert f"ended    {WITHOUT_EXIT} after 2.4 s, " in report
    assert "no steps marked" not in report and "to count calls" not in report + advice
    assert f"the program ended {WITHOUT_EXIT} 2.4 s in, " in advice
    noted = write(tmp_path / "noted.pt.trace.json", [event("aten::mm", "cpu_op", 0, 2_400_000)], kprof={"version": "1", "complete": False, "ended_by": "SIGTERM"})
    assert "ended    by SIGTERM after 2.4 s, before its first" in told("report", noted)
    assert "the program ended by SIGTERM 2.4 s in, " in told("advise", noted)


def loading(where):
    return [e for i in range(3) for e in (
        event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 900), event("aten::mm", "cpu_op", 1000 * i + 650, 200),
        event(f"enumerate(DataLoader)#{where}.__next__", "user_annotation", 1000 * i + 10, 600))]


def test_a_training_that_waits_leads_to_the_lines_of_its_workers(tmp_path):
    trace = write(tmp_path / "a.pt.trace.json", loading("_MultiProcessingDataLoaderIter"), kprof={"version": "1"})
    assert "workers  their waits and lines" in told("advise", trace)
    assert "what its workers did" not in told("report", trace)
    (tmp_path / "children").mkdir()
    work = [event("aten::randn", "cpu_op", 0, 900, **{"Call stack": "data.py(7): __getitem__;"}),
            event("aten::cat", "cpu_op", 900, 100, **{"Call stack": "data.py(9): collate;"})]
    waits = {**event("queue.py(5): get", "python_function", 0, 1000), "tid": 9}  # the thread that feeds its queue
    accepts = {**event("<built-in method _accept of socket object at 0x7f00>", "python_function", 0, 1000), "tid": 10}

    def children(**facts):
        for pid in ("71", "72"):
            write(tmp_path / "children" / f"vm_{pid}.1.pt.trace.json", [*work, waits, accepts],
                  kprof={"version": "1", "parent_pid": "7", "cores": "2", "steps": 0, "complete": False, **facts})
        return told("advise", trace)

    assert " of them compute" not in children() and " of them wait" not in children()  # a file that does not tell
    assert "    worker  2 of them wait 97 % of their time" in children(busy_ms=30, busy_of_ms=1000)
    assert "    change  See whether the workers" in told("advise", trace)
    said = children(busy_ms=900, busy_of_ms=1000)
    assert "    worker  2 of them compute on 2 cores for 90 % of their time: more workers" in said
    assert "    change  Make an item cheaper, first at data.py:7 __getitem__: " in said and "more workers (" not in said  # the change and the workers say the same
    assert json.loads(told("advise", "--json", trace))["findings"][0]["change"].startswith("Make an item cheaper, first at data.py:7 ")
    of_workers = harness.cli("report", "--by", "line", tmp_path / "children")
    assert "more than one run" not in of_workers.stderr
    assert re.search(r"^data.py:7 __getitem__ +0\.9\d* +45\.0 ", of_workers.stdout, re.M), of_workers.stdout  # no share of who waits for a client
    assert "worker   of process 7, recorded until" in of_workers.stdout
    assert "ended    " not in of_workers.stdout and "no step" not in of_workers.stdout
    assert "    worker  data.py:7 __getitem__: 90.0 % of its time\n    worker  data.py:9 collate: 10.0 % of its time\n" in said
    assert f"workers  kprof report --by line {tmp_path}/children\n" in said
    assert f"what its workers did: kprof report --by line {tmp_path}/children\n" in told("report", trace)
    (tmp_path / "children" / "vm_72.1.pt.trace.json").unlink()
    assert "1 of them compute 90 % of their time, and this program uses 1.2 of 2 cores: more workers help" in told("advise", trace)
    write(tmp_path / "children" / "vm_73.1.pt.trace.json", work, kprof={"version": "1", "parent_pid": "8"})
    assert "more than one run" in harness.cli("report", tmp_path / "children").stderr
    alone = write(tmp_path / "c.pt.trace.json", loading("_SingleProcessDataLoaderIter"), kprof={"version": "1"})
    assert "worker  " not in told("advise", alone) and "workers  " not in told("advise", alone)


def waiting_training(tmp_path, items, count=2, **facts):
    """The advice for a training that waits two thirds of its steps for forked workers; `items`: what one does in its loop, from 0 to 1 s."""
    def call(name, ts, dur, of):
        line = re.sub(r"\((\d+)\): .*", r":\1", calls[of - 1]["name"] if of else name)  # of the caller that runs
        calls.append(event(name, "python_function", ts, dur, **{"CallFrom": line, "Python id": len(calls) + 1, **({"Python parent id": of} if of else {})}))
        return len(calls)

    calls = []
    fork = call("train.py(30): <module>", 0, 1_000_000, None)
    loop = call("torch/utils/data/_utils/worker.py(335): _worker_loop", 1, 999_998, call("multiprocessing/process.py(121): start", 0, 1_000_000, fork))
    items(call, loop)
    calls.append(event("aten::stack", "cpu_op", 999_000, 900, **{"Call stack": "train.py(19): __getitem__;train.py(30): <module>;"}))
    trace = write(tmp_path / "a.pt.trace.json", loading("_MultiProcessingDataLoaderIter"), kprof={"version": "1", "cores": "2"})
    (tmp_path / "children").mkdir(exist_ok=True)
    for pid in range(71, 71 + count):
        write(tmp_path / "children" / f"vm_{pid}.1.pt.trace.json", calls, with_stack=1,
              kprof={"version": "1", "parent_pid": "7", "cores": "2", "steps": 0, **facts})
    return told("advise", trace)


def in_queue(call, loop, begin, end):
    call("selectors.py(415): select", begin + 10, end - begin - 20, call("multiprocessing/queues.py(113): get", begin, end - begin, loop))


def test_workers_that_wait_for_work_are_told_so_and_not_at_the_line_that_forked_them(tmp_path):
    def items(call, loop):
        in_queue(call, loop, 2, 600_000)
        call("torch/utils/data/_utils/collate.py(118): collate", 600_000, 100_000, loop)
        in_queue(call, loop, 700_000, 950_000)
        call("train.py(19): __getitem__", 950_000, 40_000, loop)

    said = waiting_training(tmp_path, items, busy_ms=150, busy_of_ms=1000)
    assert "    worker  waits for work 85.0 % of its time\n    worker  torch's loop (collating, handing over): 11.0 % of its time\n" in said, said
    assert "train.py:30" not in said and "of them " not in said
    assert "    change  More workers do not" in said


def test_a_list_of_torch_before_1_9_has_operators_without_a_category(tmp_path):
    """torch.autograd.profiler wrote a list of events of the process "CPU functions". Events of no category of another process are listed."""
    def call(name, ts, dur, pid="CPU functions"):
        return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": 1, "pid": pid, "args": {}}

    path = tmp_path / "old.json"
    path.write_text(json.dumps([call("aten::conv2d", 100.5, 400), call("aten::empty", 200.25, 150), call("HBM copy", 700, 30, 0)]))
    rows = {row["name"]: row for row in json.loads(told("report", "--json", path))["rows"]}
    assert {name: (row["self_ms"], row["total_ms"], row["count"]) for name, row in rows.items()} == {"aten::conv2d": (0.25, 0.4, 1), "aten::empty": (0.15, 0.15, 1)}
    assert [line.split()[-1] for line in told("events", path).splitlines()[1:]] == ["aten::conv2d", "aten::empty", "copy"]
    path.write_text(json.dumps([{"name": "add", "ph": ph, "ts": at, "tid": 1, "pid": 0} for ph, at in (("B", 1), ("E", 5))]))
    failed = harness.cli("events", path)
    assert failed.returncode == 1 and failed.stderr == f"kprof events: {path}: no event with a begin and a length (ph X) in it\n"


def test_a_trace_of_torch_1_9_has_memory_without_addresses_and_shapes_that_its_head_does_not_tell(tmp_path):
    """Events of memory had no category then, and no address; no head before torch 2.0 tells that shapes were recorded."""
    events = []
    for i in range(3):
        at = 1000 * i
        events += [event(f"ProfilerStep#{i}", "Operator", at, 1000), event("aten::mm", "Operator", at + 100, 600, **{"Input Dims": [[8, 4], [4, 8]], "Input type": ["float", "float"]})]
        events += [{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + ts, "args": {"Device Type": 0, "Device Id": -1, "Bytes": size}}
                   for ts, size in ((200, 3 << 20), (300, -(1 << 20)))]
    path = write(tmp_path / "old.pt.trace.json", events)
    said = json.loads(told("report", "--json", "--by", "shape", path))
    assert [(row["shapes"], row["self_bytes"]) for row in said["rows"] if row["name"] == "aten::mm"] == [("[[8, 4], [4, 8]]", 6 << 20)]
    failed = harness.cli("memory", path)
    assert failed.returncode == 1 and failed.stderr.endswith("its events of memory have no addresses (as of torch 1.9), so blocks cannot be followed; kprof report --sort mem shows what ops allocate\n")
    unjudged = told("advise", path).rpartition("\n")[0].splitlines()[-1]
    assert "addresses of memory (kprof run --profile-memory)" in unjudged and "record-shapes" not in unjudged, unjudged


def of_loading(where, ms, rest=7):
    """Twenty steps that load, or wait for a batch, so long."""
    return [e for i in range(20) for e in (
        event(f"ProfilerStep#{i}", "user_annotation", 100_000 * i, 1000 * (ms + rest)),
        event(f"enumerate(DataLoader)#{where}.__next__", "user_annotation", 100_000 * i, 1000 * ms),
        event("train.py(19): __getitem__", "python_function", 100_000 * i, 1000 * ms) if where.startswith("_Single") else
        event("aten::empty", "cpu_op", 100_000 * i + 1, 1), event("aten::mm", "cpu_op", 100_000 * i + 1000 * ms, 1000 * rest))]


@pytest.mark.parametrize("loads, lasts, says", [((0.2, 16.1, 41.8), (22.0, 22.3, 51.4), 19.367), ((0.2, 0.3, 29.0), (22.0, 22.3, 51.4), None)])
def test_a_long_step_that_waits_for_data_is_judged_with_others_that_wait(loads, lasts, says, tmp_path):
    """Of three steps one is long by its wait for a batch. Where another waits as well, that is the finding; else it is one batch that came late."""
    events, at = [], 0
    for i, (load, last) in enumerate(zip(loads, lasts)):
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 1000 * last),
                   event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation", at, 1000 * load),
                   event("aten::mm", "cpu_op", at + 1000 * load, 1000 * (last - load))]
        at += 1000 * last
    found = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events)))["findings"]
    loading = [f for f in found if f["id"] == "data-loading"]
    assert bool(loading) == bool(says), found
    if says:
        assert loading == found[:1] and loading[0]["step_ms"] == pytest.approx(says, abs=0.001) and loading[0]["severity"] == "critical"
        assert loading[0]["share"] == pytest.approx(sum(loads) / sum(lasts), abs=0.001)


@pytest.mark.parametrize("loads, waits", [(1, 2), (1, 5), (2.9, 2), (2.9, 5), (3.1, 2), (3.1, 5), (5, 8), (8, 5), (8, 12)])
def test_advice_with_workers_and_without_does_not_go_in_circles(loads, waits, tmp_path):
    """A program of such items without workers, and with two that wait for work most of their time, whatever its steps wait for a batch."""
    def items(call, loop):
        for at in (100_000, 200_000, 300_000):
            call("train.py(19): __getitem__", at, 1000 * loads, call("torch/utils/data/_utils/fetch.py(49): fetch", at, 1000 * loads, loop))
        in_queue(call, loop, 310_000, 990_000)

    facts = {"version": "1", "cores": "2"}
    without = json.loads(told("advise", "--json", write(tmp_path / "none.pt.trace.json", of_loading("_SingleProcessDataLoaderIter", loads), kprof=facts)))
    alone = without["findings"][0]["change"]
    waiting_training(tmp_path, items, busy_ms=150, busy_of_ms=1000)
    with_two = told("advise", write(tmp_path / "a.pt.trace.json", of_loading("_MultiProcessingDataLoaderIter", waits), kprof=facts))
    change = next(line for line in with_two.splitlines() if line.startswith("    change  More workers do not "))
    assert ("Let workers load: " in alone) == (loads >= 6), alone
    assert ("Load the items in" in change) == (loads < 3 and loads < waits), change
    assert f"up to {loads:.1f} ms" in alone and "most of it is train.py:19 def __getitem__" in alone
    assert f"{loads:.1f} ms" in change and f"waits {waits:.1f} ms" in change
    assert "num_workers=0" in change or "Make an item cheaper, first at train.py:19 def __getitem__: " in change


@pytest.mark.parametrize("tensors, says", [(160, True), (2, False)])
def test_advice_stacks_many_tensors_of_a_batch_before_all_that_workers_tell(tensors, says, tmp_path):
    """Each tensor comes 0.1 ms behind the last, in the last 16 of 20 ms that a step waits; the workers wait for work."""
    def items(call, loop):
        in_queue(call, loop, 310_000, 990_000)

    events = of_loading("_MultiProcessingDataLoaderIter", 20) + [event("aten::set_", "cpu_op", 100_000 * i + 19_900 - 100 * k, 5) for i in range(20) for k in range(tensors)]
    waiting_training(tmp_path, items, busy_ms=150, busy_of_ms=1000)
    finding = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events, kprof={"version": "1", "cores": "2"})))["findings"][0]
    assert finding["id"] == "data-loading" and ("a batch comes as 160 tensors" in finding["what"]) == says, finding
    assert finding["change"].startswith("A batch comes as 160 tensors: " if says else "More workers do not help: "), finding
    assert "More workers do not help: " in finding["change"] and ("receive them takes 15.9 ms a batch. Stack them in collate_fn" in finding["change"]) == says, finding


def test_workers_save_nothing_where_the_items_compute_on_the_only_core(tmp_path):
    trace = write(tmp_path / "one.pt.trace.json", of_loading("_SingleProcessDataLoaderIter", 20), kprof={"version": "1", "cores": "1"})
    change = json.loads(told("advise", "--json", trace))["findings"][0]["change"]
    assert change.startswith("Make items cheaper: ") and "Workers save at most 0.0 ms: " in change, change


@pytest.mark.parametrize("asleep, said", [(0, "Loading is computation: "), (150, "To see whether the items wait")])
def test_the_kernel_tells_without_calls_whether_items_compute(asleep, said, tmp_path):
    """Twenty steps of 27 ms, in which the thread had a core, or wanted one, all the time, or slept."""
    events = [e for e in of_loading("_SingleProcessDataLoaderIter", 20) if e["cat"] != "python_function"]
    facts = {"version": "1", "cores": "2", "steps": 20, "core_had_us": 1000 * (540 - asleep), "core_waited_us": 0}
    change = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events, kprof=facts)))["findings"][0]["change"]
    saved = 27 - (27 - asleep / 20) / 2
    assert said in change and f"That saves at most {saved:.1f} ms a step, on 2 cores." in change, change


def test_items_that_compute_while_others_have_the_cores_are_judged_by_what_they_take_of_one(tmp_path):
    events = of_loading("_SingleProcessDataLoaderIter", 8)
    facts = {"version": "1", "cores": "2", "steps": 20, "core_had_us": 100_000, "core_waited_us": 200_000}
    finding = json.loads(told("advise", "--json", write(tmp_path / "a.pt.trace.json", events, kprof=facts)))["findings"][0]
    assert finding["change"].startswith("Make items cheaper first: ") and "Let workers load" not in finding["change"]
    assert "That saves up to 2.7 ms a step. " in finding["change"] and "waits for a core," in finding["change"], finding
    assert finding["share_of"].startswith("of a step of 5 ms without ") and finding["share_of"].endswith("waits for a CPU core"), finding
    assert finding["step_ms"] == pytest.approx(finding["share"] * 5, rel=1e-3), finding


def test_one_of_the_workers_that_has_all_the_work_is_the_one_that_is_told(tmp_path):
    waiting_training(tmp_path, lambda call, loop: call("<built-in function sleep>", 10, 900_000, call("train.py(19): __getitem__", 2, 990_000, loop)), count=1)
    busy = tmp_path / "children" / "vm_71.1.pt.trace.json"
    worker = json.loads(busy.read_text())
    waiting_training(tmp_path, lambda call, loop: in_queue(call, loop, 2, 990_000), count=2)
    assert "waits for work 99.0 %" in told("advise", tmp_path / "a.pt.trace.json")
    busy.write_text(json.dumps(worker))
    said = told("advise", tmp_path / "a.pt.trace.json")
    assert "train.py:19 def __getitem__: " in said and "waits for work" not in said and "more workers help\n" not in said, said
    assert "    worker  1 of 2 has most of the work; " in said, said
    assert "Let a worker that is ready take the next batch: DataLoader(..., in_order=False)" in said and "more workers (" not in said


def test_workers_that_wait_while_few_batches_are_late_are_to_prefetch_more(tmp_path):
    waiting_training(tmp_path, lambda call, loop: in_queue(call, loop, 2, 700_000))
    late = [e for i in range(40) for e in (
        event(f"ProfilerStep#{i}", "user_annotation", 100_000 * i, 90_000 if i % 8 == 3 else 9_000),
        event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation", 100_000 * i, 85_000 if i % 8 == 3 else 1_000),
        event("aten::mm", "cpu_op", 100_000 * i + (85_000 if i % 8 == 3 else 1_000), 4_000))]
    write(tmp_path / "a.pt.trace.json", late, kprof={"version": "1", "cores": "2"})
    said = told("advise", tmp_path / "a.pt.trace.json")
    assert "CRITICAL  5 steps (about each 8th) wait up to 85.0 ms for the DataLoader: " in said, said
    assert "    worker  waits for work 70.0 % of its time\n" in said and "    change  Prefetch more (prefetch_factor=N), " in said, said


def test_workers_of_other_epochs_and_windows_take_no_cores(tmp_path):
    """Two workers at a time: of an epoch before, of a window before, and now."""
    now = 1_700_000_000 * 10**9
    waiting_training(tmp_path, lambda call, loop: call("train.py(19): __getitem__", 2, 990_000, loop))
    children = tmp_path / "children"
    worker = json.loads((children / "vm_71.1.pt.trace.json").read_text())
    worker["kprof"].update(cores="4", busy_ms="900", busy_of_ms="1000")
    for path in children.iterdir():
        path.unlink()
    for pid, begin in ((61, now - 20 * 10**9), (62, now - 20 * 10**9), (71, now - 9 * 10**9), (72, now - 9 * 10**9), (71, now), (72, now)):
        head = {"schemaVersion": 1, "baseTimeNanoseconds": begin, **worker}
        (children / f"vm_{pid}.{begin + 2 * 10**9 + pid}.pt.trace.json").write_text(json.dumps(head))
    said = told("advise", tmp_path / "a.pt.trace.json")
    assert "    worker  2 of them compute 90 % of their time, and this program uses 2.1 of 4 cores: more workers help\n" in said, said


def test_workers_that_compute_fill_the_cores_whatever_share_was_found(tmp_path):
    """On a busy machine the share differs from one recording to the next; a short one has no figure of the kernel."""
    def items(call, loop):
        call("train.py(19): __getitem__", 2, 800_000, loop)
        in_queue(call, loop, 810_000, 990_000)

    for facts in ({"busy_ms": 950, "busy_of_ms": 1000}, {"busy_ms": 560, "busy_of_ms": 1000}, {"busy_ms": 60, "busy_of_ms": 60}, {}):
        said = waiting_training(tmp_path, items, **facts)
        assert "help, cheaper lines do\n" in said and "    change  Make an item cheaper, first at train.py:19 def __getitem__: " in said, (facts, said)
        assert "    worker  waits for work 18.0 % of its time\n" in said, said


def test_workers_whose_items_wait_get_more_of_them_where_cores_are_left(tmp_path):
    def items(call, loop):
        call("<built-in function sleep>", 10, 900_000, call("train.py(19): __getitem__", 2, 990_000, loop))

    for facts in ({"busy_ms": 90, "busy_of_ms": 1000}, {}):
        said = waiting_training(tmp_path, items, **facts)
        assert re.search(r"    worker  2 of them wait 9[01] % of their time, and this program uses 0\.[45] of 2 cores: more workers help\n", said), said
        assert re.search(r"    change  Give the DataLoader more .*: this program uses 0\.[45] of 2 cores\. That saves at most 0\.6 ms a step\.", said), said
    assert "workers do not help" in waiting_training(tmp_path, items, count=16, busy_ms=90, busy_of_ms=1000)  # 1.4 cores, and the training


def test_a_misspelt_value_gets_a_guess_and_a_command_none():
    every = "is not any of ops,native,1,0"
    for words, said in ((("opss", "--", "true"), f"opss {every} (did you mean ops?)"), (("nativ", "true"), f"nativ {every} (did you mean native?)"),
                        (("op", "--", "true"), f"op {every} (did you mean ops?)"), (("op", "true"), f"op {every} (did you mean ops?)"),
                        (("python_", "--", "true"), f"python_ {every}; see"), (("true", "--", "true"), f"true {every}; see")):
        done = harness.cli("run", "--with-stack", *words)
        assert done.returncode == 2 and f"kprof run: --with-stack: {said}" in done.stderr, done.stderr
    assert "is not any of 0,1,ops,native (did you mean ops?)" in harness.cli("run", "--with-stack=opss", "true").stderr
    assert harness.cli("run", "--with-stack", "true").returncode == 0


def test_what_a_trace_lacks_is_told_alike_by_all(trace, tmp_path):
    """With a status that is not 0, and no file."""
    out = tmp_path / "out.svg"
    for words, said in ((("report", trace, "--sort", "gpu"), "no work of a GPU in it"), (("stacks", trace, "-m", "gpu", "-o", out), "no work of a GPU in it"),
                        (("report", trace, "--step", "99"), "no step 99 in it: "),
                        (("slice", trace, "--step", "99", "--out", out), "no step 99 in it: "),
                        (("slice", trace, "--step", "98-99"), "no steps 98 to 99 in it: "),
                        (("report", trace, "--within", "*val_*"), "is named *val_*; Python's calls are not recorded: --with-stack 1"),
                        (("slice", trace, "--within", "*val_*"), "is named *val_*; Python's calls are not recorded: --with-stack 1"),
                        (("report", trace, "--from", "9000000", "--to", "9900000"), "there is --from 0 --to "),
                        (("slice", trace, "--from", "9000000", "--to", "9900000", "-o", out), "no event in that"),
                        (("view", tmp_path / "nofile"), f"nofile: {os.strerror(errno.ENOENT)}")):
        done = harness.cli(*words)
        assert done.returncode == 1 and said in done.stderr, (words, done.stderr)
    assert not out.exists()
    bare = write(tmp_path / "bare.pt.trace.json", [event("aten::add", "cpu_op", 0, 5)])
    done = harness.cli("stacks", bare, "-m", "memory")
    assert done.returncode == 1 and "no memory in it; record with --profile-memory" in done.stderr, done.stderr


def test_a_program_is_no_trace_and_commands_of_other_profilers_lead_here(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("import torch\n")
    done = harness.cli("report", program)
    assert done.returncode == 1 and f"kprof run -- python {program}\n" in done.stderr
    for word, meant in (("record", "run"), ("recordd", "run"), ("rnu", "run"), ("dfif", "diff"), ("flamegraph", "stacks --svg"), ("flame", "stacks --svg"), ("top", "view"), ("lines", "report --by line"), ("leaks", "memory --leaks")):
        assert f"no command '{word}', did you mean {meant};" in harness.cli(word).stderr
    assert "unknown flag --peak; see" in harness.cli("memory", "--peak").stderr
    assert "unknown flag --n, did you mean -n; see" in harness.cli("report", "--n", "5").stderr
    assert "unknown flag --shedule: --schedule is a flag" in harness.cli("report", "--shedule", "5").stderr


def test_a_program_whose_traces_have_no_place_runs_and_is_told(tmp_path):
    """kprof run may stand before each rank of a job: it ends none of them, and makes and removes no folder (decision 097)."""
    ran = tmp_path / "ran"
    done = harness.cli("run", "-o", "/proc/kprof", "--malloc", "count", "--", "touch", ran)
    assert done.returncode == 0 and ran.exists() and "nothing is recorded: " in done.stderr
    (tmp_path / "c").mkdir()
    assert harness.cli("run", "-o", tmp_path / "c" / "d", "--", "touch", ran).returncode == 0
    assert list((tmp_path / "c").iterdir()) == []


def test_the_peak_is_at_a_time_that_from_takes(tmp_path):
    """The profiler began 7 s before the first event."""
    ms = 7000
    events = [{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": ms * 1000 + 900},
              event("aten::add", "cpu_op", ms * 1000, 100), memory(ms * 1000 + 50, 4096, 1, 4096), event("aten::mul", "cpu_op", ms * 1000 + 200, 100)]
    trace = write(tmp_path / "late.pt.trace.json", events)
    assert " at 7000.050 ms after" in told("memory", trace), told("memory", trace)
    assert "aten::add" in told("events", trace, "--from", "7000000", "--to", "7000050")
    assert "aten::add" in told("report", trace, "--from", "7000049", "--to", "7000051")


def test_a_misspelt_schedule_is_named_by_its_part():
    for text, said in (("10-12,warmpu=1", "has more than steps, "), ("12-10", "has a last step "),
                       ("activ=3", "has an unknown part 'activ=3' (written 10-12 or wait=1,warmup=1,active=3,repeat=1; did you mean active?)")):
        done = harness.cli("run", "--schedule", text, "true")
        assert done.returncode == 2 and f"--schedule: {said}" in done.stderr, done.stderr
    assert "unknown flag --steps; the steps to record: --schedule 10-12" in harness.cli("run", "--steps", "10-12", "--", "true").stderr


# ---- remedies, and what has nothing to say ----

def test_a_folder_without_traces_says_how_to_record_some(tmp_path):
    def said():
        done = harness.cli("report", KPROF_DIR=tmp_path / "kprof")
        assert done.returncode == 2
        return done.stderr

    assert f"no traces here: there is no folder '{tmp_path}/kprof'; record one: kprof run" in said()
    (tmp_path / "kprof").mkdir()
    assert f"'{tmp_path}/kprof'; record one: kprof run" in said()


def test_a_cut_trace_is_judged_and_its_memory_shown_up_to_the_cut(tmp_path):
    steps = [event(f"ProfilerStep#{i}", "user_annotation", START_UP + i * STEP, 1000) for i in range(STEPS)]
    events = sorted(training() + steps, key=lambda e: e["ts"])
    whole = write(tmp_path / "whole.pt.trace.json", events, kprof={"version": "1"}, profile_memory=1).read_text()
    cut = tmp_path / "cut.pt.trace.json"
    cut.write_text(whole[: whole.rindex('"aten::mm"') + 40])
    for command, last, seen in (("advise", "--partial judges those", "step     1.00 ms (mean of 2)"),
                                ("memory", "--partial shows those", "aten::mm"), ("stacks", "--partial shows those", "aten::mm"),
                                ("html", "--partial shows those", "<html")):
        done = harness.cli(command, cut)
        assert done.returncode == 1 and not done.stdout and done.stderr.rstrip().endswith(f"; {last}"), done.stderr
        part = harness.cli(command, "--partial", cut)
        assert part.returncode == 0 and seen in part.stdout, (part.stdout, part.stderr)
        assert part.stderr.count("inside an event") == 1 and part.stderr.count("\n") <= (4 if command == "stacks" else 1), part.stderr
        assert ": shown up to 102.0 ms, 2 whole steps (0 to 1), step 2 cut short\n" in part.stderr


def test_a_written_file_is_said(tmp_path):
    trace = write(tmp_path / "a.pt.trace.json", training(), kprof={"version": "1"})
    for words in (("stacks", "--svg"), ("memory", "--svg"), ("html",)):
        done = harness.cli(*words, "-o", tmp_path / "out.svg", trace)
        assert done.returncode == 0 and done.stderr.endswith(f"kprof: wrote {tmp_path}/out.svg\n") and not done.stdout
        assert "wrote" not in harness.cli(*words, trace).stderr


def test_memory_that_stays_the_same_takes_one_row(tmp_path):
    held = [event("aten::cat", "cpu_op", 0, 90_000), memory(10, 1 << 20, 64, 1 << 20), event("aten::add", "cpu_op", 95_000, 5000)]
    said = told("memory", write(tmp_path / "a.pt.trace.json", held[:2] + [memory(90_000, 4096, 128, (1 << 20) + 4096)], kprof={"version": "1"}))
    assert "the same in all" not in said and len(re.findall(r"^ +\d+\.\d{3} -", said, re.M)) == 20
    steps = [event(f"ProfilerStep#{i}", "user_annotation", 1000 + i * 1000, 1000) for i in range(4)]
    said = told("memory", "--step", "1-3", write(tmp_path / "b.pt.trace.json", held + steps, kprof={"version": "1"}))
    assert len(re.findall(r"^ +\d+\.\d{3} the same in all ", said, re.M)) == 1 and "1.00 MiB" in said


def test_shapes_are_cut_behind_a_whole_input_and_head_a_column_of_ops(tmp_path):
    shapes = [[[128, 64, 32, i] for i in range(8)]][0]
    events = [event("aten::stack", "cpu_op", 0, 900, **{"Input Dims": shapes}), memory(10, 4096, 64, 4096)]
    trace = write(tmp_path / "a.pt.trace.json", events, kprof={"version": "1"}, record_shapes=1)
    assert "[[128, 64, 32, 0], ...]  " in told("memory", trace)
    head = next(line for line in told("report", "--by", "shape", trace).splitlines() if "self ms" in line)
    assert head.startswith("op ") and head.endswith("  input shapes")


def test_equal_tensors_of_a_list_are_shown_once(tmp_path):
    events = [event("aten::stack", "cpu_op", 0, 900, **{"Input Dims": [[[3, 32, 32]] * 16, []]}), memory(10, 4096, 64, 4096)]
    trace = write(tmp_path / "a.pt.trace.json", events, kprof={"version": "1"}, record_shapes=1)
    assert "  [16 x [3, 32, 32], []]  " in told("memory", trace)
    assert "  [16 x [3, 32, 32], []]\n" in told("report", "--by", "shape", trace)
    assert json.loads(told("report", "--by", "shape", "--json", trace))["rows"][0]["shapes"] == "[16 x [3, 32, 32], []]"
    assert " [[], []] " in told("report", "--torch", "--group-by-input-shape", trace)  # torch's own


def test_a_worker_has_no_steps_and_no_data_loader(tmp_path):
    parent, worker = (write(tmp_path / name, [event("aten::randn", "cpu_op", 0, 900)], kprof={"version": "1", **facts})
                      for name, facts in (("a.pt.trace.json", {}), ("b.pt.trace.json", {"parent_pid": "7"})))
    assert "% data loading" in told("report", parent) and "To count calls of" in told("report", parent)
    assert "data loading" not in told("report", worker) and "to count calls" not in told("report", worker)


def test_run_refuses_a_bad_variable_and_tells_of_an_unknown_one(tmp_path):
    def run(**variables):
        return subprocess.run([str(harness.KPROF), "run", "-o", str(tmp_path / "out"), "--", "sh", "-c", "echo ran"], capture_output=True, text=True,
                              env={**harness.clean_environment(), **variables}, timeout=60)

    for name, value, why in (("KPROF_SCHEDULE", "bogus", "has an unknown part 'bogus'"), ("KPROF_PHASES", "bogus", "needs NAME=SCHEDULE, "),
                             ("KPROF_RECORD_SHAPES", "maybe", "maybe is neither 0 nor 1")):
        done = run(**{name: value})
        assert done.returncode == 2 and not done.stdout and f"kprof run: {name}: {why}" in done.stderr, done.stderr
    done = run(KPROF_SHCEDULE="10-12")
    assert done.returncode == 0 and done.stdout == "ran\n"
    assert done.stderr.count("did you mean KPROF_SCHEDULE?") == 1, done.stderr


# ---- what a file lacks, or has twice ----

def launched(call, kernel, at, correlation):
    """A call of the GPU's runtime, and its work 20 us later; None: there is none in the file."""
    events = [event(call, "cuda_runtime", at, 5, correlation=correlation)]
    return events + ([{**event(kernel, "kernel", at + 20, 100, tid=7, stream=7, correlation=correlation), "pid": 0}] if kernel else [])


def test_of_graphs_without_work_no_idle_time_is_judged(tmp_path):
    events = []
    for i in range(4):
        events += [event(f"ProfilerStep#{i}", "user_annotation", 1000 * i, 1000), event("aten::argmax", "cpu_op", 1000 * i + 100, 20)]
        events += launched("cudaGraphLaunch", None, 1000 * i + 10, 10 + i) + launched("cudaLaunchKernel", "argmax", 1000 * i + 105, 50 + i)
    trace = write(tmp_path / "a.pt.trace.json", events)
    said = told("report", trace)
    assert ": the work of 4 of 4 graphs" in said
    said = told("advise", trace)
    assert "another process" not in said and "GPU has nothing to do" not in said and "CRITICAL" not in said
    assert "INCOMPLETE  the work of 4 of 4 graphs that were launched" in said


def test_a_trace_of_a_gpu_alone_says_that_no_op_was_recorded(tmp_path):
    events = [e for i in range(4) for e in launched("cudaLaunchKernel", "gemm", 200 * i, 10 + i)]
    said = told("report", write(tmp_path / "a.pt.trace.json", events))
    assert "% in calls of the" in said and "% in ops" not in said


def test_processes_of_one_file_are_told(tmp_path):
    events = []
    for pid, device in ((10, 0), (20, 100000)):
        for i in range(3):
            for e in [event("aten::mm", "cpu_op", 1000 * i, 20, **{"External id": 2 + i})] + launched("cudaLaunchKernel", "gemm", 1000 * i + 2, 10 + i):
                e = {**e, "args": {**e["args"], "External id": 2 + i}, "pid": device if e["cat"] == "kernel" else pid}
                events.append(e)
    said = told("report", write(tmp_path / "a.pt.trace.json", events))
    assert "This file has 2 processes" in said
    assert re.search(r"^aten::mm +0\.600 ", said, re.M), said  # six kernels of 100 us


def test_modules_and_lines_of_torchs_own_traces_are_of_its_calls(tmp_path):
    """torch.profiler's ops have no stack: the calls around them have one."""
    events = []
    for i in range(3):
        at = 1000 * i
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, 1000), event("train.py(9): main", "python_function", at + 1, 998)]
        for k, name in enumerate(("Linear_0", "Linear_1")):
            begin = at + 100 + 300 * k
            events += [event(f"nn.Module: {name}", "python_function", begin, 200 + 50 * k),
                       event("train.py(4): forward", "python_function", begin + 10, 180 + 50 * k),
                       event("aten::linear", "cpu_op", begin + 20, 150 + 50 * k)]
    trace = write(tmp_path / "a.pt.trace.json", events, with_stack=1)
    said = told("report", "--by", "module", trace)
    assert re.search(r"^Linear_0 +0\.540 ", said, re.M) and re.search(r"^Linear_1 +0\.690 ", said, re.M), said  # their forward
    said = told("report", "--by", "line", trace)
    assert re.search(r"^train\.py:4 def forward +1\.230 +41\.0 ", said, re.M) and re.search(r"^outside any line of .* +0\.006 ", said, re.M), said


def test_a_cause_with_quotes_is_json(tmp_path):
    """The late rank's op has a name that JSON must escape; its text takes the place of a finding's."""
    def odd(folder, number, wait):
        path = rank(folder, number, [wait] * 3)
        path.write_text(path.read_text().replace("aten::mm", 'my \\"op\\" \\\\ of C'))
        return path
    done = harness.cli("advise", "--json", odd(tmp_path, 0, 500), odd(tmp_path, 1, 20))
    found = [f for line in done.stdout.splitlines() for f in json.loads(line)["findings"]]
    assert any('my "op" \\ of C takes' in f["change"] for f in found if f["id"] == "exposed-communication"), found


def test_why_says_of_a_job_that_a_launcher_ended_what_report_says_of_its_traces(tmp_path):
    """Two ranks in different collectives for 12 s, which timeout ended. The launcher alone was told the signal."""
    files = []
    for rank, (op, line) in enumerate((("all_reduce", 51), ("barrier", 18))):
        events = slow_steps([10] * 5) + [{**event("PyTorch Profiler (0)", "Trace", 0, 12_000_000), "pid": "Spans"}]
        events += [event("c10d::" + op.replace("_", ""), "cpu_op", 70_950, 10, **{"Call stack": f"train.py({line}): main;"}),
                   event("gloo:" + op, "user_annotation", 71_000, 11_929_000, tid=2, finished=False)]
        files.append(write(tmp_path / f"vm_r{rank}_{7 + rank}.1.pt.trace.json", [{**e, "pid": 7 + rank} if e["pid"] != "Spans" else e for e in events],
                           kprof={"version": "1", "complete": False}, host_name="vm", distributedInfo={"rank": rank, "world_size": 2}))
    (tmp_path / "vm_6.ends").write_text("".join(f"{pid} 15 {time.time_ns()}\n" for pid in (7, 8)))
    first, *_ = told("report", tmp_path).splitlines()
    assert re.match(r"STUCK    rank 0 has been in gloo:all_reduce for 11\.9 s, at train\.py:51 main; rank 1 has been in gloo:barrier for 11\.9 s, at train\.py:18 main", first), first
    assert told("why", tmp_path).splitlines() == [f"it was stuck: {first[9:]}"] + [f"  then rank {rank} ended by SIGTERM after step 7" for rank in (0, 1)]
    for path in files:  # read in pieces
        assert f"ended    by SIGTERM after step 7. {UNTIL_THEN}\n" in told("report", path)
    assert all(f"ended    by SIGTERM after step 7. {UNTIL_THEN}\n" in part for part in told("report", tmp_path).split("program ")[1:])


def test_a_job_that_stands_says_so_alike_in_text_page_and_json(tmp_path):
    files = []
    for rank in range(2):
        events = slow_steps([10] * 5) + [{**event("PyTorch Profiler (0)", "Trace", 0, 12_000_000), "pid": "Spans"}]
        if rank == 0:
            events.append(event("gloo:all_reduce", "user_annotation", 51_000, 11_949_000, tid=2, finished=False))
        files.append(write(tmp_path / f"r{rank}.pt.trace.json", events, kprof={"version": "1", "complete": False, "ended_by": "SIGKILL"},
                           distributedInfo={"rank": rank, "world_size": 2}))
    first, lead, *_ = told("report", *files).splitlines()
    assert lead == f"         It runs no more: `kprof why {tmp_path}` says how it ended."  # no file of --hang
    advised = told("advise", *files)
    assert advised.startswith(f"{first}\n{lead}\n") and "CRITICAL" not in advised and "verdict" not in advised, advised
    assert first.startswith("STUCK    rank 1 did nothing for 1"), first
    *each, together = [json.loads(line) for line in told("report", "--json", *files).splitlines()]
    assert [line["trace"] for line in each] == [str(path) for path in files]
    assert together == {"ranks": {"stuck": first[9:], "missing": None}}
    told("html", "-o", tmp_path / "page.html", *files)
    blocks = [(name, head) for name, head, _ in pagedata.blocks(tmp_path / "page.html")]
    verdict, = (head for name, head in blocks if name == "verdict")
    assert verdict["stuck"] == first[9:] and verdict["late"] is None and not verdict["ranks"]
    ended = [head["run"]["ended"] for name, head in blocks if name == "trace"]
    assert ended[1] == "by SIGKILL after step 7" and ended[0].startswith("by SIGKILL "), ended
    for path, words in zip(files, ended):
        assert f"killed   {words}. {UNTIL_THEN}\n" in told("report", path)
