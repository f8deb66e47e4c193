# SPDX-License-Identifier: Apache-2.0
"""The viewers people use say of a GPU trace of ours what they say of Kineto's file of the same run: traces of real GPUs, told again."""
import collections
import gzip
import json
import shutil
import subprocess

import pytest

import gputraces
import harness
import viewing
from test_viewers import perfetto  # noqa: F401 (a fixture)

TRACES = ("h200_training", "h200_waits", "nccl_a100", "cp_alexnet_a100", "event_sync_multi_a100")
NO_STREAM_THEN = {"cp_alexnet_a100": 4294967295, "event_sync_multi_a100": -1}


@pytest.fixture(scope="module", params=TRACES)
def folders(request, real_gpu_trace, tmp_path_factory):
    """A folder with kineto/ and ours/, a trace in each."""
    path = real_gpu_trace(request.param)
    top = tmp_path_factory.mktemp(request.param)
    for name in ("kineto", "ours"):
        (top / name).mkdir()
    trace = gputraces.load(path)
    gputraces.write(trace, gputraces.prepared(trace), top / "told.kprof")
    assert harness.cli("export", top / "told.kprof", "-o", top / "ours").returncode == 0
    shutil.copy(path, top / "kineto" / path.name)
    ours = next((top / "ours").glob("*.json.gz"))
    if request.param in NO_STREAM_THEN:
        as_written_then(ours, NO_STREAM_THEN[request.param])
    return top


def as_written_then(path, no_stream):
    """Kinetos of 2023 and 2024 gave waits for a stream no row of their own, a device's row the number -1."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    for e in trace["traceEvents"]:
        if e.get("cat") in ("cuda_sync", "ac2g") and isinstance(e["tid"], int) and e["tid"] >= 1000000 and e["pid"] < 64:
            e["tid"] -= 1000000
        if e.get("cat") == "cuda_sync" and e["args"]["stream"] == -1:
            e["tid"] = -1
            e["args"]["stream"] = no_stream
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") != "gpu_user_annotation"]  # they wrote none either
    path.write_bytes(gzip.compress(json.dumps(trace, indent=1).encode()))


def without_places(answer):
    """Rows without their place in the file, in an order of their own: the two files list the same events in different order."""
    if isinstance(answer, list):
        return sorted((without_places(row) for row in answer), key=lambda row: json.dumps(row, sort_keys=True))
    if isinstance(answer, dict):
        return {k: without_places(v) for k, v in answer.items() if not k.startswith(("index", "level_0"))}
    return answer


def without_ties(series):
    """A queue's lengths without the microseconds in which one kernel is launched and another ends: HTA counts those in the order of the file."""
    told = {}
    for device, rows in series.items():
        at = collections.Counter((row["stream"], row["ts"]) for row in rows)
        told[device] = [row for row in rows if at[row["stream"], row["ts"]] == 1]
    return told


def test_hta_computes_of_gpus_what_it_computes_of_kinetos_file(folders):
    said = {}
    for name in ("kineto", "ours"):
        done = subprocess.run([viewing.venv("hta"), harness.HERE / "viewers" / "hta_gpu.py", folders / name], capture_output=True, text=True,
                              env=harness.clean_environment(), timeout=harness.LONG)
        assert done.returncode == 0, done.stderr[-3000:]
        said[name] = json.loads(done.stdout)
    answered = [what for what, answer in said["kineto"].items() if not (isinstance(answer, dict) and "error" in answer)]
    assert {"temporal breakdown", "kernel breakdown", "memory bandwidth"} <= set(answered), str(said["kineto"])[:3000]
    # what follows from times these files do not show: an annotation's edges were a microsecond further out, copies had their ns cut off
    told_by_era = {"annotations", "kernels of annotations", "memory bandwidth", "memory series"}
    if folders.name.startswith("nccl"):
        told_by_era -= {"memory bandwidth", "memory series"}
    if any(len(rows) != len(without_ties({0: rows})[0]) for rows in said["kineto"]["queue series"].values()):
        told_by_era.add("queue length")  # sums of the series, ties and all
    for what in set(answered) - told_by_era:
        if what == "queue series":
            said = {name: {**told, what: without_ties(told[what])} for name, told in said.items()}
        ours, kineto = (without_places(said[name][what]) for name in ("ours", "kineto"))
        assert ours == kineto, (what, str(kineto)[:900], str(ours)[:900])


def test_perfetto_drops_nothing_of_gpus(folders, perfetto):  # noqa: F811
    if not folders.name.startswith("nccl"):
        pytest.skip("its waits were put on the rows of old Kinetos, where they overlap")
    path = next((folders / "ours").glob("*.json.gz"))
    trace = json.loads(gzip.decompress(path.read_bytes()))
    said = perfetto(path)
    assert said["trouble"] == {}
    expected = collections.Counter(e["name"] for e in trace["traceEvents"] if e["ph"] == "X")
    assert {name: said["names"].get(name) for name in expected} == dict(expected)
