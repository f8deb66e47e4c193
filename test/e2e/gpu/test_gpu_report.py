# SPDX-License-Identifier: Apache-2.0
"""kprof report of a run with a GPU prints torch's own table of it, letter for letter, sorted by every key of the GPU."""
import difflib
import json

import pytest

import harness

KEYS = ["self_cuda_time_total", "cuda_time_total", "cuda_time", "self_device_time_total", "device_time_total", "device_time", "self_cpu_time_total"]
TABLES = [({}, {"sort_by": key, "row_limit": 30}, ["--sort-by", key, "--row-limit", "30"]) for key in KEYS]
TABLES += [({}, {"sort_by": "self_cuda_time_total", "row_limit": -1}, ["--sort-by", "self_cuda_time_total", "--row-limit", "-1"]),
           ({"group_by_input_shape": True}, {"sort_by": "cuda_time_total", "row_limit": 40},
            ["--group-by-input-shape", "--sort-by", "cuda_time_total", "--row-limit", "40"]),
           ({}, {"sort_by": "cuda_time_total", "time_unit": "ms", "max_name_column_width": 30},
            ["--sort-by", "cuda_time_total", "--time-unit", "ms", "--max-name-column-width", "30"])]


@pytest.fixture(scope="module", params=["training.py", "graphed.py"])
def run(request, kineto):
    wanted = [{"key_averages": group, "table": table} for group, table, _ in TABLES]
    return kineto(request.param, tables=wanted, memory=False)


@pytest.mark.parametrize("n", range(len(TABLES)), ids=[" ".join(argv) for _, _, argv in TABLES])
def test_the_table_with_gpu_columns_is_torchs_own(n, run):
    told = harness.cli("report", "--torch", *TABLES[n][2], run.trace)
    assert told.returncode == 0, told.stderr
    expected = run.tables[n] + "\n"
    assert "Self CUDA time total" in expected
    wrong = "\n".join(list(difflib.unified_diff(expected.splitlines(), told.stdout.splitlines(), "torch", "kprof", lineterm="", n=0))[:12])
    assert told.stdout.rstrip("\n") == expected.rstrip("\n"), wrong


def covered(spans):
    """Microseconds in which at least one of them is."""
    total, end = 0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def test_the_default_report_has_the_time_of_the_gpu(run, loaded):
    work = [e for e in loaded(run)["traceEvents"] if e.get("ph") == "X" and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    told = harness.cli("report", run.trace)
    said = json.loads(harness.cli("report", "--json", "-n", "0", run.trace).stdout)
    own = [row["gpu_self_ms"] for row in said["rows"]]
    assert sum(own) == pytest.approx(sum(e["dur"] for e in work) / 1000, abs=0.01) and own == sorted(own, reverse=True)
    assert 0 < said["gpu_busy_ms"] <= covered((e["ts"], e["ts"] + e["dur"]) for e in work) / 1000 + 0.01
    assert "GPU      busy " in told.stdout and "GPU self ms" in told.stdout


def test_waits_are_no_work_of_the_gpu(kineto, loaded):
    run = kineto("training.py", waits=True)
    assert any(e.get("cat") == "cuda_sync" for e in loaded(run)["traceEvents"])
    test_the_default_report_has_the_time_of_the_gpu(run, loaded)
    assert not any(row["name"].endswith(" Sync") for row in json.loads(harness.cli("report", "--json", "-n", "0", run.trace).stdout)["rows"])
