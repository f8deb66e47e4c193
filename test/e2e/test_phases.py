# SPDX-License-Identifier: Apache-2.0
"""KPROF_PHASES: training and validation have their own steps, windows and files, as profilers put there by hand would have."""
import json

import facts
import harness
import pytest

PHASES = "train=skip_first=4,wait=1,warmup=1,active=2,repeat=1;validate=wait=1,warmup=1,active=2,repeat=2"


def phase_of(path):
    return path.name.split(".")[0].split("_")[-1]


def files_of(folder):
    return sorted(folder.glob("*.pt.trace.json*"), key=lambda path: path.name.split(".")[-5])


def say_same(reference, candidate):
    assert facts.differences(facts.facts(facts.load(reference)), facts.facts(facts.load(candidate))) == []


@pytest.fixture(scope="module")
def by_name(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by_name")
    run = harness.run_kprof("phases.py", folder, schedule=None, shapes=False, KPROF_PHASES=PHASES).ok()
    return run, files_of(folder)


def test_phases_that_are_named_have_the_files_of_profilers_by_hand(by_name, tmp_path):
    harness.run_plain("phases.py", tmp_path, tmp_path).ok()
    _, files = by_name
    assert [phase_of(path) for path in files] == ["validate", "train", "validate"]
    for ours, theirs in zip(files, ["validate.4.json", "train.8.json", "validate.8.json"]):
        say_same(tmp_path / theirs, ours)


def test_the_trace_names_its_phase(by_name):
    run, files = by_name
    assert [json.loads(json.dumps(facts.load(path)["kprof"]))["phase"] for path in files] == ["validate", "train", "validate"]
    assert "wrote 3 traces" in run.err and "(6 steps in phases, " in run.err, run.err


def test_a_schedule_that_no_phase_met_is_explained(tmp_path):
    run = harness.run_kprof("phases.py", tmp_path, schedule=None, KPROF_PHASES="train=wait=19,active=1;test=active=1").ok()
    assert "no trace: phase train saw 10 steps and needs 20, phase test saw 0 steps and needs 1" in run.err, run.err


def test_a_bad_value_names_what_is_wrong_and_records_as_without(tmp_path):
    run = harness.run_kprof("phases.py", tmp_path, schedule=None, KPROF_PHASES="train").ok()
    assert "KPROF_PHASES=train needs NAME=SCHEDULE in 'train'" in run.err and "no phases" in run.err, run.err
    assert len(files_of(tmp_path)) == 1
