# SPDX-License-Identifier: Apache-2.0
"""A job that the kernel kills since its control group has no memory left."""
import os
import pathlib
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


def test_a_job_that_passes_the_limit_of_its_group_says_so(group, mini, tmp_path):
    script, out = mini("k = ctypes.CDLL(None)\n" + GROWS), tmp_path / "out"
    run = [harness.KPROF, "run", "--advise", "--schedule", "active=1000000", "-o", out, "--", harness.PYTHON, script]
    inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *map(str, run)]
    done = subprocess.run(inside, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.LONG, env=harness.clean_environment())
    assert "because memory ran out" in done.stderr, done.stderr
    said = harness.cli("why", out).stdout
    assert "was killed by SIGKILL" in said and "its job may have 200.00 MiB" in said, said
    assert "for want of memory" in said, said
