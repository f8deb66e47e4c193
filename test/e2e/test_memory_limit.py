# SPDX-License-Identifier: Apache-2.0
"""A job that the kernel kills since its control group has no memory left."""
import os
import pathlib
import re
import subprocess

import pytest

import harness

LIMIT = 200 << 20
GROWS = """
kept = []
for step in range(1000):
    op(b"aten::linear")
    k.kprof_step()
    kept.append(b"x" * (10 << 20))
"""


@pytest.fixture
def group():
    """A control group with a limit, of version 1."""
    own = [line.split(":", 2)[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in line]
    above = pathlib.Path("/sys/fs/cgroup/memory" + (own or [""])[0])
    made = above / f"kprof-test-{os.getpid()}"
    try:
        made.mkdir()
        (made / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as why:
        pytest.skip(f"no control group with a memory limit can be made: {why}")
    yield made
    made.rmdir()


def inside(group, command):
    """Runs a command in the group."""
    return subprocess.run(["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *map(str, command)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=harness.LONG, env=harness.clean_environment())


KEEPS = """
def keeps(kept):
    kept.append(b"x" * (10 << 20))
k = ctypes.CDLL(None)
kept = []
for step in range(1000):
    op(b"aten::linear")
    k.kprof_step()
    keeps(kept)
"""


def test_what_the_heap_had_when_the_kernel_killed_it_is_told_by_site(group, mini, tmp_path):
    out, script = tmp_path / "out", mini(KEEPS)
    run = [harness.KPROF, "run", "--no-advise", "--malloc", "trace", "--with-stack", "1", "--schedule", "active=1000000", "-o", out, "--", harness.PYTHON, script]
    assert inside(group, run).returncode in (-9, 137)
    line = next(number for number, text in enumerate(script.read_text().splitlines(), 1) if "kept.append" in text)
    there = harness.cli("memory", out).stdout.split("still there at ", 1)[1].split(":\n", 1)[1]
    most = re.match(rf" +(\d+)\.\d+ MiB in (\d+) blocks.*\n +your line: keeps at mini\.py:{line}\n", there)
    assert most and int(most[1]) == 10 * int(most[2]) and 100 < int(most[1]) < LIMIT >> 20, there
    grew = harness.cli("memory", "--leaks", out).stdout
    assert re.search(r"left \d+\.00 MiB in \d+ blocks on the host's heap, 10.00 MiB a step\n", grew) and f"keeps at mini.py:{line}" in grew, grew


def test_a_job_that_passes_the_limit_of_its_group_says_so(group, mini, tmp_path):
    script, out = mini("k = ctypes.CDLL(None)\n" + GROWS), tmp_path / "out"
    run = [harness.KPROF, "run", "--advise", "--schedule", "active=1000000", "-o", out, "--", harness.PYTHON, script]
    done = inside(group, run)
    assert "because memory ran out" in done.stderr, done.stderr
    said = harness.cli("why", out).stdout
    assert "was killed by SIGKILL" in said and "its job may have 200.00 MiB" in said, said
    assert "for want of memory" in said, said
