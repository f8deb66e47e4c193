# SPDX-License-Identifier: Apache-2.0
"""kprof run --advise: the findings of the newest trace are said when the program has ended, and it ends as the program did."""
import shlex
import signal
import subprocess

import pytest

import advicetraces
import harness


@pytest.fixture
def ran(tmp_path):
    """ran(script, name): kprof run --advise of a shell script, which may copy a sick trace ($sick) into the folder ($to)."""
    def run(script, **env):
        sick = advicetraces.SICK["pageable-copies"]().write(tmp_path / "sick.pt.trace.json")
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        script = f"sick={shlex.quote(str(sick))}; to={shlex.quote(str(out))}/one.1.pt.trace.json; {script}"
        return harness.cli("run", "--advise", "-o", out, "--", "sh", "-c", script, **env)
    return run


def test_findings_are_said_and_the_exit_status_stays(ran):
    done = ran("cp $sick $to; exit 7")
    assert (done.returncode, done.stdout) == (7, "")
    said = [line for line in done.stderr.splitlines() if line.startswith("kprof: ")]
    assert len(said) == 1 and "copies of memory that is not pinned" in said[0] and "0.2 ms a step, 20 %" in said[0] and "pin_memory" in said[0]


def test_a_trace_of_before_is_not_told(ran):
    ran("cp $sick $to")
    done = ran("exit 0")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_a_signal_ends_ends_kprof_so(ran):
    assert ran("kill -KILL $$").returncode == -signal.SIGKILL


def test_nothing_is_said_where_the_log_is_off(ran):
    done = ran("cp $sick $to", KPROF_LOG="none")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_is_passed_on(tmp_path):
    command = [str(harness.KPROF), "run", "--advise", "-o", str(tmp_path), "--", "sh", "-c",
               "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=harness.clean_environment()) as run:
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGTERM)
        assert run.wait(harness.LONG) == 9


def test_a_program_that_is_not_there_is_said(tmp_path):
    done = harness.cli("run", "--advise", "-o", tmp_path, "--", "./none")
    assert done.returncode == 127 and done.stderr.count("\n") == 1
