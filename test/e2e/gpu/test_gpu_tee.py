# SPDX-License-Identifier: Apache-2.0
"""A program that profiles itself with torch.profiler while libkprof watches: both get everything, and the same.

Kineto has CUPTI stamp with the processor's counter and rounds each end of an event to nanoseconds by a conversion of its own; so
do we. The same record may therefore last 1 ns more or less in the two files, more only where it lasts long (gpufacts.as_long).
"""
import json

import pytest

import facts
import gpufacts
import simgpu

TIMES = 2


@pytest.fixture(scope="module")
def teed(kprof, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teed")
    run = kprof("teed.py", folder, "--times", str(TIMES), schedule=None, KPROF_CUPTI="tee")
    return facts.load(run.trace), [facts.load(folder / f"kineto.{n}.pt.trace.json") for n in range(TIMES)], \
        [json.loads((folder / f"averages.{n}.json").read_text()) for n in range(TIMES)]


def by_correlation(trace):
    return {gpufacts.args(e)["correlation"]: e for e in gpufacts.of(trace, *gpufacts.GPU)}


def test_torch_profiler_gets_what_it_gets_alone(teed, tmp_path):
    simgpu.run("teed.py", tmp_path, tmp_path, "--times", str(TIMES)).ok()
    for n, trace in enumerate(teed[1]):
        alone = gpufacts.gpu_facts(facts.load(tmp_path / f"kineto.{n}.pt.trace.json"))
        assert sum(alone["kernel"].values()) > 20
        assert not facts.differences(alone, gpufacts.gpu_facts(trace))


@pytest.mark.parametrize("n", range(TIMES))
def test_every_record_of_torch_profiler_is_in_our_file_with_its_duration(n, teed):
    ours, theirs = by_correlation(teed[0]), by_correlation(teed[1][n])
    assert len(theirs) > 20
    assert {c: e["name"] for c, e in theirs.items()} == {c: ours[c]["name"] for c in theirs if c in ours}
    assert not [(e, ours[c]) for c, e in theirs.items() if not gpufacts.as_long(facts.ns(e["dur"]), facts.ns(ours[c]["dur"]))]


@pytest.mark.parametrize("n", range(TIMES))
def test_self_cuda_of_every_op_is_key_averages_own(n, teed):
    """Of the work that was launched in torch.profiler's window; to the nanosecond a piece of work."""
    ours, theirs = teed[0], teed[1][n]
    window = {gpufacts.args(e)["correlation"] for e in gpufacts.of(theirs, *gpufacts.API)}
    ops = {gpufacts.args(e).get("External id"): e["name"] for e in gpufacts.of(ours, "cpu_op")}
    spent, pieces = facts.collections.Counter(), facts.collections.Counter()
    for event in gpufacts.of(ours, *gpufacts.GPU):
        if gpufacts.args(event)["correlation"] in window:
            op = ops.get(gpufacts.args(event).get("External id"))
            spent[op] += facts.ns(event["dur"])
            pieces[op] += 1
    said = {row["key"]: round(row["self"] * 1000) for row in teed[2][n] if row["self"] and row["key"] in set(ops.values())}
    assert len(said) > 8
    assert not {key: (spent[key], ns) for key, ns in said.items() if abs(spent[key] - ns) > pieces[key] + ns // 10_000}


def test_kernels_between_its_windows_are_ours_alone(teed):
    ours = by_correlation(teed[0])
    theirs = set().union(*(by_correlation(trace) for trace in teed[1]))
    assert len(ours) > len(theirs) > 40
