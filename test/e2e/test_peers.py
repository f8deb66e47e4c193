# SPDX-License-Identifier: Apache-2.0
"""The driver of `make peers-tests` tells a test that differs from one that does not, also where a test dies, hangs, or differs from itself."""
import os
import subprocess
import sys

import harness
import pytest

RUN = harness.ROOT / "test/peers/run.py"
EMPTY = "int kp_nothing;"
TESTS = '''
import os, pathlib, signal, time, warnings
import pytest
WITH_US = "KPROF_DIR" in os.environ

def test_equal(): pass
def test_fails_in_both(): assert not "so"
@pytest.mark.skip
def test_skipped(): pass
def test_fails_with_us(): assert not WITH_US
def test_raises_another_thing():
    raise ValueError("x") if WITH_US else KeyError("x")
def test_warns_with_us():
    if WITH_US: warnings.warn("threads")
def test_dies_with_us():
    if WITH_US: os.kill(os.getpid(), signal.SIGKILL)
def test_hangs_with_us():
    if WITH_US: time.sleep(600)
def test_differs_from_itself():
    turn = pathlib.Path(__file__).with_name("turn")
    turn.write_text("%d" % (1 - int(turn.read_text())))
    assert turn.read_text() == "0"
def test_after_all():
    with open("/proc/self/maps") as maps: assert "libkprof.so" in maps.read()
'''
TABLE = '''
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("peers_suites", %r)
peers = importlib.util.module_from_spec(spec)
sys.modules["peers_suites"] = peers
spec.loader.exec_module(peers)
SUITES = (peers.Suite("made", peers.Source("made", "1"), "torch-2.15", ".", ("test_made.py",), limit=300, stall=4, env=(("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),)),)
MODES = {"idle": {}}
'''


def driver(folder, *words, tests=TESTS):
    source = folder / "cache/kprof/peers/made-1"
    (source / "source").mkdir(parents=True, exist_ok=True)
    (source / ".ready").touch()
    (source / "source/test_made.py").write_text(tests)
    (source / "source/turn").write_text("0")
    (folder / "suites.py").write_text(TABLE % str(RUN.with_name("suites.py")))
    empty = folder / "libempty.so"
    subprocess.run(["gcc", "-shared", "-o", empty, "-xc", "-"], input=EMPTY, text=True, check=True)
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "KPROF_PYTHON": sys.executable, "KPROF_PEERS_TMP": str(folder)}
    return subprocess.run([sys.executable, RUN, empty, harness.LIBRARY, "--suites", folder / "suites.py", *words], env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_what_differs_is_told_by_name(tmp_path):
    done = driver(tmp_path, "--again", "9")
    assert done.returncode == 1, done.stdout + done.stderr
    differs = {line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("#   differs: ")}
    assert differs == {
        "test_fails_with_us: passed became failed assert not True (alone as well)",
        "test_raises_another_thing: failed KeyError became failed ValueError (alone as well)",
        "test_warns_with_us: passed became passed, warns UserWarning (alone as well)",
        "test_dies_with_us: passed became died (SIGKILL) (alone as well)",
        "test_hangs_with_us: passed became hangs (alone as well)",
    }
    unsteady = [line for line in done.stdout.splitlines() if line.startswith("#   unsteady: ")]
    assert len(unsteady) == 1 and "test_differs_from_itself" in unsteady[0] and "differs from itself without us" in unsteady[0]
    assert "| made | 4 equal, **5 differ** |" in done.stdout


def test_what_is_equal_passes(tmp_path):
    done = driver(tmp_path, "--select", "equal or both or skipped or after")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| made | 4 equal, 0 differ |" in done.stdout


def test_what_did_not_run_in_time_is_counted(tmp_path):
    done = driver(tmp_path, "--limit", "0", "--select", "equal or both or skipped")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| made | 1 equal, 0 differ, 2 not run |" in done.stdout


def test_a_file_that_cannot_be_collected_is_no_pass(tmp_path):
    done = driver(tmp_path, tests="import nothing_of_this_name")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not ok - made: test_made.py cannot be collected without us" in done.stdout
