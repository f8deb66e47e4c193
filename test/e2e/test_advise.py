# SPDX-License-Identifier: Apache-2.0
"""kprof advise: sick trainings beside a healthy twin, and files that are none."""
import json

import pytest

import harness

SCHEDULE = "wait=3,warmup=1,active=6,repeat=1"  # steps 4 to 9 of ten


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Of each kind: the run, and what is advised."""
    found = {}
    for kind in ("healthy", "loading", "waiting"):
        run = harness.run_kprof("advice.py", tmp_path_factory.mktemp(kind), kind, schedule=SCHEDULE, shapes=False, OMP_NUM_THREADS=1).ok()
        said = harness.cli("advise", run.trace, "--json")
        assert said.returncode == 0, said.stderr
        found[kind] = run, json.loads(said.stdout)
    return found


def test_the_twin_has_no_such_findings(recorded):
    _, advice = recorded["healthy"]
    assert [finding["id"] for finding in advice["findings"] if finding["id"] in ("data-loading", "no-op-runs")] == []
    assert advice["steps"] == 6 and advice["missing"] is None


@pytest.mark.parametrize("kind, wanted, milliseconds", [("loading", "data-loading", 80), ("waiting", "no-op-runs", 100)])
def test_a_sickness_is_found_with_its_cost(recorded, kind, wanted, milliseconds):
    _, advice = recorded[kind]
    largest = advice["findings"][0]
    assert largest["id"] == wanted
    assert milliseconds <= largest["step_ms"] <= advice["step_ms"]
    twin = recorded["healthy"][1]
    usual = twin["parts_ms"]["data_loading" if kind == "loading" else "idle"]
    assert abs(largest["step_ms"] - usual - milliseconds) <= 0.2 * milliseconds + usual  # the sleep is what the sickness costs
    assert sum(advice["parts_ms"].values()) == pytest.approx(advice["step_ms"], rel=1e-6)


def test_it_is_said_in_words(recorded):
    run, advice = recorded["loading"]
    said = harness.cli("advise", run.trace)
    assert said.returncode == 0
    assert "the step waits for the DataLoader" in said.stdout and "num_workers" in said.stdout
    assert f"{advice['findings'][0]['step_ms']:.3f} ms a step" in said.stdout


def test_what_is_no_trace_is_one_line(tmp_path):
    (tmp_path / "empty.pt.trace.json").write_text("")
    (tmp_path / "torn.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for path in tmp_path.iterdir():
        said = harness.cli("advise", path)
        assert said.returncode == 1 and said.stderr.count("\n") == 1 and not said.stdout, said
