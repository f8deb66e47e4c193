# SPDX-License-Identifier: Apache-2.0
"""The simulated GPU beside torch.profiler: Kineto, compiled with NVIDIA's headers, must read from the simulated libcupti what the
simulated driver says it did (SIMGPU_LOG)."""
import ctypes
import json
import os
import platform
import subprocess
import sys

import pytest

from harness import BUILD, LONG, PYTHON, ROOT, SCRIPTS, Run, clean_environment

SIMGPU = BUILD / platform.machine() / "simgpu"
LIBRARIES = ["libcudart.so.13", "libcupti.so.13", "libcuda.so.1"]
GPU = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """(events of torch.profiler's trace, what the driver logged, the calls of CUPTI)"""
    missing = [name for name in LIBRARIES if not (SIMGPU / name).exists()]
    if missing:
        pytest.skip(f"make simgpu builds {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("simgpu")
    env = clean_environment(LD_PRELOAD=" ".join(str(SIMGPU / name) for name in LIBRARIES[:2]), LD_LIBRARY_PATH=SIMGPU,
                            SIMGPU_LOG=folder / "truth.jsonl", SIMCUPTI_LOG=folder / "calls.jsonl")
    run = Run([PYTHON, SCRIPTS / "gpu_steps.py", folder / "trace.json", "sync"], folder, env, timeout=LONG)
    if "not compiled with CUDA" in run.err:
        pytest.skip("this torch has no CUDA")
    run.ok()
    trace = json.loads((folder / "trace.json").read_text())
    return trace["traceEvents"], lines_of(folder / "truth.jsonl"), lines_of(folder / "calls.jsonl"), trace


def lines_of(path):
    """The lines of the process that did most: the preloaded doubles also run in whatever the program starts."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    pids = [row.get("pid") for row in rows]
    most = max(set(pids), key=pids.count)
    return [row for row in rows if row.get("pid") == most]


def demangle(name, libstdcxx=ctypes.CDLL("libstdc++.so.6")):
    libstdcxx.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = libstdcxx.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(text).decode() if text else name


def test_the_layout_is_made_from_the_table():
    """layout.h is what generate.py makes of test/data/cupti_layouts.json today."""
    folder = ROOT / "test" / "doubles" / "simgpu" / "cupti"
    made = subprocess.run([sys.executable, folder / "generate.py", "header", ROOT / "test" / "data" / "cupti_layouts.json"],
                          check=True, capture_output=True, text=True).stdout
    assert made == (folder / "layout.h").read_text()


def of(events, category):
    return [event for event in events if event.get("cat") == category]


def by_correlation(events, truth, category):
    """Pairs (event of the trace, what the driver did), for everything of this category that the trace has."""
    done = {row["correlation"]: row for row in truth if row["what"] == "work" and row["kind"] == GPU[category]}
    pairs = [(event, done.pop(event["args"]["correlation"])) for event in of(events, category)]
    assert pairs
    first = min(event["args"]["correlation"] for event, _ in pairs)
    assert not [row for row in done.values() if row["correlation"] > first], "the trace lacks some work"
    return pairs


@pytest.mark.parametrize("category", GPU)
def test_all_work_is_there_with_its_times(traced, category):
    events, truth, _, _ = traced
    for event, row in by_correlation(events, truth, category):
        assert event["args"]["stream"] == row["stream"] == event["tid"]
        assert event["args"]["context"] == row["context"]
        assert event["args"]["device"] == row["device"] == event["pid"]
        assert abs(event["dur"] * 1000 - (row["end"] - row["start"])) <= 200, (event, row)


def test_kernels_are_as_launched(traced):
    events, truth, _, _ = traced
    for event, row in by_correlation(events, truth, "kernel"):
        assert event["name"] == demangle(row["name"])
        assert event["args"]["grid"] == row["grid"]
        assert event["args"]["block"] == row["block"]
        assert event["args"]["registers per thread"] == row["registers"]
        assert event["args"]["shared memory"] == row["static_smem"] + row["dynamic_smem"]
        assert event["args"]["occupancy"]["activeBlocksPerMultiprocessor"] > 0
        assert event["args"]["est. achieved occupancy %"] >= 0


def test_copies_and_fills_are_as_asked(traced):
    events, truth, _, _ = traced
    kinds = {1: "Memcpy HtoD", 2: "Memcpy DtoH"}
    for event, row in by_correlation(events, truth, "gpu_memcpy"):
        assert event["args"]["bytes"] == row["bytes"]
        assert event["name"].startswith(kinds[row["copy_kind"]]), event
    for event, row in by_correlation(events, truth, "gpu_memset"):
        assert event["args"]["bytes"] == row["bytes"]


def test_the_clock_is_one(traced):
    """The order and the distance of work in the trace are those of the driver's clock."""
    events, truth, _, trace = traced
    pairs = by_correlation(events, truth, "kernel")
    offsets = [event["ts"] * 1000 + trace["baseTimeNanoseconds"] - row["start"] for event, row in pairs]
    starts = [row["start"] for _, row in pairs]
    assert max(offsets) - min(offsets) < 50000 + (max(starts) - min(starts)) // 10_000, offsets


def test_each_piece_of_work_has_its_call_and_arrow(traced):
    events, truth, _, _ = traced
    calls = {event["args"]["correlation"]: event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    starts = {event["id"]: event for event in of(events, "ac2g") if event["ph"] == "s"}
    ends = {event["id"]: event for event in of(events, "ac2g") if event["ph"] == "f"}
    for category in GPU:
        for event, _ in by_correlation(events, truth, category):
            correlation = event["args"]["correlation"]
            assert event["ts"] >= calls[correlation]["ts"]
            # Kineto of torch 2.15 begins no arrow at what stubs of CUDA 13 call (cbid 505); cuLaunchKernel inside it is not told
            if calls[correlation]["name"] != "__cudaLaunchKernel":
                assert starts[correlation]["ts"] == pytest.approx(calls[correlation]["ts"], abs=0.01)
            assert ends[correlation]["tid"] == event["args"]["stream"]
    assert starts
    launches = [call for call in calls.values() if "LaunchKernel" in call["name"]]
    assert len(launches) >= len(of(events, "kernel"))


def test_ops_annotations_and_waits(traced):
    events, truth, _, _ = traced
    ops = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    for event in of(events, "kernel"):
        op = ops[event["args"]["External id"]]
        assert op["ts"] <= event["ts"]
    assert {event["name"] for event in of(events, "gpu_user_annotation")} == {"the steps"}
    waits = [row for row in truth if row["what"] in ("sync", "query")]
    told = of(events, "cuda_sync")
    assert {"Stream Sync", "Context Sync", "Stream Wait Event"} <= {event["name"] for event in told}
    for event in told:
        assert any(row["correlation"] == event["args"]["correlation"] for row in waits)
    wait = next(event for event in told if event["name"] == "Stream Wait Event")
    assert wait["args"]["wait_on_stream"] == 7


def test_what_kineto_asked_of_cupti(traced):
    _, _, calls, _ = traced
    enabled = [row["args"][0] for row in calls if row.get("call") == "cuptiActivityEnable"]
    assert set(enabled) >= {1, 2, 10, 39, 5, 4, 17, 38}
    assert all(row["result"] == 0 for row in calls if "call" in row)
    last = [row for row in calls if "exit" in row]
    assert last and last[0]["enabled"] == [] and last[0]["outstanding"] == 0


