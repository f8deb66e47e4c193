# SPDX-License-Identifier: Apache-2.0
"""Forks of a program with threads: no child hangs that would not without us, and no Python warns of our threads."""
import json

import pytest

import harness
from forkstorm import PHASES, WAYS
from test_stack import python_of, versions

FORKS, SECONDS, AT_ONCE = 50, 8, 8
MORE = {"ops": {}, "control": {"KPROF_CONTROL": 1, "KPROF_SIGNAL": "USR2"}}


def warnings_in(run):
    lines = [line for line in run.err.splitlines() if "multi-threaded" in line or line == "alone"]
    return lines.index("alone"), len(lines) - 1 - lines.index("alone")


@versions()
@pytest.mark.parametrize("what", ["count", "trace", "ops", "control"])
def test_a_python_that_counts_threads_finds_its_own(torch_double, tmp_path, version, what):
    python = python_of(version)
    torch = torch_double if what in MORE else "-"
    plain = harness.run_plain("fork_counted.py", tmp_path / "plain", torch, python=python).ok()
    ours = harness.run_kprof("fork_counted.py", tmp_path / "ours", torch, python=python, shapes=False, schedule=None,
                             **MORE.get(what, {"KPROF_MALLOC": what})).ok()
    assert (warnings_in(ours), ours.out) == (warnings_in(plain), plain.out)
    assert warnings_in(plain)[0] == 0 and any("wrote" in line for line in ours.said), ours.explain()


@pytest.mark.parametrize("children", [0, 1])
@pytest.mark.parametrize("phase", PHASES)
def test_no_child_hangs(torch_double, tmp_path, phase, children):
    """In the phase in which most happens of each way to have a child, one after another in one program with torch. In the others around a torch of
    one file, which forks four times as often where no child writes a trace: what a fork meets there is the library's."""
    ways, forks, torch = WAYS, FORKS, ()
    if phase != "windows":
        ways, forks, torch = ("os_fork",), FORKS if children else 4 * FORKS, (AT_ONCE, torch_double)
    run = harness.run_kprof("fork_storm.py", tmp_path / "out", ",".join(ways), forks, SECONDS, *torch, shapes=False, schedule=None, KPROF_CHILDREN=children,
                            KPROF_LOG="none", **PHASES[phase]).ok()
    said = [json.loads(line) for line in run.out.splitlines()]
    assert [one["how"] for one in said] == list(ways), run.explain()
    assert all(one["forks"] > 0 and one["hung"] == 0 and one["failed"] == 0 for one in said), run.explain()
