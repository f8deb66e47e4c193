# SPDX-License-Identifier: Apache-2.0
"""kprof advise of a small training on the CPU with one fault: it is told, and not without the fault."""
import json
import os
import pathlib
import re

import pytest

import facts
import harness

FAULTS = {"adam": "optimizer-unfused", "anomaly": "anomaly-mode", "double": "float64", "norms": "one-by-one", "onehot": "one-hot-product"}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Findings by fault, of a program that trains with each of them, and without."""
    kinds = [*FAULTS, "none"]
    run = harness.run_kprof("advice_cpu_faults.py", tmp_path_factory.mktemp("faults"), *kinds, schedule="none", OMP_NUM_THREADS=1, KPROF_WITH_STACK="ops").ok()
    traces = sorted(run.traces, key=lambda path: path.stat().st_mtime_ns)
    assert len(traces) == len(kinds), run.explain()
    return {kind: {finding["id"]: finding for finding in json.loads(harness.cli("advise", "--json", trace).stdout)["findings"]}
            for kind, trace in zip(kinds, traces)}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_cpu_is_told(fault, found):
    told = found[fault]
    assert set(told) & set(FAULTS.values()) == {FAULTS[fault]}, told
    assert told[FAULTS[fault]]["line"].startswith("advice_cpu_faults.py:"), told


def test_a_training_without_these_faults_has_none_of_them(found):
    assert not set(found["none"]) & set(FAULTS.values()), found


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2 or not os.path.exists("/proc/thread-self/schedstat"), reason="needs two cores, and a kernel that counts waits for one")
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_whose_cores_others_have_are_told_to_be_one(threads, tmp_path):
    """Two threads are no more than the cores, and still each op waits for the slower. Where no call was quick they are told without a cost."""
    run = harness.run_kprof("crowded_threads.py", tmp_path, 6, schedule=None, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, KPROF_WITH_STACK="ops").ok()
    advice = json.loads(harness.cli("advise", "--json", run.trace).stdout)
    told = {finding["id"]: finding for finding in advice["findings"]}
    report = harness.cli("report", run.trace).stdout
    hint = "Each operator waits for its slowest thread: try OMP_NUM_THREADS=1 (`kprof advise`)\n"
    if threads == 1:
        assert "too-many-threads" not in told and hint not in report, advice
        return
    found = told["too-many-threads"]
    assert hint in report and found["change"].startswith("Set " if found["step_ms"] else "Try "), advice
    assert re.match(r"torch uses 2 threads, .* use the 2 cores .* slowest thread", found["what"]), found
    assert "OMP_NUM_THREADS=1, or torch.set_num_threads(1): " in found["change"], found
    lasts = float(run.out)
    assert sum(finding["step_ms"] for finding in advice["findings"]) <= 1.05 * lasts, advice  # a time is charged once


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2 or not os.path.exists("/proc/thread-self/schedstat"), reason="needs two cores, and a kernel that counts waits for one")
def test_a_thread_that_ran_in_an_import_alone_is_not_busy(tmp_path):
    """NumPy, which torch imports, has such threads."""
    run = harness.run_kprof("crowded_threads.py", tmp_path, 0, schedule=None, OMP_NUM_THREADS=2, MKL_NUM_THREADS=2).ok()
    of = facts.load(run.trace)["kprof"]
    assert of["busy_threads"] == "2" and of["torch_threads"] == "2", of


def test_a_trace_has_the_instructions_of_its_cpu(tmp_path):
    """Of those that decide how fast bfloat16 is; none on a CPU that has no such line, as Arm's."""
    run = harness.run_kprof("crowded_threads.py", tmp_path, 0, schedule=None, OMP_NUM_THREADS=1).ok()
    flags = re.search(r"^flags\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    has = flags.group(1).split() if flags else []
    known = [word for word in ("avx2", "avx512bw", "avx512_bf16", "avx_ne_convert", "amx_bf16") if word in has]
    assert facts.load(run.trace)["kprof"].get("instructions", "").split() == known


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="needs a kernel that counts waits for a core")
@pytest.mark.parametrize("kind", ["poll", "wait"])
def test_a_thread_of_the_program_that_polls_is_told_and_not_other_programs(kind, tmp_path):
    run = harness.run_kprof("polling_thread.py", tmp_path, kind, schedule=None, OMP_NUM_THREADS=1).ok()
    of = facts.load(run.trace)["kprof"]
    advice = json.loads(harness.cli("advise", "--json", run.trace).stdout)
    if kind == "wait":
        assert of["core_others_us"] < 0.2 * of["core_had_us"], of
        assert "Other threads of this program" not in json.dumps(advice), advice
        return
    assert of["core_others_us"] > 0.4 * of["core_had_us"], of
    assert ["Python's lock (the GIL): other threads of this program hold it" in told["what"] for told in advice["findings"] if told["id"] == "gil-wait"] == [True], advice


def test_the_threads_that_a_program_sets_beside_the_variable_are_counted(tmp_path):
    """OMP_NUM_THREADS=1 and torch.set_num_threads(4): they are too many for fewer cores."""
    script = tmp_path / "set_threads.py"
    script.write_text("import os, torch\nos.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])\ntorch.set_num_threads(4)\nmodel = torch.nn.Linear(512, 512)\n"
                      "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nfor _ in range(30):\n    optimizer.zero_grad()\n    model(torch.ones(256, 512)).sum().backward()\n    optimizer.step()\n")
    run = harness.run_kprof(script, tmp_path, schedule=None, OMP_NUM_THREADS=1).ok()
    of = facts.load(run.trace)["kprof"]
    assert of["torch_threads"] == "4" and of["busy_threads"] == "4", of
    told = {finding["id"]: finding for finding in json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"]}
    assert told["too-many-threads"]["change"].startswith("OMP_NUM_THREADS is 1, so the program sets them: torch.set_num_threads("), told


def test_the_line_of_a_thread_that_polls_is_named(tmp_path):
    for turn in range(4):  # on a busy machine the thread waits for a core instead
        run = harness.run_kprof("polling_thread.py", tmp_path / str(turn), "poll", schedule="wait=10,active=20,repeat=1", OMP_NUM_THREADS=1, KPROF_WITH_STACK="1").ok()
        gil = next((told for told in json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"] if told["id"] == "gil-wait"), None)
        if gil:
            break
    assert gil["line"].startswith("polling_thread.py:1") and gil["line"].endswith(" logger") and f"what they run is {gil['line']}." in gil["change"], gil
