# SPDX-License-Identifier: Apache-2.0
"""kprof slice: what is cut out says the same as that part of the whole."""
import gzip
import json

import pytest

import advicetraces
import harness

CORE = ("core_had_us", "core_waited_us", "core_others_us")  # sums of what is in the file

@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return harness.run_kprof("advice.py", tmp_path_factory.mktemp("run"), "healthy", schedule="wait=2,warmup=1,active=6,repeat=1", KPROF_PROFILE_MEMORY=1).ok().trace


def cut(path, out, *part):
    said = harness.cli("slice", path, *part, "-o", out)
    assert said.returncode == 0, said.stderr
    return json.load(gzip.open(out) if out.suffix == ".gz" else out.open())


def rows(path, *part):
    said = harness.cli("report", path, *part, "--json", "-n", "0")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    return {row["name"]: row["self_ms"] for row in found["rows"] if row["self_ms"]}, found


def flows_of(whole):
    return {(e["ph"], e["id"]) for e in whole["traceEvents"] if e["ph"] in "sf"}


def test_steps_say_the_same_as_in_the_whole(trace, tmp_path):
    out = tmp_path / "small.pt.trace.json.gz"
    small = cut(trace, out, "--step", "5-6")
    mine, head = rows(out)
    theirs, of_part = rows(trace, "--step", "5-6")
    assert mine == theirs and head["steps"] == of_part["steps"] and head["steps"]["count"] == 2
    flows = flows_of(small)
    assert flows and {i for ph, i in flows if ph == "s"} == {i for ph, i in flows if ph == "f"}
    whole = json.load(gzip.open(trace))
    assert [e for e in small["traceEvents"] if e["ph"] == "M"] == [e for e in whole["traceEvents"] if e["ph"] == "M"]
    heads = [{key: of for key, of in trace["kprof"].items() if key not in CORE} for trace in (small, whole)]
    assert heads[0] == heads[1] and 0 < len(small["traceEvents"]) < len(whole["traceEvents"]) / 2
    assert {e["name"] for e in small["traceEvents"] if e["name"].startswith("ProfilerStep#")} == {"ProfilerStep#5", "ProfilerStep#6"}


def test_steps_of_an_optimizer_keep_their_numbers(tmp_path):
    """They are told by the optimizer's step before, which the part has not."""
    whole = harness.run_kprof("advice.py", tmp_path / "run", "healthy", schedule=None).ok().trace
    out = tmp_path / "part.pt.trace.json"
    small = cut(whole, out, "--step", "5-6")
    assert sorted(e["name"] for e in small["traceEvents"] if e["name"].startswith("ProfilerStep#")) == ["ProfilerStep#5", "ProfilerStep#6"]
    (mine, head), (theirs, of_part) = rows(out), rows(whole, "--step", "5-6")
    between = [name for name in (*mine, *theirs) if name.startswith(("outside any op", "ProfilerStep*"))]  # what is between ops is a row of the step, where one is marked
    assert all(mine.get(name) == theirs.get(name) for name in {*mine, *theirs}.difference(between)) and len(theirs) > 30
    assert {key: head["steps"][key] for key in ("first", "last", "count")} == {"first": 5, "last": 6, "count": 2}
    assert head["steps"]["median_ms"] == pytest.approx(of_part["steps"]["median_ms"], abs=2e-6)


def test_no_event_sticks_out(trace, tmp_path):
    events = json.load(gzip.open(trace))["traceEvents"]
    start = next(e["ts"] for e in events if e["name"].startswith("Iteration Start"))
    step = next(e for e in events if e["name"] == "ProfilerStep#4")
    begin, end = step["ts"] + step["dur"] / 4, step["ts"] + step["dur"] / 2
    small = cut(trace, tmp_path / "time.json", "--from", f"{begin - start:.3f}", "--to", f"{end - start:.3f}")
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in small["traceEvents"] if e["ph"] == "X"]
    assert len(spans) > 10
    assert min(start for start, _ in spans) >= begin - 0.01 and max(end for _, end in spans) <= end + 0.01
    wanted = [e for e in events if e["ph"] == "X" and e["ts"] < end - 0.01 and e["ts"] + e["dur"] > begin + 0.01]
    assert abs(len(wanted) - len(spans)) <= 4  # those that touch an edge


def test_a_name_is_a_part(trace, tmp_path):
    out = tmp_path / "within.json.gz"
    cut(trace, out, "--within", "Optimizer.step#SGD.step")
    assert rows(out)[0] == rows(trace, "--within", "Optimizer.step#SGD.step")[0]


@pytest.mark.parametrize("path", sorted((harness.ROOT / "test/data/traces").rglob("*.json*")), ids=lambda path: path.name)
def test_traces_of_kineto(path, tmp_path):
    out = tmp_path / "all.json"
    cut(path, out, "--from", "-1e9", "--to", "1e9")
    assert rows(out)[0] == rows(path)[0]


def test_what_it_cannot_cut_is_one_line(trace, tmp_path):
    out = tmp_path / "no.json"
    torn = tmp_path / "torn.pt.trace.json"
    torn.write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for args, code in (([trace], 2), ([trace, "--step", "77"], 1), ([trace, "--within", "nothing"], 1), ([trace, "--from", "9", "--to", "3"], 2),
                       ([torn, "--from", "1"], 1), ([trace, "--step", "5", "--within", "x"], 2)):
        said = harness.cli("slice", *args, "-o", out)
        assert said.returncode == code and said.stderr.startswith("kprof slice: ") and said.stderr.count("\n") <= 2, said
        assert not out.exists() and not list(tmp_path.glob("no.json*"))


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_there_of_a_torn_file_is_cut(trace, tmp_path, packed):
    """The file that ends early is refused; with --partial its steps are a whole trace, equal to those of the whole."""
    whole = gzip.open(trace).read()
    torn, out = tmp_path / ("torn.json.gz" if packed else "torn.json"), tmp_path / "part.json"
    half = whole[: whole.index(b'"ProfilerStep#6"')]
    torn.write_bytes(gzip.compress(whole)[: -len(whole) // 100] if packed else half)
    said = harness.cli("slice", torn, "--step", "4", "-o", out)
    assert said.returncode == 1 and said.stderr.rstrip().endswith("; --partial cuts those") and not out.exists()
    part = cut(torn, out, "--step", "4", "--partial")
    assert part["traceEvents"] and part.keys() >= {"schemaVersion"}
    assert rows(out)[0] == rows(trace, "--step", "4")[0]


def test_a_torn_list_of_events_is_closed(tmp_path):
    torn, out = tmp_path / "list.json", tmp_path / "part.json"
    events = [{"ph": "X", "cat": "cpu_op", "name": f"aten::op{i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5, "args": {}} for i in range(9)]
    torn.write_text(json.dumps(events)[:-30])
    assert [e["name"] for e in cut(torn, out, "--from", "-1", "--partial")] == [e["name"] for e in events[:-1]]


def test_what_was_open_before_the_part_stays_outside(tmp_path):
    """A frame around all steps stands behind them in the file. Cut to one step it has that one's times."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 1000, "args": {}} for i in range(3)]
    events += [{"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": dur, "args": {}}
               for name, at, dur in (("b.py(2): inner", -10, 3020), ("a.py(1): outer", -20, 3040))]
    whole, part = tmp_path / "a.pt.trace.json", tmp_path / "b.pt.trace.json"
    whole.write_text(json.dumps({"traceEvents": events}))
    done = harness.cli("slice", "--step", "1", whole, "-o", part)
    assert done.returncode == 0, done.stderr
    kept = [(e["name"], float(e["ts"]), float(e["dur"])) for e in json.loads(part.read_text())["traceEvents"] if e["ph"] == "X"]
    assert kept == [(name, 1000, 1000) for name in ("a.py(1): outer", "b.py(2): inner", "ProfilerStep#1")]


def crowded(path, listed):
    """40 steps of 1 ms; from step 25 on each waits half of it for a core. The head lists so many of these waits."""
    waits = ",".join(f"{number}:500" for number in range(25, 25 + listed))
    kprof = {**advicetraces.CALM, "core_had_us": 30000, "core_waited_us": 10000, "core_others_us": 4000, "core_steps": waits}
    trace = advicetraces.Trace(kprof=kprof)
    return trace.each(lambda base: trace.add("cpu_op", "aten::mm", 1, base, 990), steps=40).write(path)


def core_said(*args):
    said = harness.cli("report", *args).stdout
    return [line.strip() for line in said.splitlines() if "no CPU core" in line]


@pytest.mark.parametrize("first, last, share", [(6, 15, None), (27, 36, 50), (20, 29, 25)])
def test_waits_for_a_core_are_those_of_the_steps_alone(first, last, share, tmp_path):
    """In the report of some steps as in the report of a slice, and in its head; a quarter of the whole was waited."""
    trace, part = crowded(tmp_path / "t.pt.trace.json", 20), f"{first}-{last}"
    assert ["no CPU core for 25 %" in line for line in core_said(trace)] == [True]
    out = tmp_path / "part.pt.trace.json"
    head = cut(trace, out, "--step", part)["kprof"]
    waited = 5 * 2000 * (share or 0) // 100
    assert {key: head[key] for key in CORE} == {"core_had_us": 10000 - waited, "core_waited_us": waited, "core_others_us": 1000}
    for said in core_said(trace, "--step", part), core_said(out):
        assert [line for line in said if f"for {share} %" in line and "whole recording" not in line] == said and len(said) == bool(share), said
    said = harness.cli("diff", trace, trace, "--step", part).stdout
    assert ("waits for a CPU core" in said) == bool(share) and (not share or f"A {5 * 2 * share} us, B {5 * 2 * share} us" in said), said


def test_waits_that_are_not_known_by_step_are_said_to_be_of_all(tmp_path):
    """A list of many waits ends early: of later steps the sum of the recording is all that is known."""
    trace = crowded(tmp_path / "t.pt.trace.json", 5)
    said, = core_said(trace, "--step", "35-44")
    assert "no CPU core for 25 %" in said and said.endswith(", in the whole recording")
    assert core_said(trace, "--step", "6-15") == []
    assert "waits for a CPU core" not in harness.cli("diff", trace, trace, "--step", "35-44").stdout
    head = cut(trace, tmp_path / "part.pt.trace.json", "--step", "35-44")["kprof"]
    assert {key: head[key] for key in CORE} == {"core_had_us": 7500, "core_waited_us": 2500, "core_others_us": 1000}
