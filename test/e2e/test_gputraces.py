# SPDX-License-Identifier: Apache-2.0
"""Traces of real GPUs, written by Kineto, told again as spools of ours: what our exporter computes is what those files say.

Kineto's own numbers are the oracle: which op launched what, occupancy, blocks and warps a multiprocessor, bandwidth, arrows, the
extent of annotations on streams, whom a wait waited for. Four were recorded for us on an H200; the others are others' files (KPROF_GPU_TRACES), which are skipped without them.
"""
import collections
import decimal
import json
import re
import subprocess
import sys

import pytest

import gputraces
import harness

# name of the folder, whether External ids of its GPU events are those of ops (older Kinetos wrote CUPTI's numbers there)
TRACES = {"h200_training": True, "h200_compiled": True, "h200_graphed": True, "h200_waits": True,
          "nccl_a100": True, "triton_a100": True, "event_sync_multi_a100": True, "tb_resnet50_nw4_v100_2021": True,
          "kineto_docs_h100": False, "event_sync_a100": False, "cp_alexnet_a100": False, "cp_simple_add_a100": False, "diff_test_v100": False,
          "neg_queue_a100": False, "gpu_user_annot_gp100": False, "et_simple_add_a100": False}
DEVICE = (*gputraces.WORK, "cuda_sync")


@pytest.fixture(scope="module", params=TRACES)
def both(request, real_gpu_trace, tmp_path_factory):
    """Kineto's trace and ours of the same run: name, events of the one, of the other, our file, Kineto's trace."""
    path = real_gpu_trace(request.param)
    out = tmp_path_factory.mktemp(request.param)
    trace = gputraces.load(path)
    theirs = gputraces.prepared(trace)
    gputraces.write(trace, theirs, out / "told.kprof")
    done = harness.cli("export", out / "told.kprof", "-o", out)
    assert done.returncode == 0, done.stderr
    file = next(out.glob("*.pt.trace.json.gz"))
    told = gputraces.load(file)
    return request.param, theirs, gputraces.prepared(told), file, trace, told


def of(events, *cats):
    return [e for e in events if e["cat"] in cats]


def row(e):
    """pid and tid as written today: older Kinetos gave a device's own row the tid -1, and "Stream Sync" no row of its own."""
    if e["cat"] in ("cuda_runtime", "cuda_driver"):
        return e["tid"] & 0xFFFFFFFF
    if e["name"] == "Stream Sync" and e["tid"] < 1000000:
        return e["pid"], e["tid"] + 1000000
    return e["pid"], 1 if e["tid"] in (-1, 4294967295) else e["tid"]


def test_every_event_comes_back_where_and_when_it_was(both):
    _, theirs, ours, *_ = both
    for cat in (*DEVICE, "cuda_runtime", "cuda_driver"):
        sides = [collections.Counter((row(e), e["ts_ns"], e["dur_ns"], e["name"]) for e in of(side, cat)) for side in (theirs, ours)]
        assert sides[0] == sides[1], (cat, list(sides[0] - sides[1])[:3], list(sides[1] - sides[0])[:3])


def known(args):
    """What of a device event's arguments is the same in all Kinetos. Ours says more than the old ones."""
    left_out = ("External id", "blocks per SM", "warps per SM", "memory bandwidth (GB/s)", "occupancy", "stream")
    if args.get("wait_on_stream", -1) >= 0 and "wait_on_cuda_event_record_corr_id" not in args:
        left_out += ("wait_on_stream",)  # cp_simple_add: the record itself is not told of
    return {k: v for k, v in args.items() if k not in left_out and k != "external ts" and not re.match("(In|Out) |Collective|Group|dtype|Process", k)}


def test_arguments_of_devices_events_are_equal(both):
    _, theirs, ours, *_ = both
    mine = collections.defaultdict(list)
    for e in of(ours, *DEVICE):
        mine[e["cat"], e["args"]["correlation"], e["ts_ns"]].append(e)
    for e in of(theirs, *DEVICE):
        candidates = mine[e["cat"], e["args"]["correlation"], e["ts_ns"]]
        expected = known(e["args"])
        assert any(expected.items() <= known(c["args"]).items() for c in candidates), (e, candidates)


def test_occupancy_and_blocks_and_warps_are_kinetos(both):
    name, theirs, ours, *_ = both
    mine = {(e["args"]["correlation"], e["ts_ns"], e["tid"]): e["args"] for e in of(ours, "kernel")}
    counted = 0
    for e in of(theirs, "kernel"):
        a, b = e["args"], mine[e["args"]["correlation"], e["ts_ns"], e["tid"]]
        if "blocks per SM" not in a:
            continue
        counted += 1
        for what in ("blocks per SM", "warps per SM"):
            assert abs(decimal.Decimal(a[what]) - decimal.Decimal(b[what])) <= decimal.Decimal("0.000001") * max(1, decimal.Decimal(a[what])), (a, b)
        assert a["est. achieved occupancy %"] == b["est. achieved occupancy %"], (a, b)
        if "occupancy" in a:
            assert {**b["occupancy"], **a["occupancy"]} == b["occupancy"], (a, b)
    assert counted == len(of(theirs, "kernel")), name


def test_bandwidth_is_bytes_a_nanosecond(both):
    name, theirs, ours, *_ = both
    mine = {(e["args"]["correlation"], e["ts_ns"], e["tid"]): e["args"] for e in of(ours, "gpu_memcpy", "gpu_memset")}
    if not any(e["dur_ns"] % 1000 for e in theirs):
        pytest.skip(f"{name} has whole microseconds: its bandwidth is of times it does not show")
    if not mine:
        pytest.skip(f"{name} copies nothing")
    for e in of(theirs, "gpu_memcpy", "gpu_memset"):
        a, b = e["args"], mine[e["args"]["correlation"], e["ts_ns"], e["tid"]]
        said = decimal.Decimal(a["memory bandwidth (GB/s)"])
        assert abs(said - decimal.Decimal(b["memory bandwidth (GB/s)"])) <= decimal.Decimal("0.000001") * max(1, said), (a, b)


def test_work_belongs_to_the_op_that_launched_it(both):
    name, theirs, ours, *_ = both
    if not TRACES[name]:
        pytest.skip(f"{name}: the External ids of its GPU events are CUPTI's numbers")
    expected, found = gputraces.linked_op(theirs), gputraces.linked_op(ours)
    assert set(expected) == set(found)
    wrong = [c for c in expected if expected[c] != found[c]]
    # an edge of an op and the middle of a call in whole microseconds may fall on each other
    assert len(wrong) <= len(expected) // 2000, [(c, expected[c], found[c]) for c in wrong[:5]]


def arrows(trace, phase):
    return collections.Counter((e["id"], e["pid"], e["tid"], gputraces.ns(e["ts"])) for e in trace["traceEvents"]
                               if e.get("cat") == "ac2g" and e["ph"] == phase)


def on_streams(ends):
    """Since 2026 Kineto gives "Stream Sync" a row of its own, a million above its stream's."""
    return collections.Counter({(i, p, t % 1000000, at): n for (i, p, t, at), n in ends.items()})


def test_arrows_go_from_the_same_calls_to_the_same_work(both):
    name, theirs, ours, _, trace, told = both
    if not arrows(trace, "s"):
        pytest.skip(f"{name} has no arrows of this kind")
    if any(e.get("cat") == "cuda_sync" and e["tid"] in (-1, 4294967295) for e in theirs):
        pytest.skip(f"{name}: its rows of waits are numbered in the old way")
    shift = told["baseTimeNanoseconds"] - trace.get("baseTimeNanoseconds", 0)
    moved = {phase: collections.Counter({(i, p, t, at + shift): n for (i, p, t, at), n in arrows(told, phase).items()}) for phase in "sf"}
    pids = {e["pid"] for e in of(theirs, "cuda_runtime", "cuda_driver")}
    own = {e["pid"] for e in of(ours, "cuda_runtime", "cuda_driver")}
    if pids != own:
        pytest.skip(f"{name}: processes {pids}, a spool is of one")
    calls = {e["args"]["correlation"]: e["name"] for e in of(theirs, "cuda_runtime", "cuda_driver")}
    assert not arrows(trace, "s") - moved["s"]
    waits = {calls[arrow[0]] for arrow in moved["s"] - arrows(trace, "s")}  # of calls that only newer Kinetos draw from
    assert waits <= {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaStreamWaitEvent"}, waits
    ends = {(e["args"]["correlation"], e["pid"], e["tid"], gputraces.ns(e["ts"])) for e in of(theirs, *DEVICE)}
    known = {k: n for k, n in arrows(trace, "f").items() if k in ends}  # Kineto's others end nowhere
    assert on_streams(moved["f"]) == on_streams(known)


def test_annotations_reach_over_the_same_work(both):
    name, theirs, ours, *_ = both
    if not of(theirs, "gpu_user_annotation"):
        pytest.skip(f"{name} has no annotations of streams")
    annotation = [{e["args"]["External id"]: gputraces.key(e) for e in of(side, "user_annotation")} for side in (theirs, ours)]
    spans = [{(e["pid"], e["tid"], e["name"], ids.get(e["args"]["External id"])): (e["ts_ns"], e["ts_ns"] + e["dur_ns"])
              for e in of(side, "gpu_user_annotation")} for side, ids in zip((theirs, ours), annotation)]
    spans[0] = {which: span for which, span in spans[0].items() if which[3][2]}  # an annotation of 0 whole microseconds holds no call
    assert set(spans[0]) == set(spans[1])
    for which, span in spans[0].items():  # older Kinetos: a microsecond before, half of one after
        assert all(abs(a - b) <= 1001 for a, b in zip(span, spans[1][which])), (which, span, spans[1][which])


def tool(name, file):
    done = subprocess.run([sys.executable, harness.HERE / "oracle" / name, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_rules_hold_when_others_derive_them(both):
    _, _, ours, file, *_ = both
    said = tool("check_rules.py", file)
    for right, all_of, unlinked in re.findall(r"innermost cpu_op: (\d+) of (\d+) \(no enclosing op: (\d+)\)", said):
        assert int(right) + int(unlinked) >= int(all_of) - int(all_of) // 1000, said
    if of(ours, "gpu_user_annotation"):
        assert "keys equal True" in said, said
    said = tool("check_occupancy.py", file)
    for mismatches in re.findall(r"mismatch (\d+)", said):
        assert mismatches == "0", said


def test_nothing_is_left_out(both):
    *_, told = both
    counts = told["kprof_gpu"]
    assert counts.pop("source") == "cupti"
    assert all(set(kind) == {"shown"} for kind in counts.values()), counts


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled"])
def test_a_slice_has_the_gpu_work_that_its_steps_launched(name, real_gpu_trace, tmp_path):
    """Much of it runs when the step is over."""
    path = real_gpu_trace(name)
    assert harness.cli("slice", path, "--step", "3", "-o", tmp_path / "part.pt.trace.json.gz").returncode == 0
    whole, part = (json.loads(harness.cli("report", *asked, "-n", "0", "--json").stdout) for asked in
                   ((path, "--step", "3"), (tmp_path / "part.pt.trace.json.gz",)))
    rows = [{row["name"]: (row["count"], row["gpu_self_ms"], row["self_ms"]) for row in said["rows"]} for said in (whole, part)]
    rows[1].pop("(launched before the recording)", None)
    assert rows[0] == rows[1] and sum(gpu for _, gpu, _ in rows[0].values()) > 0
    kernels = gputraces.load(tmp_path / "part.pt.trace.json.gz")["traceEvents"]
    launched = {e["args"]["correlation"] for e in kernels if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    step = next(e for e in kernels if e["name"] == "ProfilerStep#3" and e["cat"] == "user_annotation")
    for e in kernels:  # what ran in the step for an earlier one is there, shortened to it
        if e.get("cat") in gputraces.WORK and e["args"]["correlation"] not in launched:
            assert e["ts"] >= step["ts"] and e["ts"] + e["dur"] <= step["ts"] + step["dur"]


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled", "h200_graphed", "h200_waits"])
def test_the_gpu_of_a_slice_is_as_busy_as_it_was_in_the_whole(name, real_gpu_trace, tmp_path):
    path = real_gpu_trace(name)
    for step in ("3", "4"):
        assert harness.cli("slice", path, "--step", step, "-o", tmp_path / "part.pt.trace.json.gz").returncode == 0
        said = [harness.cli("report", *asked).stdout for asked in ((path, "--step", step), (tmp_path / "part.pt.trace.json.gz",))]
        busy = [re.search(r"^GPU +busy ([\d.]+) %", text, re.M)[1] for text in said]
        assert busy[0] == busy[1], (step, busy)


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled", "h200_graphed"])
def test_the_rows_of_kernels_are_the_files_kernels(name, real_gpu_trace):
    path = real_gpu_trace(name)
    work = collections.defaultdict(list)
    ops = {}
    events = gputraces.load(path)["traceEvents"]
    by_id = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op" and "External id" in e["args"]}
    for e in events:
        if e.get("cat") in gputraces.WORK:
            work[e["name"]].append(gputraces.ns(e["dur"]))
            ops.setdefault(e["name"], set()).add(by_id.get(e["args"].get("External id")))
    said = json.loads(harness.cli("report", path, "--by", "kernel", "--step", "all", "-n", "0", "--json").stdout)["rows"]
    assert {row["name"]: row["count"] for row in said} == {kernel: len(ns) for kernel, ns in work.items()}
    for row in said:
        ns = work[row["name"]]
        assert (row["gpu_self_ms"], row["gpu_longest_ms"]) == (pytest.approx(sum(ns) / 1e6, abs=1e-6 * len(ns)), pytest.approx(max(ns) / 1e6, abs=1e-6))
        assert row.get("op") in ops[row["name"]] and row.get("ops", 0) == len(ops[row["name"]] - {None})


def of_kernels(path, out, *, keep, more=()):
    """What advise says is missing where of the kernels only those are in the trace that keep(n) wants."""
    trace, kernels = gputraces.load(path), 0
    kept = [*more]
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            kernels += 1
            if not keep(kernels):
                continue
        kept.append(event)
    out.write_text(json.dumps({**trace, "traceEvents": kept}, default=str))
    return json.loads(harness.cli("advise", "--json", out).stdout)["missing"] or ""


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled", "h200_graphed", "h200_waits"])
def test_kernels_that_were_launched_and_are_not_there_are_told(name, real_gpu_trace, tmp_path):
    path, out = real_gpu_trace(name), tmp_path / "less.json"
    assert "launched" not in of_kernels(path, out, keep=lambda n: True)
    assert re.match(r"none of the \d+ launched kernels is in the trace", of_kernels(path, out, keep=lambda n: False))
    if name != "h200_graphed":  # three launches, one of many kernels
        lost, launched = map(int, re.match(r"(\d+) of the (\d+) kernels that were launched ", of_kernels(path, out, keep=lambda n: n % 20)).groups())
        assert lost == launched // 20


def test_launches_into_a_capture_have_no_kernel(real_gpu_trace, tmp_path):
    path = real_gpu_trace("h200_training")
    calls = sorted((e for e in gputraces.load(path)["traceEvents"] if e.get("cat") == "cuda_runtime"), key=lambda e: e["ts"])
    first, last = calls[0], calls[-1]
    marks = [{**first, "name": "cudaStreamBeginCapture", "dur": 0, "args": {}}, {**last, "name": "cudaStreamEndCapture", "ts": last["ts"] + last["dur"], "args": {}}]
    assert "launched" in of_kernels(path, tmp_path / "a.json", keep=lambda n: n % 20)
    assert "launched" not in of_kernels(path, tmp_path / "b.json", keep=lambda n: n % 20, more=marks)
    assert "launched" not in of_kernels(path, tmp_path / "c.json", keep=lambda n: n % 20, more=marks[1:])  # its begin came before the recording
