# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks: which of them record (KPROF_RANKS)."""
import re

import facts
import harness
import pytest


def run_ranks(folder, ranks, size=4, **settings):
    command = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), harness.SCRIPTS / "ranks.py", "6"]
    return harness.run_kprof(None, folder, command=command, KPROF_RANKS=ranks, **settings).ok()


def ranks_of(run):
    found = [facts.load(path)["distributedInfo"] for path in run.traces]
    assert {info["world_size"] for info in found} <= {4}
    return sorted(info["rank"] for info in found)


@pytest.mark.parametrize("ranks, want", [("0,2-3", [0, 2, 3]), ("1/2", [0, 2]), ("first-of-node", [0])])
def test_only_the_ranks_that_are_named_record(tmp_path, ranks, want):
    run = run_ranks(tmp_path / "out", ranks)
    assert ranks_of(run) == want, run.explain()
    assert [re.search(r"_r(\d)_\d+\.\d+\.pt", path.name)[1] for path in run.traces] == [str(rank) for rank in want]
    assert len(run.said) == len(want) and run.spools == [], run.explain()
    for path in run.traces:
        assert len(facts.steps(facts.load(path))) == 3


def test_a_rank_that_is_left_out_records_nothing_without_a_schedule_either(tmp_path):
    run = run_ranks(tmp_path / "out", "3", schedule=None, KPROF_PHASES="")
    assert ranks_of(run) == [3] and len(run.said) == 1, run.explain()


def test_a_rank_that_is_left_out_refuses_a_start(tmp_path):
    code = "import ctypes, torch; torch.ones(2); print(ctypes.CDLL(None).kprof_start())"
    run = harness.run_kprof(None, tmp_path / "out", command=[harness.PYTHON, "-c", code], schedule=None, RANK=1, WORLD_SIZE=2, KPROF_RANKS="0").ok()
    assert run.out == "-13\n" and run.traces == [] and run.said == [], run.explain()


@pytest.mark.parametrize("ranks, said", [
    ("0;1", "kprof: KPROF_RANKS=0;1 is none of 0,8-15, first-of-node, 1/16, using all ranks"),
    ("7", "kprof: no trace: KPROF_RANKS=7 names no rank of this job, which has 2"),
    ("first-of-node", "kprof: KPROF_RANKS=first-of-node finds no LOCAL_RANK (or SLURM_LOCALID, ...), using all ranks"),
])
def test_a_bad_value_is_one_line(tmp_path, ranks, said):
    code = "import torch; torch.ones(2)"
    run = harness.run_kprof(None, tmp_path / "out", command=[harness.PYTHON, "-c", code], schedule=None, RANK=0, WORLD_SIZE=2, KPROF_RANKS=ranks).ok()
    assert run.said[0] == said and [line for line in run.said if "KPROF_RANKS" in line] == [said], run.explain()
    assert len(run.traces) == ("no trace" not in said), run.explain()
