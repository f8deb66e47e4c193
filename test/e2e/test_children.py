# SPDX-License-Identifier: Apache-2.0
"""KPROF_CHILDREN: DataLoader workers, however they are started, get traces of their own beside the training's."""
import collections
import os
import signal
import subprocess
import time

import pytest

import facts
import harness


def names(path):
    return collections.Counter(e["name"] for e in facts.spans(facts.load(path)) if e.get("cat") == "cpu_op")


def workers(folder):
    return sorted((folder / "children").glob("*.pt.trace.json.gz"))


def hidden(folder):
    return [p.name for p in (folder / "children").iterdir() if not p.name.endswith(".pt.trace.json.gz")]


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_each_worker_has_a_trace_of_its_own(how, tmp_path):
    run = harness.run_kprof("data_loader.py", tmp_path / "out", how, 48, schedule=None, KPROF_CHILDREN=1).ok()
    traces = workers(run.folder)
    assert run.out == "done\n" and len(traces) == 2 and len(list(run.folder.glob("*.pt.trace.json.gz"))) == 1
    ops = [names(path) for path in traces]
    assert sum(n["aten::mul"] for n in ops) == 48 and all(n["aten::mul"] == 24 for n in ops)
    training = facts.load(run.trace)
    pid = next(e["pid"] for e in facts.spans(training) if e.get("cat") == "cpu_op")
    assert [facts.load(path)["kprof"]["parent_pid"] for path in traces] == [str(pid)] * 2
    assert "parent_pid" not in training["kprof"] and names(run.trace)["aten::mul"] < 48
    assert hidden(run.folder) == []


@pytest.mark.parametrize("how", ["wait", "compute"])
def test_a_worker_that_waits_is_told_from_one_that_computes(how, tmp_path):
    """Its time in a call is the same: only the kernel knows whether it had a core, or would have taken one."""
    run = harness.run_kprof("waiting_loader.py", tmp_path / "out", how, schedule="wait=1,active=22,repeat=1", KPROF_CHILDREN=1, KPROF_WITH_STACK=1).ok()
    said = [facts.load(path)["kprof"] for path in workers(run.folder)]
    shares = [fact["busy_ms"] / fact["busy_of_ms"] for fact in said]
    assert len(shares) == 2 and all(fact["busy_of_ms"] > 300 for fact in said), said
    assert "busy_ms" not in facts.load(run.trace)["kprof"]
    for fact in said:  # of the worker's own thread, not of the one of kprof that opens its window
        wanted_ms = (int(fact.get("core_had_us", 0)) + int(fact.get("core_waited_us", 0))) / 1000
        assert wanted_ms == pytest.approx(fact["busy_ms"], abs=0.1 * fact["busy_of_ms"] + 150), said
    rows = harness.cli("report", "--by", "line", "--json", *workers(run.folder)[:1]).stdout
    assert "(worker waits for work)" in rows and "(worker's loop, no line of the program)" in rows, rows
    advice = harness.cli("advise", run.trace).stdout
    if how == "wait":
        assert max(shares) < 0.5 and "of them wait " in advice and "more workers help\n" in advice, (shares, advice)
    else:
        assert min(shares) > 0.7 and "of them wait " not in advice or len(os.sched_getaffinity(0)) > 2, (shares, advice)


def test_workers_record_while_the_window_of_the_training_is_open(tmp_path):
    run = harness.run_kprof("data_loader.py", tmp_path / "out", "fork", 800, schedule="wait=1,warmup=1,active=100,repeat=1", KPROF_WITH_STACK=1,
                            KPROF_CHILDREN=1).ok()
    steps = sorted((e for e in facts.spans(facts.load(run.trace)) if facts.STEP.match(e["name"])), key=facts.begin)
    assert len(steps) == 100
    traces = workers(run.folder)
    assert traces and hidden(run.folder) == []
    for path in traces:
        spans = facts.spans(facts.load(path))
        ops = [e for e in spans if e.get("cat") == "cpu_op"]
        assert ops and min(map(facts.begin, ops)) >= facts.begin(steps[0])
        assert any(e.get("cat") == "python_function" for e in spans)


def test_without_it_workers_leave_nothing(tmp_path):
    run = harness.run_kprof("data_loader.py", tmp_path / "out", "fork", 16, schedule=None).ok()
    assert not (run.folder / "children").exists() and len(os.listdir(run.folder)) == 1


def test_recover_finds_what_a_killed_training_and_its_workers_left(tmp_path):
    folder = tmp_path / "out"
    settings = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=folder, KPROF_CHILDREN=1)
    command = [str(part) for part in harness.script_command("data_loader.py", "fork", 4000000)]
    with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, start_new_session=True) as training:
        until = time.monotonic() + harness.LONG
        while len(list(folder.glob("children/*.kprof"))) < 2 and training.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(2)
        os.killpg(training.pid, signal.SIGKILL)
    said = subprocess.run([harness.KPROF, "recover", folder], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    assert len(list(folder.glob("*.pt.trace.json.gz"))) == 1 and len(workers(folder)) == 2 and hidden(folder) == []
