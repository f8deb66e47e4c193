# SPDX-License-Identifier: Apache-2.0
"""kprof advise of a run whose steps were guessed before the training: what it says of the training comes first, and of the others once."""
import json
import re

import pytest

import advicetraces
import harness


def traces(folder, *sources, sick="no-op-runs", pids=(1, 1, 1)):
    """A trace for each source of steps, in this order; of guessed steps the first has a critical finding, where `sick`, the training a warning."""
    for number, (source, until) in enumerate(sources):
        name = "slow-steps" if source == "optimizer" else sick if number == 0 and sick else None
        trace = advicetraces.SICKNESSES[name]() if name else advicetraces.TWINS["no-op-runs"]()
        trace.head["kprof"] = {**trace.head["kprof"], "step_source": source, **({"steps_until": until} if until else {})}
        for event in trace.events:
            event["pid"] = pids[number]
        trace.write(folder / f"host_1.{number}.pt.trace.json")
    return folder


BOTH = [("module", None), ("module", "optimizer"), ("optimizer", None)]


def test_the_training_comes_first_and_guessed_steps_once(tmp_path):
    said = harness.cli("advise", traces(tmp_path, *BOTH)).stdout
    assert [line.split("/")[-1] for line in said.splitlines() if "host_1." in line] == [
        "host_1.2.pt.trace.json", "host_1.0.pt.trace.json and others", "host_1.0.pt.trace.json"]
    warning, guess, critical = (said.index(text) for text in ("WARNING  ", "guess    before the training", "CRITICAL  no operator runs"))
    assert warning < guess < critical and said.count("guess  ") == 1 and said.count("\nstep     ") == 1
    assert "the steps are calls of a model: 8 steps, " in said and "these are critical:" in said


def test_nothing_critical_is_said_to_be_so(tmp_path):
    said = harness.cli("advise", traces(tmp_path, ("dataloader", "optimizer"), BOTH[2], sick="slow-steps")).stdout
    assert said.count("WARNING  ") == 1 and re.match(r"guess    before the training \(.*\) the steps are batches of a DataLoader: ", said.splitlines()[-1])
    assert said.endswith("; nothing in them is critical\n")


@pytest.mark.parametrize("pids", [(1, 1, 2), (1, 1, 1)])
def test_guessed_steps_without_a_training_are_told_as_others(pids, tmp_path):
    """As in a service, beside a training of another process; or in one that has none."""
    sources = [("module", None), ("module", None), BOTH[2]] if pids[2] == 2 else [("module", None), ("module", None)]
    said = harness.cli("advise", traces(tmp_path, *sources, pids=pids)).stdout
    assert said.count("\nstep     ") == len(sources) and "guess  " not in said and "CRITICAL  no operator runs" in said


def test_one_such_trace_is_told_with_a_line(tmp_path):
    path = traces(tmp_path, ("module", "optimizer")) / "host_1.0.pt.trace.json"
    told = "the steps are calls of a model from before the first step by an optimizer; they may be an evaluation"
    said = harness.cli("advise", path).stdout
    assert said.index(f"guess    {told}\n") < said.index("CRITICAL  ") and said.count(told) == 1
    assert json.loads(harness.cli("advise", "--json", path).stdout)["guessed"] == told


def test_the_end_of_a_run_says_so_before_their_findings(tmp_path):
    path = traces(tmp_path, ("module", "optimizer")) / "host_1.0.pt.trace.json"
    out = tmp_path / "out"
    out.mkdir()
    said = harness.cli("run", "--advise", "-o", out, "--", "cp", path, out).stderr
    assert said.index("kprof: the steps are calls ") < said.index("kprof: no operator runs")
