# SPDX-License-Identifier: Apache-2.0
"""A fork that has torch (test/e2e/warm.py) is to its program as a fresh process: what it sees of itself, what it leaves, how it ends."""
import os
import tempfile

import pytest

import harness
import warm

SEEN = """
import os, sys, threading
import torch
main = sys.modules["__main__"]
print(sys.argv, sys.path, __name__, __file__, main.__file__, vars(main) is globals(), os.getcwd())
print(sorted(os.listdir("/proc/self/fd")), os.getsid(0) == os.getpid(), threading.active_count(), len(os.listdir("/proc/self/task")))
print(sys.stdin.read(), torch.arange(4).sum(), sorted((k, v) for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"))
print("said", file=sys.stderr)
"""


@pytest.fixture()
def both(tmp_path):
    """both(text, *arguments): the program in a fresh process, and in two forks."""
    def run(text, *arguments, **options):
        script = tmp_path / "program.py"
        script.write_text(text)
        runs = [harness.Run([harness.PYTHON, script, *arguments], tmp_path, harness.clean_environment(), 300, warm_start=how, **options) for how in (False, True, True)]
        assert warm.server.pid not in {one.pid for one in runs} and len({one.pid for one in runs}) == 3
        return runs

    return run


def test_a_fork_sees_what_a_fresh_process_sees(both, tmp_path):
    fresh, *forks = both(SEEN, "a", "b c", cwd=tmp_path)
    assert fresh.code == 0 and "'b c'" in fresh.out and fresh.err == "said\n"
    assert [(one.code, one.out, one.err) for one in forks] == [(0, fresh.out, fresh.err)] * 2


@pytest.mark.parametrize("ends", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)", "import os; os._exit(4)", "import atexit; atexit.register(print, 'last')"])
def test_a_fork_ends_as_a_fresh_process_does(both, ends):
    fresh, *forks = both(ends)
    assert [(one.code, one.out, one.err) for one in forks] == [(fresh.code, fresh.out, fresh.err)] * 2


def test_what_runs_too_long_is_killed(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import time; time.sleep(1000)")
    with pytest.raises(AssertionError, match="ran past 1 s"):
        harness.Run([harness.PYTHON, script], tmp_path, harness.clean_environment(), 1, warm_start=True)
    assert harness.Run([harness.PYTHON, script], tmp_path, harness.clean_environment(), 300, kill_after=1, warm_start=True).code == -9


def test_another_environment_has_a_fresh_process(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import os; print(os.getppid(), os.environ['OMP_NUM_THREADS'])")
    assert harness.run_plain(script, tmp_path, OMP_NUM_THREADS=2, warm_start=True).out == f"{os.getpid()} 2\n"
    assert harness.run_plain(script, tmp_path, warm_start=True).out == f"{warm.server.pid} 1\n"


@pytest.fixture()
def apart(monkeypatch):
    """A process for this test alone."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("KPROF_TEST_FORKS", folder)
        monkeypatch.setattr(warm, "server", None)
        yield folder
        warm.server.end()


def test_callers_share_what_was_imported(apart, tmp_path, monkeypatch):
    script = tmp_path / "program.py"
    script.write_text(SEEN + "print(id(torch.nn.Linear))\n")
    one = harness.run_plain(script, tmp_path, warm_start=True).ok()
    first = warm.server
    monkeypatch.setattr(warm, "server", None)
    other = harness.run_plain(script, tmp_path, warm_start=True).ok()
    assert other.out == one.out  # an address of the same import
    assert first.pid != warm.server.pid and len([name for name in os.listdir(apart) if "." not in name]) == 1
    first.end()
