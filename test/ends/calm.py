# SPDX-License-Identifier: Apache-2.0
"""Trainings that pause for twice KPROF_HANG and stand nowhere: nothing is told of them, and their results are those without the library.

usage: python calm.py; CALM_MINUTES: how long (30), CALM_HANG: seconds of KPROF_HANG (10). Each round is a training that evaluates, compiles, saves
or reads for twice as long between two steps (test/e2e/scripts/calm.py), alone and on two ranks over gloo, with and without. Exit 0: no line, no
file, and equal sums of all weights.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KPROF = pathlib.Path(os.environ.get("KPROF_BUILD", HERE.parent.parent / "build")) / "kprof"
PYTHON = os.environ.get("KPROF_PYTHON", sys.executable)
PROGRAM = HERE.parent / "e2e" / "scripts" / "calm.py"
MINUTES, HANG = float(os.environ.get("CALM_MINUTES", "30")), float(os.environ.get("CALM_HANG", "10"))
PAUSES = ["evaluates", "compiles", "saves", "alive"]
LONG = 3600
ABORT = "terminate called without an active exception"  # torch's gloo, at the exit of one rank in 25, also without the library
aborts = {False: 0, True: 0}


def ran(how, ranks, folder, watched):
    """Runs a training. Returns the sums of its ranks' weights, and all that it said on standard error."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF_", "LD_PRELOAD"))} | {"OMP_NUM_THREADS": "1"}
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    before = [KPROF, "run", "--no-advise", "--hang", f"{HANG:g}s", "--schedule", "none", "-o", folder, "--"] if watched else []
    command = [*before, PYTHON, *launch, PROGRAM, how, 2 * HANG]
    done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0 or ABORT in done.stderr, done.stderr
    aborts[watched] += done.returncode != 0
    return sorted(re.findall("weights ([0-9a-f]{64})", done.stdout)), done.stderr  # ranks may write into one line


def calm(how, ranks, folder):
    """What is wrong of one training; None: nothing."""
    plain, _ = ran(how, ranks, folder, False)
    ours, said = ran(how, ranks, folder, True)
    told = [line for line in said.splitlines() if "no collective has ended" in line] + [path.name for path in folder.glob("hang-*")]
    if told:
        return f"told: {told}"
    return None if plain == ours and len(plain) == ranks else f"results differ: {plain} and {ours}"


def main():
    until, rounds, wrong = time.monotonic() + 60 * MINUTES, 0, 0
    while time.monotonic() < until:
        how, ranks = PAUSES[rounds // 2 % len(PAUSES)], 1 + rounds % 2
        with tempfile.TemporaryDirectory(prefix="calm") as folder:
            problem = calm(how, ranks, pathlib.Path(folder))
        rounds, wrong = rounds + 1, wrong + bool(problem)
        print(f"{how}, {ranks} rank{'s' if ranks > 1 else ''}: {problem or 'nothing told, results equal'}", flush=True)
    print(f"{rounds} trainings with pauses of {2 * HANG:g} s, KPROF_HANG={HANG:g}s: {wrong} wrong; "
          f"torch aborted at its exit in {aborts[True]}, and in {aborts[False]} without the library")
    return not rounds or wrong > 0


if __name__ == "__main__":
    sys.exit(main())
