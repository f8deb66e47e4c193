# SPDX-License-Identifier: Apache-2.0
"""KPROF_RING: SIGKILL at random moments leaves the last seconds whole; traces of it one after the other leave nothing behind.

make ring has more of each (RING_KILLS=, RING_TRACES=, and RING_STEPS= of a day).
"""
import bisect
import concurrent.futures
import json
import os
import platform
import random
import subprocess
import time

import pytest

import facts
import harness

KILLS = int(os.environ.get("RING_KILLS", "12"))
STEPS = int(os.environ.get("RING_STEPS", "4000"))
TRACES = int(os.environ.get("RING_TRACES", "40"))
MS = 1_000_000
RING = 1000 * MS
seed = int(os.environ.get("KPROF_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)


def killed(folder, double, seconds):
    """When ops of the program began and ended, as it wrote them, until it was killed so long after its first."""
    env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=folder, KPROF_RING="1s")
    with subprocess.Popen(list(map(str, harness.script_command("ring_logged.py", double))), env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        try:
            said = program.stdout.readline()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                said += program.stdout.readline()
        finally:
            program.kill()
        said += program.stdout.read()
    lines = said.split(b"\n")[:-1]  # what follows the last newline was cut
    return [tuple(map(int, line.split())) for line in lines]


def recorded(folder):
    """When ops began that the trace has, and when it ends, in ns since 1970."""
    said = harness.cli("recover", folder)
    assert said.returncode == 0, said.stderr
    path, = folder.glob("*.pt.trace.json*")
    trace = facts.load(path)
    base = trace["baseTimeNanoseconds"]
    end, = [e["ts"] for e in trace["traceEvents"] if e.get("name") == "Record Window End"]
    return sorted(base + round(1000 * e["ts"]) for e in trace["traceEvents"] if e.get("name") == "aten::ring"), base + round(1000 * end)


def silence(starts, end):
    """How long nothing was recorded, as where a busy machine gave no core: that does not count. A sixteenth is a part."""
    return sum(later - earlier for earlier, later in zip(starts, [*starts[1:], end]) if later - earlier > RING // 16)


def wrong_with(folder, double, number):
    """What is wrong with the ring that one kill leaves; None: nothing."""
    seconds = random.Random(seed + number).uniform(1.1, 1.9)
    folder.mkdir()
    wrote = killed(folder, double, seconds)
    starts, end = recorded(folder)
    begun, ended = wrote[-1]
    first = next(ended for begun, ended in wrote if begun >= end - RING + MS)  # of the ops that the ring must have
    since = sum(begun >= starts[0] - MS for begun, _ in wrote)
    at = bisect.bisect_left(starts, begun - MS)
    if at == len(starts) or starts[at] > ended + MS:
        return f"the last op of {begun} to {ended} is missing; the trace ends with {starts[-1]}"
    if not end - RING - silence(starts, end) - MS <= starts[0] <= first + MS:
        return f"it begins {(end - starts[0]) / 1e9:.4f} s before its end, and its first op should be that until {first}, not of {starts[0]}"
    if abs(len(starts) - since) > 4:  # some lie at its edges
        return f"{len(starts)} ops, of {since} that the program wrote"
    return None


def test_a_kill_at_any_moment_leaves_the_last_second_whole(tmp_path, torch_double):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wrongs = list(pool.map(lambda number: wrong_with(tmp_path / str(number), torch_double, number), range(KILLS)))
    assert wrongs == [None] * KILLS, f"seed {seed}"


def test_a_thread_that_asks_whether_the_gpu_is_done_does_not_wear_the_ring_out(tmp_path):
    """NCCL's watchdog asks for the events of a collective that hangs, until its limit of ten minutes ends the job."""
    simgpu = harness.BUILD / platform.machine() / "simgpu"
    doubles = " ".join(str(simgpu / name) for name in ("libcuda.so.1", "libcudart.so.13", "libcupti.so.13"))
    run = harness.Run([harness.PYTHON, harness.SCRIPTS / "ring_polled.py", 2, 20], tmp_path / "run",
                      harness.clean_environment(LD_PRELOAD=f"{harness.LIBRARY} {doubles}", LD_LIBRARY_PATH=simgpu, KPROF_DIR=tmp_path / "out",
                                                DISABLE_ADDMM_CUDA_LT=1, KPROF_RING="1s"), timeout=harness.LONG)
    steps = int(run.out.split()[-1])  # of its last second of work, of which records that come late take a part or two of 16
    assert harness.cli("recover", tmp_path / "out").returncode == 0
    path, = (tmp_path / "out").glob("*.pt.trace.json*")
    names = [event["name"] for event in facts.load(path)["traceEvents"] if event.get("ph") == "X"]
    assert names.count("aten::mul") >= 0.6 * steps > 0 and names.count("cudaEventQuery") > 100, (steps, names.count("aten::mul"))


@pytest.mark.parametrize("how", ["keep", "window"])
def test_traces_one_after_the_other_leave_nothing_behind(how, tmp_path, torch_double):
    settings = {"KPROF_RING": "1s"} if how == "keep" else {"KPROF_SCHEDULE": "none"}
    run = harness.Run(harness.script_command("windows_flat.py", torch_double, tmp_path / "out", TRACES, how), tmp_path / "run",
                      harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path / "out", KPROF_KEEP=3, **settings), timeout=3600).ok()
    early, late = json.loads(run.out)
    print(early, late)
    assert early["traces"] == late["traces"] == 3 and late["files"] == early["files"], (early, late)
    assert late["descriptors"] <= early["descriptors"] + 4, (early, late)  # those of a trace or of kprof-disk, for moments
    assert late["own_kb"] - early["own_kb"] < 8192, (early, late)


def test_the_steps_of_a_day_with_all_that_watches_a_job_leave_nothing_behind(tmp_path, torch_double):
    out, settings = tmp_path / "out", {"KPROF_RING": "1s", "KPROF_SUMMARY": 1, "KPROF_HANG": "10s", "KPROF_ON_OOM": "dump", "KPROF_KEEP": 3}
    run = harness.Run(harness.script_command("windows_flat.py", torch_double, out, STEPS, "day"), tmp_path / "run",
                      harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=out, KPROF_PROM=out / "job.prom", KPROF_CONTROL=1, **settings), timeout=3600).ok()
    early, late = json.loads(run.out)
    print(early, late)
    assert early["traces"] == late["traces"] == 3 and late["files"] <= 8, (early, late)  # lines, metrics and their next ones, a socket, the spool
    assert late["descriptors"] <= early["descriptors"] + 4 and late["own_kb"] - early["own_kb"] < 2048, (early, late)
    rank, = json.loads(harness.cli("watch", "--json", out).stdout)["ranks"]
    assert rank["step"] >= STEPS - 41, rank  # each of them has its line, the last ones perhaps not
