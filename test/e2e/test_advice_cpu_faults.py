# SPDX-License-Identifier: Apache-2.0
"""kprof advise of a small training on the CPU with one fault: it is told, and not without the fault."""
import json
import os

import pytest

import harness

FAULTS = {"adam": "optimizer-unfused", "anomaly": "anomaly-mode", "double": "float64", "norms": "one-by-one", "onehot": "one-hot-product"}


def found(folder, fault):
    run = harness.run_kprof("advice_cpu_faults.py", folder, fault, schedule=None, OMP_NUM_THREADS=1, KPROF_WITH_STACK="ops").ok()
    return {finding["id"]: finding for finding in json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"]}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_cpu_is_told(fault, tmp_path):
    told = found(tmp_path, fault)
    assert set(told) & set(FAULTS.values()) == {FAULTS[fault]}, told
    assert told[FAULTS[fault]]["line"].startswith("advice_cpu_faults.py:"), told


def test_a_training_without_these_faults_has_none_of_them(tmp_path):
    told = found(tmp_path, "none")
    assert not set(told) & set(FAULTS.values()), told


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2 or not os.path.exists("/proc/thread-self/schedstat"), reason="needs two cores, and a kernel that counts waits for one")
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_whose_cores_others_have_are_told_to_be_one(threads, tmp_path):
    """Two threads are no more than the cores, and still each op waits for the slower. Where no call was quick they are told without a cost."""
    run = harness.run_kprof("crowded_threads.py", tmp_path, 6, schedule=None, OMP_NUM_THREADS=threads, KPROF_WITH_STACK="ops").ok()
    advice = json.loads(harness.cli("advise", "--json", run.trace).stdout)
    told = {finding["id"]: finding for finding in advice["findings"]}
    report = harness.cli("report", run.trace).stdout
    hint = "and each op waits for the slowest thread: try OMP_NUM_THREADS=1 (`kprof advise`)\n"
    if threads == 1:
        assert "too-many-threads" not in told and hint not in report, advice
        return
    found = told["too-many-threads"]
    assert hint in report and found["change"].startswith("Set " if found["step_ms"] else "Time "), advice
    assert found["what"].startswith("2 busy threads share ops on 2 cores that other programs use, too, and each op waits for the slowest"), found
    assert "OMP_NUM_THREADS=1, or torch.set_num_threads(1): one thread waits for no other." in found["change"], found
    lasts = float(run.out)
    assert sum(finding["step_ms"] for finding in advice["findings"]) <= 1.05 * lasts, advice  # a time is charged once
