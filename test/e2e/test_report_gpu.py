# SPDX-License-Identifier: Apache-2.0
"""kprof report and diff of traces with a GPU: each number beside one that this file counts in the JSON."""
import collections
import json
import re
import statistics

import pytest

import advicetraces
import gputraces
import harness


def told(command, *argv):
    done = harness.cli(command, *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(*argv):
    return json.loads(told("report", "--json", "-n", "0", *argv))


def spans(events):
    return [(e["ts"], e["ts"] + e["dur"]) for e in events]


def is_in(at, spans):
    return any(begin <= at < end for begin, end in spans)


# ---- reads of single values ----

def own_reads(events):
    """Reads that the program asks for in a step: in these files each has one aten::item."""
    steps = spans(e for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation")
    torchs = collections.defaultdict(list)
    for e in events:
        if e["name"].startswith(("Optimizer.", "enumerate(DataLoader)#")) and e["cat"] == "user_annotation":
            torchs[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    names = collections.Counter(e["name"] for e in events)
    assert names["aten::item"] == names["aten::_local_scalar_dense"]
    return sum(is_in(e["ts"], steps) and not is_in(e["ts"], torchs[e["tid"]]) for e in events if e["name"] == "aten::item")


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled", "neg_queue_a100", "diff_test_v100"])
def test_reads_of_single_values_are_those_in_the_file(name, real_gpu_trace):
    path = real_gpu_trace(name)
    count = own_reads(gputraces.slices(gputraces.load(path)))
    said = numbers(path)
    rounded = 1 if name == "neg_queue_a100" else 0  # whole microseconds: a read of the optimizer ends behind it
    assert said.get("value_reads", 0) == pytest.approx(count if said["steps"]["count"] else 0, abs=rounded)
    each = count / (said["steps"]["count"] or 1)
    assert ("reads    " in told("report", path)) == (each >= 8)


def reading(reads):
    def make(trace, base):
        for i in range(reads):
            trace.add("cpu_op", "aten::item", 1, base + 10 * i, 6, **{"Call stack": advicetraces.SICK})
            trace.add("cpu_op", "aten::_local_scalar_dense", 1, base + 10 * i + 1, 4, **{"Call stack": advicetraces.SICK})
        trace.work(advicetraces.GEMM, base + 900, 90, line=advicetraces.WELL)
    return make


def test_many_reads_are_a_line_and_advise_names_their_line(tmp_path):
    for reads, is_told in ((7, False), (29, True)):
        trace = advicetraces.Trace()
        path = trace.each(lambda base: reading(reads)(trace, base)).write(tmp_path / f"{reads}.pt.trace.json")
        assert numbers(path)["value_reads"] == reads * advicetraces.STEPS
        line = f"reads    {reads} single values per step are read (.item() and the like): `kprof advise` has their lines\n"
        assert (line in told("report", path)) == is_told
        assert bool(re.search(rf"Seen: {reads} calls of \.item\(\) .* at train\.py:12 sick \(", told("advise", path))) == is_told


def test_losses_are_a_lower_bound_where_the_file_says_so(tmp_path):
    for is_least in (False, True):
        path = tmp_path / f"{is_least}.pt.trace.json"
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {}}
        path.write_text(json.dumps({"schemaVersion": 1, "kprof": {"lost": 5, **({"lost_at_least": True} if is_least else {})}, "traceEvents": [event]}))
        least = "at least " if is_least else ""
        assert f"dropped  {least}5 events" in told("report", path)
        assert (numbers(path)["dropped"], numbers(path).get("dropped_at_least", False)) == (5, is_least)


def test_reads_are_not_counted_inside_of_reads(tmp_path):
    """Within aten::item a read by bool() or print() begins outside."""
    trace = advicetraces.Trace()
    path = trace.each(lambda base: reading(29)(trace, base)).write(tmp_path / "a.pt.trace.json")
    for name in ("aten::item", "aten::_local*", "*"):
        assert "reads    " not in told("report", "--within", name, path)
    assert "reads    " in told("report", path)


# ---- kprof diff: work of a step is what it launched ----

def steps_of(events):
    return sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation")


def asked(events):
    """Each work of a GPU with the time at which its op began, else its call. Without either: None."""
    ops = {e["args"]["External id"]: e["ts"] for e in events if e["cat"] in ("cpu_op", "user_annotation") and "External id" in e["args"]}
    calls = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
    for e in events:
        if e["cat"] in gputraces.WORK:
            yield e, ops.get(e["args"].get("External id"), calls.get(e["args"]["correlation"]))


def covered(spans):
    total, until = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


@pytest.mark.parametrize("name", ["h200_training", "h200_waits", "h200_graphed", "triton_a100", "nccl_a100"])
def test_diff_gives_a_step_the_kernels_that_it_launched(name, real_gpu_trace):
    path = real_gpu_trace(name)
    events = gputraces.slices(gputraces.load(path))
    steps = steps_of(events)
    compute, kernels = [[] for _ in steps], [collections.Counter() for _ in steps]
    for e, at in asked(events):
        step = [i for i, (begin, end) in enumerate(steps) if begin <= at < end]
        if not step:
            continue
        kernels[step[0]][e["name"]] += e["dur"]
        if e["cat"] == "kernel" and not e["name"].startswith("nccl"):
            compute[step[0]].append((e["ts"], e["ts"] + e["dur"]))
    said = json.loads(told("diff", path, path, "--json"))
    row = next(row for row in said["parts"] if row["name"] == "compute")
    assert row["a_ms"] == pytest.approx(float(statistics.median(covered(of) for of in compute)) / 1000, abs=2e-6)
    found = {row["name"]: row["a_ms"] for row in said["kernels"]}
    names = set().union(*kernels)
    assert len(names & found.keys()) > len(names) / 2  # the others lose what differs from run to run
    for kernel in names & found.keys():
        assert found[kernel] == pytest.approx(float(statistics.median(of[kernel] for of in kernels)) / 1000, abs=2e-6)


def test_diff_leaves_out_what_was_launched_before_the_recording(tmp_path):
    """A kernel whose correlation is less than that of any call, and one that runs long after its step."""
    trace = advicetraces.Trace()
    trace.correlation = 100
    trace.each(lambda base: trace.work(advicetraces.GEMM, base + 900, 300, ahead=800))
    trace.add("kernel", advicetraces.GEMM, 8, 10100, 70, pid=0, device=0, stream=8, correlation=7)
    path = trace.write(tmp_path / "a.pt.trace.json")
    said = json.loads(told("diff", path, path, "--json"))
    assert [row["a_ms"] for row in said["parts"] if row["name"] == "compute"] == [0.3]
    assert [(row["a_ms"], row["a_count"]) for row in said["kernels"]] == [(0.3, 1)]


# ---- kprof report --within a call of CUDA ----

@pytest.mark.parametrize("name, call", [("h200_graphed", "cudaGraphLaunch"), ("h200_training", "cudaLaunchKernel"), ("h200_training", "cudaMemcpyAsync"),
                                        ("diff_control_a100", "cudaMemcpyAsync"), ("cp_alexnet_a100", "cudaLaunchKernel")])
def test_what_a_call_launched_is_in_it(name, call, real_gpu_trace):
    path = real_gpu_trace(name)
    events = gputraces.slices(gputraces.load(path))
    calls = {e["args"]["correlation"] for e in events if e["name"] == call}
    work = [e for e in events if e["cat"] in gputraces.WORK and e["args"]["correlation"] in calls]
    count, us = collections.Counter(e["name"] for e in work), collections.Counter()
    for e in work:
        us[e["name"]] += e["dur"]
    assert count
    for by in ("kernel", "op"):
        said = numbers(path, "--within", call, "--step", "all", "--by", by)
        rows = {row["name"]: row for row in said["rows"] if row["gpu_self_ms"] > 0}
        assert {kernel: row["count"] for kernel, row in rows.items()} == {kernel: n for kernel, n in count.items() if us[kernel]}
        assert {kernel: row["gpu_self_ms"] for kernel, row in rows.items()} == pytest.approx({kernel: float(t) / 1000 for kernel, t in us.items() if t}, abs=1e-4)


def test_within_an_op_its_kernels_stay_in_its_row(real_gpu_trace):
    path = real_gpu_trace("h200_training")
    rows = [row["name"] for row in numbers(path, "--within", "aten::mm", "--step", "all")["rows"] if row["gpu_self_ms"] > 0]
    assert rows == ["aten::mm"]


# ---- work that was launched before the recording ----

BEFORE = "(launched before the recording)"


@pytest.mark.parametrize("name, has", [("neg_queue_a100", True), ("diff_test_v100", True), ("h200_training", False), ("h200_graphed", False)])
def test_what_was_launched_before_the_recording_is_one_row(name, has, real_gpu_trace):
    path = real_gpu_trace(name)
    events = gputraces.slices(gputraces.load(path))
    first = min(e["args"]["correlation"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and e["args"].get("correlation"))
    before = [e for e in events if e["cat"] in gputraces.WORK and e["args"]["correlation"] < first]
    assert bool(before) == has
    said = [(row["count"], row["gpu_self_ms"]) for row in numbers(path, "--step", "all")["rows"] if row["name"] == BEFORE]
    assert said == ([(len(before), pytest.approx(float(sum(e["dur"] for e in before)) / 1000, abs=1e-4))] if has else [])
    kernels = numbers(path, "--step", "all", "--by", "kernel")["rows"]
    assert sum(row["count"] for row in kernels) == sum(e["cat"] in gputraces.WORK for e in events)
    only = {e["name"] for e in before} - {e["name"] for e in events if e["cat"] in gputraces.WORK and e["args"]["correlation"] >= first}
    assert {row["name"] for row in kernels if row.get("op") == BEFORE} >= only


def test_in_a_recording_without_calls_nothing_says_that_work_is_older(tmp_path):
    trace = advicetraces.Trace().each(lambda base: None)
    trace.add("kernel", advicetraces.GEMM, 7, 10100, 70, pid=0, device=0, stream=7, correlation=7)
    said = numbers(trace.write(tmp_path / "a.pt.trace.json"), "--step", "all")["rows"]
    assert [row["name"] for row in said if row["gpu_self_ms"] > 0] == [advicetraces.GEMM]


# ---- copies by direction ----

def copies_told(path):
    """Rows below "copies": what -> (count, MB, ms, GB/s, host memory)."""
    text = told("report", path, "--by", "kernel", "--step", "all", "-n", "1")
    rows = text.split("\ncopies ", 1)[1].split("\n\n")[0].splitlines()[1:] if "\ncopies " in text else []
    rows = [row.split() for row in rows if len(row.split()) >= 5 and row.split()[1].isdigit()]
    return {(what, *memory): (int(count), amount, float(ms), speed) for what, count, amount, ms, speed, *memory in rows}


@pytest.mark.parametrize("name", ["h200_training", "h200_graphed", "diff_control_a100", "neg_queue_a100", "amd_mi250", "tb_resnet50_nw0_v100_2021"])
def test_copies_are_told_by_direction(name, real_gpu_trace):
    path = real_gpu_trace(name)
    found = collections.defaultdict(lambda: [0, 0, 0])
    for e in gputraces.slices(gputraces.load(path)):
        if e["cat"] not in ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset"):
            continue
        memory = [word.lower() for word in ("Pageable", "Pinned") if word in e["name"]]
        to = found[(e["name"].split()[1] if e["name"].startswith("Memcpy ") else "fill", *memory)]
        to[0] += 1
        to[1] += int(e["args"].get("bytes", 0))
        to[2] += e["dur"]
    said = copies_told(path)
    assert {key: row[0] for key, row in said.items()} == {key: row[0] for key, row in found.items()}
    for key, (count, size, us) in found.items():
        _, amount, ms, speed = said[key]
        assert ms == pytest.approx(float(us) / 1000, abs=6e-4)
        if not size:
            assert (amount, speed) == ("-", "-")
            continue
        assert (float(amount), float(speed)) == (pytest.approx(size / 2**20, abs=6e-3), pytest.approx(size / float(us) / 1000, abs=6e-3))
    rows = [row for row in numbers(path, "--by", "kernel", "--step", "all")["rows"] if "bytes" in row]
    assert sum(row["bytes"] for row in rows) == sum(size for _, size, _ in found.values())


# ---- the head: work of a step, and what bounds it ----

@pytest.mark.parametrize("name", ["h200_training", "h200_graphed", "h200_waits", "nccl_a100", "neg_queue_a100", "tb_resnet50_nw0_v100_2021"])
def test_a_steps_work_is_what_it_asked_the_gpu_for(name, real_gpu_trace):
    path = real_gpu_trace(name)
    events = gputraces.prepared(gputraces.load(path))
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] in ("user_annotation", "cpu_op")]
    by_call = name in ("neg_queue_a100", "tb_resnet50_nw0_v100_2021")  # an External id there is no id of an op
    calls = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
    works = [(e, calls.get(e["args"]["correlation"])) for e in events if e["cat"] in gputraces.WORK] if by_call else list(asked(events))
    us = sum(e["dur"] for e, at in works if at is not None and is_in(at, steps))
    said = numbers(path)
    assert said["gpu_ms_a_step"] == pytest.approx(float(us) / 1000 / len(steps), rel=1e-4 if by_call else 1e-9, abs=1e-5)
    text = told("report", path)
    assert f" of work per step), idle " in text.split("GPU      busy ", 1)[1].splitlines()[0]


BOUNDS = {"launch-bound": "host launches", "launch-blocking": "host launches", "data-loading": "data loading", "exposed-copies": "copies",
          "pageable-copies": "copies", "copies-to-join": "copies"}


@pytest.mark.parametrize("name", [name for name in advicetraces.SICKNESSES if name in advicetraces.TWINS])
def test_what_bounds_a_step_is_what_advise_finds(name, tmp_path):
    for make, expected in ((advicetraces.SICKNESSES[name], BOUNDS.get(name)), (advicetraces.TWINS[name], None)):
        trace = make()
        path = trace.write(tmp_path / "a.pt.trace.json")
        steps = [e for e in trace.events if e["name"].startswith("ProfilerStep#")]
        begin, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
        kernels = [(max(e["ts"], begin), min(e["ts"] + e["dur"], end)) for e in trace.events if e["cat"] == "kernel" and not e["name"].startswith("nccl")]
        computes = covered(kernels) / (end - begin)
        advice = json.loads(told("advise", path, "--json"))
        ids = [finding["id"] for finding in advice["findings"]]
        said = numbers(path).get("bound_by")
        if advice["missing"] and ids == []:
            continue
        if computes >= 0.9:
            assert said == "GPU compute", (name, computes)
        elif expected or not kernels:
            assert said == expected, (name, computes)
        elif said:
            assert said == "GPU compute" and computes >= 0.5, (name, computes, ids)
        assert (f"; limited by {said}\n" in told("report", path)) == bool(said)


def test_where_other_time_is_asked_for_nothing_is_said_to_bound_it(tmp_path):
    path = advicetraces.SICKNESSES["launch-bound"]().write(tmp_path / "a.pt.trace.json")
    assert numbers(path)["bound_by"] == "host launches" and numbers(path, "--step", "6-8")["bound_by"] == "host launches"
    assert "bound_by" not in numbers(path, "--within", "aten::*") and "bound_by" not in numbers(path, "--from", "0", "--to", "3000")


# ---- a GPU that was not recorded in the steps ----

def test_a_gpu_recorded_before_the_steps_alone_is_not_called_idle(real_gpu_trace, tmp_path):
    """Another profiler may have CUPTI from the first step on."""
    whole = gputraces.load(real_gpu_trace("h200_training"))
    events = whole["traceEvents"]
    first = min(e["ts"] for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation")
    of_gpu = gputraces.WORK + ("cuda_runtime", "cuda_driver", "gpu_user_annotation", "ac2g", "cuda_sync")
    kernel = next(e for e in events if e.get("cat") == "kernel")
    call = next(e for e in events if e.get("cat") == "cuda_runtime" and e["args"]["correlation"] == kernel["args"]["correlation"])
    whole["traceEvents"] = [e for e in events if e.get("cat") not in of_gpu]
    part = tmp_path / "left.pt.trace.json"
    for tail, is_known in ((3, False), (2000, True)):  # microseconds of the kernel that reach into the first step
        moved = [{**call, "ts": first - 100, "dur": 5}, {**kernel, "ts": first - 50, "dur": 50 + tail}]
        for e in moved:  # their op is in the step
            e["args"] = {key: value for key, value in e["args"].items() if key != "External id"}
        part.write_text(json.dumps({**whole, "traceEvents": moved + whole["traceEvents"]}, default=float))
        line = next(line for line in told("report", part).splitlines() if line.startswith("GPU "))
        advice = told("advise", part)
        assert ("busy" in line, "work was recorded, but not in these steps" in line) == (is_known, not is_known), line
        assert ("INCOMPLETE  GPU work was recorded before or after these steps" in advice) == (not is_known), advice
        assert ("the GPU waits for" in advice) == is_known, advice


# ---- work that no op launched: graphs and Triton ----

def served(path):
    """Four steps of serve(): replay() launches a graph of five kernels, sample() one of Triton by the driver; no op."""
    events, correlation = [], 0
    for step in range(4):
        base = 1000.0 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9, "tid": 9, "ts": base, "dur": 990, "args": {"External id": step + 2}})
        for name, at, us in (("serve.py(10): step", 2, 980), ("serve.py(20): replay", 5, 80), ("serve.py(30): sample", 100, 60)):
            events.append({"ph": "X", "cat": "python_function", "name": name, "pid": 9, "tid": 9, "ts": base + at, "dur": us, "args": {}})
        for call, cat, at, kernels in (("cudaGraphLaunch", "cuda_runtime", 10, ["graph_a", "graph_b"] * 2 + ["graph_a"]), ("cuLaunchKernel", "cuda_driver", 110, ["triton_sample"])):
            correlation += 1
            events.append({"ph": "X", "cat": cat, "name": call, "pid": 9, "tid": 9, "ts": base + at, "dur": 5, "args": {"correlation": correlation}})
            for i, kernel in enumerate(kernels):
                events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": base + at + 20 + 110 * i, "dur": 100,
                               "args": {"correlation": correlation, "stream": 7, "device": 0}})
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": events}))
    return path


def test_work_of_graphs_and_triton_is_where_its_call_is(tmp_path):
    trace = served(tmp_path / "served.pt.trace.json")
    stacks = dict(line.rsplit(" ", 1) for line in told("stacks", "-m", "gpu", trace).splitlines())
    above = "serve.py(10): def step;serve.py(20): def replay;cudaGraphLaunch;"
    assert {name[name.index("serve"):]: int(us) for name, us in stacks.items()} == {
        above + "graph_a": 1200, above + "graph_b": 800, "serve.py(10): def step;serve.py(30): def sample;cuLaunchKernel;triton_sample": 400}
    lines = {row["name"]: row for row in numbers("--by", "line", trace)["rows"]}
    assert (lines["serve.py:20 def replay"]["gpu_self_ms"], lines["serve.py:20 def replay"]["gpu_total_ms"]) == (2.0, 2.0)
    assert (lines["serve.py:30 def sample"]["gpu_self_ms"], lines["serve.py:10 def step"]["gpu_total_ms"]) == (0.4, 2.4)
    rows = {row["name"]: row for row in numbers(trace)["rows"]}
    assert rows["ProfilerStep*"]["gpu_total_ms"] == 2.4 and rows["cudaGraphLaunch"]["gpu_total_ms"] == 2.0
    assert rows["graph_a"]["gpu_self_ms"] == 1.2 and sum(row["gpu_self_ms"] for row in rows.values()) == pytest.approx(2.4)
    assert numbers("--within", "serve.py(20): replay", trace)["rows"][0]["gpu_total_ms"] > 0
