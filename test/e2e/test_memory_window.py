# SPDX-License-Identifier: Apache-2.0
"""A window of a training counts what was allocated before it: as the same program does that is recorded from its start."""
import json

import pytest

import facts
import harness

SCRIPT = "memory_window.py"
KINDS = ["adam", "momentum", "accumulate"]
WEIGHTS = 4 * (64 * 128 + 128 + 128 * 64 + 64)
STATES = {"momentum": WEIGHTS}  # what the optimizer keeps; the others have two tensors for a parameter, and a float that counts its steps


@pytest.fixture(scope="session")
def memory(ours):
    def show(kind, schedule, *args):
        run = ours(SCRIPT, kind, schedule=schedule, KPROF_PROFILE_MEMORY=1, **harness.LATE)
        shown = harness.cli("memory", "--json", *args, run.trace)
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)["devices"][0]

    return show


def moments(device):
    """The totals over time, from the first one of the window on."""
    return [row[1] for row in device["timeline"]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_window_starts_and_peaks_where_the_process_does(kind, memory):
    window = memory(kind, harness.SCHEDULE)
    whole = memory(kind, None, "--steps", "2-4")
    assert window["begin"]["total"] > WEIGHTS
    assert (window["begin"]["total"], window["peak"]["total"]) == (whole["begin"]["total"], whole["peak"]["total"])
    assert moments(window)[-1] == window["end"]["total"] and min(moments(window)) > WEIGHTS


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_state_of_before_are_named_and_labels_are_not(kind, memory):
    peak = memory(kind, harness.SCHEDULE)["peak"]
    assert peak["Parameter"] == WEIGHTS
    assert peak["Optimizer state"] == STATES.get(kind, 2 * WEIGHTS + 4 * 4)
    assert peak["Before recording"] >= 4 * (3000 + 256 * 64)  # the table and the samples


def test_the_events_are_torchs_and_the_first_line_needs_no_excuse(ours):
    run = ours(SCRIPT, "adam", schedule=harness.SCHEDULE, KPROF_PROFILE_MEMORY=1, **harness.LATE)
    events = [e["args"] for e in facts.load(run.trace)["traceEvents"] if e.get("name") == "[memory]"]
    assert events[0]["Total Allocated"] == events[0]["Bytes"]  # as torch.profiler's, the totals begin at 0
    text = harness.cli("memory", run.trace).stdout
    assert text.startswith("CPU: peak ") and "not counted" not in text
