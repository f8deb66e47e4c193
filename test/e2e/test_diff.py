# SPDX-License-Identifier: Apache-2.0
"""kprof diff: a training beside one whose loader sleeps, and beside itself; what an own reading of the JSON gives."""
import gzip
import json
import re
import statistics

import pytest

import harness

SCHEDULE = "wait=3,warmup=1,active=6,repeat=1"  # steps 4 to 9 of ten
SLEEP_MS = 400  # far above what a busy machine makes steps differ by


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return {kind: harness.run_kprof("advice.py", tmp_path_factory.mktemp(kind), kind, SLEEP_MS, schedule=SCHEDULE, KPROF_PROFILE_MEMORY=1, OMP_NUM_THREADS=1).ok().trace
            for kind in ("healthy", "loading")}


def diff(*args, code=0):
    said = harness.cli("diff", *args)
    assert said.returncode == code, said.stdout + said.stderr
    return said


def row(found, group, name):
    return next(row for row in found[group] if row["name"] == name)


def steps_of(path):
    """Lengths of the steps in milliseconds, read without kprof."""
    events = json.load(gzip.open(path))["traceEvents"]
    return [e["dur"] / 1e3 for e in events if e.get("cat") == "user_annotation" and re.fullmatch(r"ProfilerStep#\d+", e["name"])]


def test_the_change_and_its_place_are_found(runs):
    found = json.loads(diff(runs["healthy"], runs["loading"], "--json").stdout)
    step = found["step"]
    assert found["schema"] == 1 and found["a"]["samples"] == found["b"]["samples"] == 6
    for side, kind in (("a", "healthy"), ("b", "loading")):
        assert step[f"{side}_ms"] == pytest.approx(statistics.median(steps_of(runs[kind])), rel=1e-5)
    assert step["verdict"] == "slower"
    assert step["change_ms"] >= 0.8 * SLEEP_MS - step["noise_ms"]  # others use the machine
    largest = found["parts"][0]
    assert largest["name"] == "data loading" and largest["verdict"] == "slower"
    assert abs(largest["change_ms"] - SLEEP_MS) <= 0.2 * SLEEP_MS + largest["noise_ms"]
    changes = [abs(row["of_change"]) for row in found["ops"]]
    assert changes == sorted(changes, reverse=True)


def test_counts_are_those_of_the_file(runs):
    found = json.loads(diff(runs["healthy"], runs["loading"], "--json").stdout)
    events = json.load(gzip.open(runs["healthy"]))["traceEvents"]
    count = sum(e.get("cat") == "cpu_op" and e["name"] == "aten::addmm" for e in events)
    assert row(found, "ops", "aten::addmm")["a_count"] == pytest.approx(count / 6) and count
    peak = max(e["args"]["Total Allocated"] for e in events if e["name"] == "[memory]")
    assert 0 < row(found, "memory", "peak, CPU")["a_bytes"] <= peak


def test_a_run_beside_itself_has_no_difference(runs):
    found = json.loads(diff(runs["healthy"], runs["healthy"], "--json", "--fail-above", "0").stdout)
    rows = [found["step"], *(row for group in ("parts", "ops", "memory", "ops_memory") for row in found[group])]
    assert {row["verdict"] for row in rows} == {"within noise"}
    assert "0 ms" in diff(runs["healthy"], runs["healthy"]).stdout


def test_a_build_can_fail_on_it(runs):
    diff(runs["healthy"], runs["loading"], "--fail-above", "10", code=3)
    diff(runs["loading"], runs["healthy"], "--fail-above", "10")
    diff(runs["healthy"], runs["loading"], "--fail-above", "1000000")


def test_a_side_may_be_several_files(runs):
    found = json.loads(diff(runs["healthy"], runs["healthy"], "--vs", runs["loading"], runs["loading"], "--json").stdout)
    assert found["a"]["samples"] == found["b"]["samples"] == 12 and len(found["a"]["files"]) == 2
    assert found["step"]["verdict"] == "slower"


def test_it_is_said_in_words(runs):
    said = diff(runs["healthy"], runs["loading"]).stdout
    assert re.search(r"^program +advice.py +advice.py", said, re.M)
    assert re.search(r"^change +slower: \+", said, re.M) and re.search(r"^\d+ ops? within noise, ", said, re.M)


def test_what_it_cannot_take_is_one_line(runs, tmp_path):
    torn = tmp_path / "torn.pt.trace.json"
    torn.write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for args, code in ((["--vs", runs["healthy"]], 2), ([runs["healthy"]], 2), ([torn, runs["healthy"]], 1), ([runs["healthy"], torn], 1),
                       ([runs["healthy"], runs["healthy"], "--fail-above", "much"], 2)):
        said = diff(*args, code=code)
        assert not said.stdout and said.stderr.count("\n") <= 2 and said.stderr.startswith("kprof diff: ")


def shaped(path, rows):
    """A trace of five steps with one op, whose first input has so many rows."""
    events = []
    for n in range(5):
        at = 1000 * n
        events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1, "ts": at, "dur": 900, "args": {}},
                   {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": at + 10, "dur": 10 * rows,
                    "args": {"Input Dims": [[4], [rows, 16], [16, 4]]}},
                   {"ph": "X", "cat": "cpu_op", "name": "aten::fill_", "pid": 1, "tid": 1, "ts": at + 500, "dur": 10 * rows, "args": {"Input Dims": [[4]]}}]
    path.write_text(json.dumps({"schemaVersion": 1, "kprof": {"version": "1"}, "record_shapes": 1, "traceEvents": events}))
    return path


def test_a_row_has_the_shapes_where_they_differ(tmp_path):
    a, b = shaped(tmp_path / "a.pt.trace.json", 8), shaped(tmp_path / "b.pt.trace.json", 32)
    said = diff(a, b).stdout
    shapes = "[[4], [8, 16], [16, 4]] -> [[4], [32, 16], [16, 4]]"
    assert re.search(rf"^inputs  .*: aten::addmm, {re.escape(shapes)}$", said, re.M), said
    assert re.search(rf"^aten::addmm .* 1 -> 1  {re.escape(shapes)}$", said, re.M) and re.search(r"^aten::fill_ .* 1 -> 1$", said, re.M)
    found = json.loads(diff(a, b, "--json").stdout)
    assert row(found, "ops", "aten::addmm")["b_shapes"] == "[[4], [32, 16], [16, 4]]"
    assert "inputs  " not in diff(a, a).stdout


# ---- lines, and what the rows explain ----

def written(path, steps, lines, gap_us, ops):
    """Steps with some ops of each line, and a gap at the end."""
    events, at = [], 1000
    for number in range(1, steps + 1):
        begin = at
        for line, (name, us) in zip(lines, ops):
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": at, "dur": us,
                           "args": {"External id": len(events), "Call stack": f"train.py({line}): main"}})
            at += us
        at += gap_us
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 7, "tid": 7, "ts": begin, "dur": at - begin, "args": {}})
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": events, "kprof": {"version": "1", "script": "train.py"}}))
    return path


def passes(path, forward, us):
    """Steps with an op of the line `forward`, and its backward on another thread."""
    events = []
    for number in range(1, 6):
        at = 10_000 * number
        add = lambda name, cat, ts, dur, tid=7, **args: events.append({"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": at + ts, "dur": dur, "args": args})
        add(f"ProfilerStep#{number}", "user_annotation", 0, 9_000)
        add("aten::mm", "cpu_op", 10, 200, **{"Sequence number": number, "Fwd thread id": 0, "Call stack": f"train.py({forward}): forward;train.py(1): <module>"})
        add("MmBackward0", "cpu_op", 300, us + 20, 8, **{"Sequence number": number, "Fwd thread id": 1})
        add("aten::mm_backward", "cpu_op", 310, us, 8)
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": events, "kprof": {"version": "1", "script": "train.py"}}))
    return path


def test_backward_stands_before_its_line_as_in_the_report_and_lines_that_moved_meet(tmp_path):
    a, b = passes(tmp_path / "a.pt.trace.json", 5, 300), passes(tmp_path / "b.pt.trace.json", 7, 6_000)
    said = diff(a, b).stdout
    assert re.search(r"^backward of train\.py:5 -> 7 forward ", said, re.M) and "(backward)" not in said, said
    names = [one["name"] for one in json.loads(diff(a, b, "--json").stdout)["lines"]]
    assert sorted(names) == ["backward of train.py:5 -> 7 forward", "train.py:5 -> 7 forward"]
    told = harness.cli("report", "--by", "line", a).stdout
    assert re.search(r"^backward of train\.py:5 forward ", told, re.M)


def test_the_line_that_changed_most_is_named_and_the_rest_accounted_for(tmp_path):
    a = written(tmp_path / "a.pt.trace.json", 5, [3, 4], 1000, [("aten::mm", 4000), ("aten::add", 500)])
    b = written(tmp_path / "b.pt.trace.json", 5, [5, 6], 4000, [("aten::mm", 9000), ("aten::add", 500)])
    said = diff(a, b).stdout
    assert "\nline         train.py:3 -> 5 main changed most: 4.00 ms -> 9.00 ms per step\n" in said
    assert "\nexplained    +5.00 ms of +8.00 ms by the operators below; +3.00 ms outside operators " in said
    found = json.loads(diff(a, b, "--json").stdout)
    assert found["explained"] == {"rows_ms": 5.0, "no_op_ms": 3.0, "no_op_in_rows": False}
    assert row(found, "lines", "train.py:4 -> 6 main")["verdict"] == "within noise"
    assert "\nline  " not in diff(a, a).stdout


def stepped(path, lengths_ms):
    """A trace of steps of these lengths, each one op."""
    at, events = 0, []
    for n, ms in enumerate(lengths_ms):
        events += [{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 1000 * ms, "args": {}}
                   for cat, name in (("user_annotation", f"ProfilerStep#{n}"), ("cpu_op", "aten::mm"))]
        at += 1000 * ms
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_traces_without_steps_are_compared_by_trace(tmp_path):
    def timed(name, mm, add):
        ops = [("aten::mm", 0, mm), ("aten::add", mm, add), ("aten::relu", mm + add, 100)]
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": ts, "dur": us} for op, ts, us in ops]}))
        return path

    said = diff(timed("a.json", 100_000, 1000), timed("b.json", 300_000, 999)).stdout
    assert re.search(r"^change +too few steps to be certain: \+200 ms per trace \(.*\)\. Record at least 3 traces per side$", said, re.M), said
    assert "calls per trace" in said and "per step" not in said
    assert re.search(r"^aten::add +1\.000 +0\.999 +-0\.001 +\+0\.0 % ", said, re.M), said


def test_a_cut_file_is_compared_as_far_as_it_goes(tmp_path):
    whole, cut = stepped(tmp_path / "a.pt.trace.json", [10] * 9), tmp_path / "b.pt.trace.json"
    cut.write_text(whole.read_text()[:-200])
    refused = harness.cli("diff", whole, cut)
    assert refused.returncode == 1 and "; --partial compares those" in refused.stderr, refused
    said = harness.cli("diff", whole, cut, "--partial")
    assert said.returncode == 0 and "whole steps" in said.stderr and "within noise" in said.stdout, said


def test_a_build_does_not_fail_by_one_run_a_side_that_may_be_the_machine(tmp_path):
    a = stepped(tmp_path / "a.pt.trace.json", [34, 60, 40, 45, 89, 50, 52, 38, 41, 47])
    b = stepped(tmp_path / "b.pt.trace.json", [112, 1779, 300, 600, 80, 500, 900, 200, 1500, 700])
    one = diff(a, b, "--fail-above", "5")
    assert "slower: " in one.stdout and "99 % of all pairs of steps agree\n" in one.stdout and "record both again: kprof diff A1 A2 --vs B1 B2" in one.stdout
    assert "--fail-above did not fail" in one.stderr and "(--vs)" in one.stderr
    both = diff(a, a, "--vs", b, b, "--fail-above", "5", code=3)
    assert "of all pairs" in both.stdout and "record both again" not in both.stdout + both.stderr


def ahead(path, collective):
    """Eight steps of 1 ms of a host that waits for nothing; its GPU takes 1 ms of products and so many us of a collective for each."""
    events, at = [], 100
    for i in range(8):
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 1000})
        for k, (op, kernel, dur) in enumerate((("aten::mm", "gemm", 1000), ("record_param_comms", "ncclDevKernel_AllReduce", collective))):
            ids = {"External id": 10 * i + k + 1, "correlation": 10 * i + k + 1}
            events.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": 1000 * i + 100 * k + 10, "dur": 20, "args": ids})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1000 * i + 100 * k + 12, "dur": 5, "args": ids})
            events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": {**ids, "stream": 7}})
            at += dur + 10
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_steps_of_a_host_that_is_ahead_are_the_gpus(tmp_path):
    """The host's steps are as long in both runs. The second one's collectives take 0.3 ms more."""
    both = ahead(tmp_path / "a.pt.trace.json", 1000), ahead(tmp_path / "b.pt.trace.json", 1300)
    found = json.loads(diff(*both, "--json", "--fail-above", "5", code=3).stdout)
    assert (found["step"]["a_ms"], found["step"]["b_ms"], found["step"]["verdict"]) == (pytest.approx(2.02), pytest.approx(2.32), "slower")
    for side in ("a", "b"):
        assert sum(part[f"{side}_ms"] for part in found["parts"]) == pytest.approx(found["step"][f"{side}_ms"], abs=0.001)
    assert row(found, "parts", "exposed communication")["change_ms"] == pytest.approx(0.3)
    assert "2.02 ms on the GPU" in diff(*both).stdout
