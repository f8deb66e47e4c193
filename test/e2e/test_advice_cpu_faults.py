# SPDX-License-Identifier: Apache-2.0
"""kprof advise of a small training on the CPU with one fault: it is told, and not without the fault."""
import json

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
