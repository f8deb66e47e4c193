# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's GPU views and HolisticTraceAnalysis say of our file what they say of Kineto's file of the same run.

The program profiles itself under libkprof, so both files hold the very same work on the GPU. The third file ("dated") is
ours with Kineto's host times, event by event: of it every number must be Kineto's.
"""
import collections
import json
import re
import subprocess

import pytest

import facts
import gpufacts
import harness
import simgpu
import viewing
from viewing import only_file

HOST = ("cpu_op", "user_annotation")


def key_of(event):
    """What names an event in both files; host ops are named by their place on their thread."""
    category = event.get("cat")
    if category in (*gpufacts.API, *gpufacts.GPU):
        return category, event["name"], gpufacts.args(event)["correlation"], gpufacts.args(event).get("graph node id") or 0
    return category, event["pid"], event["tid"]


def in_order(trace, *categories):
    lines = collections.defaultdict(list)
    for event in gpufacts.of(trace, *categories):
        lines[key_of(event)].append(event)
    for line in lines.values():
        line.sort(key=lambda e: (facts.begin(e), -facts.ns(e["dur"])))
    return lines


def trim(ours, theirs):
    """Takes out what torch.profiler records only when asked (overhead), and of both files waits that only one window still holds:
    profiler.stop() waits inside of Kineto's, not of ours."""
    assert not [gpufacts.of(trace, "cuda_sync") for trace in (ours, theirs) if gpufacts.of(trace, "cuda_sync")], "nobody asked for waits"
    keys = [{key_of(e) for e in gpufacts.of(trace, *gpufacts.API)} for trace in (ours, theirs)]
    lonely = keys[0] ^ keys[1]
    assert {key[1] for key in lonely} <= {"cudaDeviceSynchronize"} and len(lonely) <= 4, lonely
    numbers = {key[2] for key in lonely}
    ours["traceEvents"] = [e for e in ours["traceEvents"] if e.get("cat") != "overhead"]
    for trace in (ours, theirs):
        trace["traceEvents"] = [e for e in trace["traceEvents"] if not (e.get("cat") in gpufacts.API and key_of(e) in lonely) and
                                not (e.get("cat") == "ac2g" and e["id"] in numbers)]


def dated(ours, theirs):
    """Our trace with Kineto's times."""
    moved = {}
    categories = (*HOST, *gpufacts.API, *gpufacts.GPU, "gpu_user_annotation")
    mine, other = in_order(ours, *categories), in_order(theirs, *categories)
    assert set(mine) == set(other), [sorted(map(str, set(a) - set(b)))[:5] for a, b in ((mine, other), (other, mine))]
    for key, line in mine.items():
        assert [e["name"] for e in line] == [e["name"] for e in other[key]], key
        for event, source in zip(line, other[key]):
            moved[event["pid"], event["tid"], facts.begin(event)] = source["ts"]
            event["ts"], event["dur"] = source["ts"], source["dur"]
            if "memory bandwidth (GB/s)" in gpufacts.args(source):  # bytes by the duration that Kineto gave
                event["args"]["memory bandwidth (GB/s)"] = source["args"]["memory bandwidth (GB/s)"]
    fixed = {e["name"]: e for e in theirs["traceEvents"] if e.get("cat") == "Trace" or e.get("ph") == "i"}
    for event in ours["traceEvents"]:
        if event.get("ph") in "sf":
            event["ts"] = moved[event["pid"], event["tid"], facts.begin(event)]
        elif event["name"] in fixed:
            event.update({key: fixed[event["name"]][key] for key in ("ts", "dur") if key in event})
    ours["baseTimeNanoseconds"] = theirs["baseTimeNanoseconds"]
    return ours


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("gpu_viewers")
    for name in ("kineto", "ours", "dated"):
        (top / name).mkdir()
    kineto = top / "kineto" / "host_1.1000.pt.trace.json"
    run = simgpu.run("stepped.py", top / "ours", kineto, kprof=True, schedule="wait=1,warmup=1,active=3,repeat=1",
                     KPROF_CUPTI="tee").ok()
    ours, theirs = facts.load(run.trace), facts.load(kineto)
    assert sum(gpufacts.gpu_facts(theirs)["kernel"].values()) > 50
    trim(ours, theirs)
    kineto.write_text(json.dumps(theirs))
    (top / "dated" / "host_1.1000.pt.trace.json").write_text(json.dumps(dated(ours, theirs), indent=1))
    run.trace.rename(top / "ours" / "host_1.1000.pt.trace.json.gz")
    return top


def test_both_files_hold_the_same_work(folders):
    """A record lasts the same in both but for the rounding of either (1 ns)."""
    said = []
    for name in ("kineto", "ours"):
        trace = facts.load(only_file(folders / name))
        said.append({(e["name"], gpufacts.args(e)["correlation"], gpufacts.args(e)["stream"]): facts.ns(e["dur"]) for e in gpufacts.of(trace, *gpufacts.GPU)})
    assert said[0].keys() == said[1].keys() and said[0]
    assert not [(key, said[0][key], said[1][key]) for key in said[0] if not gpufacts.as_long(said[0][key], said[1][key])]


def test_torchs_own_validator_accepts_the_gpu_side(folders):
    for name in ("kineto", "ours"):
        assert viewing.torchs_verdict(only_file(folders / name)) == "True []", name


# --- TensorBoard ---

@pytest.fixture(scope="module")
def board(folders):
    with viewing.tensorboard(folders, 3) as ask:
        yield ask


def views_of(board, run):
    where = dict(run=run, worker="host_1", span="1")
    said = {"views": board("views", run=run), "overview": board("overview", view="Overview", **where)}
    for group in ("Operation", "OperationAndInputShape"):
        said[f"pie {group}"] = board("operation", view="Operator", group_by=group, **where)
        said[f"table {group}"] = board("operation/table", view="Operator", group_by=group, **where)
    for group in ("Kernel", "KernelNameAndOpName"):
        said[f"kernels {group}"] = board("kernel/table", view="Kernel", group_by=group, **where)
    said["kernels"] = board("kernel", view="Kernel", **where)
    said["tensor cores"] = board("kernel/tc_pie", view="Kernel", **where)
    said["tree"] = board("tree", view="Module", **where)
    return said


def test_tensorboard_has_the_gpu_views(board):
    said = views_of(board, "ours")
    assert "Kernel" in said["views"] and said["views"] == views_of(board, "kineto")["views"]
    assert re.search(r"GPU Utilization", json.dumps(said["overview"]))


def test_tensorboard_lists_the_same_kernels(board):
    rows = [sorted(map(str, (row[:2] for row in views_of(board, run)["kernels Kernel"]["data"]["rows"]))) for run in ("kineto", "ours")]
    assert rows[0] and rows[0] == rows[1]


def test_tensorboard_computes_the_same_gpu_numbers(board):
    kineto, same = views_of(board, "kineto"), views_of(board, "dated")
    for what in kineto:
        assert same[what] == kineto[what], what


def test_tensorboard_has_nothing_to_complain_about_the_gpu(board):
    board("runs")
    assert not re.search(r"error|exception|intersect", board.log(), re.I), board.log()


# --- HolisticTraceAnalysis ---

@pytest.fixture(scope="module")
def hta(folders):
    python, said = viewing.venv("hta"), {}

    def ask(name):
        if name not in said:
            done = subprocess.run([python, harness.HERE / "viewers" / "hta_gpu.py", folders / name], capture_output=True, text=True,
                                  env=harness.clean_environment(), timeout=harness.LONG)
            assert done.returncode == 0, done.stderr[-3000:]
            said[name] = json.loads(done.stdout)
        return said[name]

    return ask


def test_hta_finds_the_gpu(hta):
    for what in ("temporal breakdown", "kernel breakdown", "idle time", "queue length", "launches", "memory bandwidth", "annotations"):
        assert hta("kineto")[what] and "error" not in str(hta("kineto")[what])[:40], what


def test_hta_counts_the_same_kernels_in_our_file(hta):
    """As it is, with our times: every row of the breakdown but for its times."""
    rows = [sorted((row["name"], row["kernel_type"] if "kernel_type" in row else "") for row in hta(run)["kernel breakdown"][1]) for run in ("kineto", "ours")]
    assert rows[0] and rows[0] == rows[1]


PLACES = ("index", "level_0", "index_correlation", "external_id", "name", "cat", "user_annotation")  # numbers of rows, of ops, of words


def rows_of(value):
    """Rows without numbers that are each file's own, in an order of their own: the two list their events differently."""
    if isinstance(value, list):
        return sorted((rows_of(item) for item in value), key=str)
    return {key: rows_of(item) for key, item in value.items()
            if key not in PLACES or isinstance(item, str)} if isinstance(value, dict) else value


def test_hta_computes_the_same_gpu_numbers(hta):
    kineto, same = rows_of(hta("kineto")), rows_of(hta("dated"))
    for what in kineto:
        assert same[what] == kineto[what], what
