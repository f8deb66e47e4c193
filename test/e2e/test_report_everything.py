# SPDX-License-Identifier: Apache-2.0
"""kprof report and kprof stacks over runs with everything on, letter for letter as torch: of torch's file as torch has it in memory, and
of our file of the same run as torch's own code has it when it is given the events of that file. On the CPU and on the simulated GPU."""
import collections
import decimal
import json
import platform
import re
import subprocess

import pytest

import harness
import viewing
from test_report import wrong_tables

REPORT = harness.HERE / "report"
SIMGPU = harness.BUILD / platform.machine() / "simgpu"
METRICS = ["self_cpu_time_total", "self_cuda_time_total"]
SETTINGS = {"KPROF_SCHEDULE": "wait=0,warmup=1,active=2,repeat=1", "KPROF_GZIP": 0, "KPROF_RECORD_SHAPES": 1, "KPROF_PROFILE_MEMORY": 1,
            "KPROF_WITH_FLOPS": 1, "KPROF_CUPTI": "tee"}


def recorded(folder, device, *alone, **env):
    """recorded.py under libkprof."""
    command = [harness.PYTHON, REPORT / "recorded.py", folder, device, *alone]
    env = {**SETTINGS, **env}
    if device == "cuda":
        if not (SIMGPU / "libcudnn.so.9").exists():
            pytest.skip("make simgpu builds the simulated GPU")
        command = [harness.ROOT / "scripts" / "simgpu-run", *command]
        env["SIMGPU_BUILD"] = SIMGPU
    run = harness.Run(command, folder, harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=folder / "ours", **env), 300)
    if "not compiled with CUDA" in run.err:
        pytest.skip("this torch has no CUDA")
    run.ok()
    (run.ours,) = (folder / "ours").glob("*.pt.trace.json")
    return run


def told_by_torch(run, *flops):
    """torch's tables and stacks of the events of our trace."""
    out = run.folder / "of_ours"
    out.mkdir(exist_ok=True)
    harness.Run([harness.PYTHON, REPORT / "torch_tables.py", run.ours, out, "EVERY", *flops], out, harness.clean_environment(), harness.LONG, warm_start=True).ok()
    return out


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def both(request, once):
    """torch.profiler and libkprof around the same steps."""
    return once(("recorded", request.param), lambda folder: recorded(folder, request.param, KPROF_STEP="range:ProfilerStep", KPROF_WITH_STACK="ops"))


@pytest.fixture(scope="module")
def alone(once):
    """libkprof alone, so that it traces Python."""
    return once("recorded alone", lambda folder: recorded(folder, "cpu", "alone", KPROF_WITH_STACK=1, KPROF_WITH_FLOPS=0))


def stacks(metric, trace):
    return harness.cli("stacks", "--torch", "--metric", metric, trace).stdout


def test_tables_of_torchs_file_are_those_torch_printed(both):
    assert not wrong_tables(both.folder / "trace.json", both.folder / "tables.json", least=60)


@pytest.mark.parametrize("metric", METRICS)
def test_stacks_of_torchs_file_are_those_torch_exported(both, metric):
    exported = (both.folder / f"{metric}.txt").read_text()
    assert stacks(metric, both.folder / "trace.json") == exported
    assert exported.count("\n") > 50 or (metric, both.command[-1]) == ("self_cuda_time_total", "cpu")


def test_tables_of_our_file_are_those_torch_makes_of_it(both):
    out = told_by_torch(both, both.folder / "flops.json")
    assert not wrong_tables(both.ours, out / "tables.json", least=60)
    for metric in METRICS:
        assert stacks(metric, both.ours) == (out / f"{metric}.txt").read_text()


def test_tables_with_calls_of_python_are_those_torch_makes_of_them(alone):
    if '"further part"' in alone.ours.read_text():
        pytest.skip("a range crosses a long call, whose further part torch counts as a call of its own (decisions/131)")
    out = told_by_torch(alone)
    assert not wrong_tables(alone.ours, out / "tables.json", least=60)
    exported = (out / "self_cpu_time_total.txt").read_text()
    assert stacks("self_cpu_time_total", alone.ours) == exported and exported.count("\n") > 50


def cells(text, *columns):
    """How often each row of a table has these columns."""
    lines = text.splitlines()
    ends, at = [], 0
    for rule in lines[0].split("  "):
        ends.append((at, at + len(rule)))
        at += len(rule) + 2
    heads = re.split("  +", lines[1].strip())  # one is wider than its column
    rows = lines[3:[i for i, line in enumerate(lines) if line == lines[0]][2]]
    return collections.Counter(tuple(row[slice(*ends[heads.index(name)])].strip() for name in columns) for row in rows)


def test_what_needs_no_clock_is_the_same_in_our_file_and_in_torchs(both):
    """Which rows, how often, on which shapes, how many bytes and FLOPs. Self bytes are not: torch has calls of Python between the ops."""
    asked = ["--group-by-input-shape", "--row-limit", "-1", "--max-name-column-width", "none", "--max-shapes-column-width", "none"]
    columns = ["Name", "# of Calls", "Input Shapes", "CPU Mem", "Total FLOPs"] + ["CUDA Mem"] * (both.command[-1] == "cuda")
    ours, theirs = (cells(harness.cli("report", "--torch", *asked, trace).stdout, *columns) for trace in (both.ours, both.folder / "trace.json"))
    own = [row for row in theirs if row[0] == "cudaDeviceSynchronize"]  # torch.profiler's own, when it stops
    assert len(own) == (both.command[-1] == "cuda")
    theirs -= collections.Counter(own)
    assert sum(theirs.values()) > 60
    assert ours == theirs, ((ours - theirs).most_common(5), (theirs - ours).most_common(5))


def listed(trace, *flags):
    told = harness.cli("events", "--json", *flags, trace)
    assert told.returncode == 0, told.stderr
    return collections.Counter(json.dumps(json.loads(line, parse_float=str), sort_keys=True) for line in told.stdout.splitlines())


def test_events_of_every_kind_are_found_by_what_they_are(both):
    """Memory, calls of Python, work of devices: filters alone and together, over torch's file and ours, beside the same of the JSON."""
    for path in (both.ours, both.folder / "trace.json"):
        trace = json.loads(path.read_text(), parse_float=str)
        kept = [{k: e[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args") if k in e}
                for e in trace["traceEvents"] if e["ph"] in "Xi" and "cat" in e]
        step = next(e for e in kept if e["name"] == "ProfilerStep#2" and e["cat"] == "user_annotation")
        low, high = decimal.Decimal(step["ts"]), decimal.Decimal(step["ts"]) + decimal.Decimal(step["dur"])
        span = next(e for e in kept if e["name"].startswith("PyTorch Profiler"))
        middle = (low + high) / 2 - decimal.Decimal(span["ts"])

        def begins_in(e, first=low, last=high):
            return first <= decimal.Decimal(e["ts"]) < last

        asked = {("--cat", "cpu_instant_event"): lambda e: e["cat"] == "cpu_instant_event",
                 ("--name", "[[]memory]", "--step", "2"): lambda e: e["name"] == "[memory]" and begins_in(e),
                 ("--cat", "kernel", "--step", "2"): lambda e: e["cat"] == "kernel" and begins_in(e),
                 ("--cat", "python_function", "--name", "/linear/"): lambda e: e["cat"] == "python_function" and "linear" in e["name"],
                 ("--tid", step["tid"], "--from", middle): lambda e: e["tid"] == step["tid"] and decimal.Decimal(e["ts"]) - decimal.Decimal(span["ts"]) >= middle,
                 ("--name", "aten::add*", "--step", "1-2"): lambda e: e["name"].startswith("aten::add") and any(
                     begins_in(e, decimal.Decimal(s["ts"]), decimal.Decimal(s["ts"]) + decimal.Decimal(s["dur"])) for s in kept
                     if s["name"] in ("ProfilerStep#1", "ProfilerStep#2") and s["cat"] == "user_annotation")}
        for flags, holds in asked.items():
            expected = collections.Counter(json.dumps(e, sort_keys=True) for e in kept if holds(e))
            assert listed(path, *flags) == expected, flags
            empty = ("kernel" in flags and both.command[-1] == "cpu") or ("python_function" in flags and path == both.ours)
            assert empty == (not expected), flags


def test_a_flame_graph_is_zoomed_and_searched_in_a_browser(alone, tmp_path):
    svg = tmp_path / "flames.svg"
    svg.write_text(harness.cli("stacks", "--torch", "--svg", alone.ours).stdout)
    said = viewing.browser.ask("flame_ask", svg, "nn.Module:_Net_0", "linear")
    assert said["console"] == []
    box = next(drawn for drawn in said["all"] if drawn[0].startswith("nn.Module:_Net_0"))
    left, right = box[2], box[2] + box[3]
    inside = {drawn[0] for drawn in said["all"] if drawn[2] < right - 1e-4 and drawn[2] + drawn[3] > left + 1e-4}
    zoomed = {drawn[0]: drawn[1] for drawn in said["zoomed"]}
    assert inside <= set(zoomed) and len(zoomed) < len({drawn[0] for drawn in said["all"]})  # what is beside it is gone
    whole = max(drawn[1] for drawn in said["all"])
    assert whole > 600 and box[1] < whole - 50 and zoomed[box[0]] > whole - 1 and said["told"] == box[0]
    assert said["back"] == said["reset"] == said["all"]  # Escape, and the word "back"
    names = [drawn[0].rpartition(" (")[0] for drawn in said["all"]]
    assert sum("linear" in name for name in names) == len(said["hits"]) > 0
    found = re.fullmatch(r"search: linear\s+(\d+) frames, (\d+\.\d\d) %", said["found"])
    assert int(found[1]) == len(said["hits"]) and float(found[2]) > 0
    assert "regular expression" in said["refused"]
    assert said["unfound"][0].endswith("0 frames, 0.00 %") and said["unfound"][1] == []
