# SPDX-License-Identifier: Apache-2.0
"""kprof report --by function: what the trace's own events add up to, and the program's clock."""
import collections
import json
import re

import pytest

import facts
import harness

NAMED = re.compile(r"^(?P<file>[^<].*)\((?P<line>\d+)\): (?P<function>.+)$")


@pytest.fixture(scope="module", params=["1", "ops"])
def recorded(request, tmp_path_factory):
    top = tmp_path_factory.mktemp("functions")
    run = harness.run_kprof("functions_clock.py", top, schedule="wait=3,active=6,repeat=1", KPROF_WITH_STACK=request.param).ok()
    return request.param, run, rows_of(run.trace)


def rows_of(trace, *more):
    answer = harness.cli("report", trace, "--by", "function", "-n", 0, "--json", *more)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["rows"]


def self_ns(trace):
    """By (file, function): what its calls took without the calls within them, and how many there are, of the whole steps."""
    marks = facts.steps(trace)
    low, high = facts.begin(marks[0]), facts.end(marks[-1])
    calls = [e for e in facts.spans(trace) if e.get("cat") == "python_function" and e["tid"] == marks[0]["tid"]]
    within = lambda e: max(0, min(facts.end(e), high) - max(facts.begin(e), low))
    took, counted = collections.Counter(), collections.Counter()
    by_id = {e["args"]["Python id"]: e for e in calls}

    def key(e):
        found = NAMED.match(e["name"])
        return (found["file"], found["function"]) if found else None

    for e in calls:
        took[key(e)] += within(e)
        counted[key(e)] += low <= facts.begin(e) < high
        if e["args"].get("Python parent id") in by_id:
            took[key(by_id[e["args"]["Python parent id"]])] -= within(e)
    return took, counted


def test_rows_are_what_the_events_add_up_to(recorded):
    how, run, rows = recorded
    if how != "1":
        assert {row["name"] for row in rows if not row.get("backward")} >= {"torch/nn/modules/linear.py forward"}, rows
        return
    took, counted = self_ns(facts.load(run.trace))
    ours = {row["name"]: row for row in rows if not row["name"].startswith("backward of")}
    compared = 0
    for (file, function), ns in ((key, ns) for key, ns in took.items() if key):
        name = f"{file} {function}"
        if ns < 20000 or "optim" in file or file == "torch/autograd/profiler.py" or name not in ours:  # ranges begin and end in them
            continue
        assert abs(ours[name]["self_ms"] - ns / 1e6) < 0.002 + ns / 1e8, (name, ours[name], ns)
        assert 0 <= counted[file, function] - ours[name]["count"] <= 1, name  # a call that was open as the window began is none that begins
        compared += 1
    assert compared >= 3


def test_a_function_has_the_time_of_the_programs_clock(recorded):
    how, run, rows = recorded
    if how != "1":
        assert not [row for row in rows if row["name"] == "functions_clock.py heavy"]  # stacks of ops see no function between ops
        return
    (heavy,) = [row for row in rows if row["name"] == "functions_clock.py heavy"]
    own_ms = float(run.out) * 1e3  # of all steps; a busy machine's steps differ
    assert heavy["count"] == 12 and 0.5 < heavy["self_ms"] / 6 / own_ms < 2, (heavy, own_ms)
    assert heavy["line"] == "functions_clock.py:10 def heavy"


def test_a_trace_without_functions_says_what_is_missing(tmp_path):
    run = harness.run_kprof("functions_clock.py", tmp_path, schedule="wait=3,active=2,repeat=1").ok()
    answer = harness.cli("report", run.trace, "--by", "function")
    assert answer.returncode == 1 and "no function of Python in it; record with --with-stack 1" in answer.stderr
