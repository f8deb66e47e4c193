# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random instants of a recording run: recover gives a trace with every op that had ended."""
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import time

import pytest

import facts
import harness

KILLS = int(os.environ.get("KPROF_TEST_KILLS", "20"))
seed = int(os.environ.get("KPROF_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)


def kill_once(folder, delay, *double, **settings):
    """Starts the counting program, with torch or around a torch of one file, waits until it counts, kills it `delay` seconds later; returns its counts."""
    shared = folder / "counts"
    shared.write_bytes(bytes(4096))
    env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=folder / "out", **settings)
    process = subprocess.Popen(list(map(str, harness.script_command("counted.py", shared, *double))), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    try:
        with open(shared, "r+b") as file:
            page = mmap.mmap(file.fileno(), 4096)
        limit = time.monotonic() + harness.LONG
        while not all(struct.unpack_from("<QQ", page)):
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < limit, "the program did not start counting"
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
        process.stderr.close()
    return struct.unpack_from("<QQ", page)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_loses_no_op_that_had_ended(number, tmp_path, torch_double):
    """Every other pair of kills is of a program that starts at once: what is recorded goes the same way to the file."""
    chance = random.Random(seed + number)
    delay = chance.random() * chance.choice((0.01, 0.1, 0.5))
    settings = {"KPROF_RECORD_SHAPES": 1} if number % 2 else {}
    counted = kill_once(tmp_path, delay, *([torch_double] if number // 2 % 2 else []), **settings)
    said = harness.cli("recover", tmp_path / "out")
    why = f"seed {seed}, delay {delay:.4f}: {said.stdout}{said.stderr}"
    assert said.returncode == 0, why
    traces = list((tmp_path / "out").glob("*.pt.trace.json*"))
    assert len(traces) == 1, why
    trace = facts.load(traces[0])
    assert not facts.crossings(trace), why
    ended = facts.collections.Counter(e["name"] for e in facts.spans(trace))
    # beside load records may come faster than memory gets free, which is counted
    dropped = sum(int(n) for n in re.findall(r"dropped: (\d+) RecordFunction range", said.stderr))
    # the count is raised after the range has ended, so one more range may have ended, and one more may be open
    for label, count in zip(("count zero", "count one"), counted):
        assert count - dropped <= ended[label] <= count + 2, f"{label}: counted {count}, in the trace {ended[label]}; {why}"
    assert ended["aten::neg"] >= sum(counted) - dropped, why


KILLED_RANK = """
import os, pathlib, signal, sys, time
rank, folder = os.environ["RANK"], pathlib.Path(sys.argv[2])
for step in range(6):
    op(b"aten::linear")
(folder / rank).touch()
while len(list(folder.iterdir())) < 2:
    time.sleep(0.01)
if rank == "1" or sys.argv[1] == "all":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)  # until the launcher ends it
"""


@pytest.mark.parametrize("who", ("one", "all"))
def test_a_killed_job_is_shown_with_all_its_ranks(who, mini, tmp_path):
    (tmp_path / "there").mkdir()
    command = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", mini(KILLED_RANK), who, tmp_path / "there"]
    harness.run_kprof(None, tmp_path / "out", command=command, schedule=None)
    shown = harness.cli("report", KPROF_DIR=tmp_path / "out")
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr.count("its program ended without a trace; recovered 1 trace") == 2, shown.stderr
    assert "latest run: 2 files in" in shown.stderr
    assert [rank in shown.stdout for rank in ("rank 0 of 2", "rank 1 of 2")] == [True, True], shown.stdout
    again = harness.cli("report", tmp_path / "out")
    assert again.stdout == shown.stdout
    assert "more than one run" not in again.stderr and "holds no event" not in again.stderr, again.stderr
