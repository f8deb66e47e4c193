# SPDX-License-Identifier: Apache-2.0
"""kprof why of one program: each end has its sentence, right or without a cause, and none is called good that was not."""
import re

import pytest

import harness

EARLY = "the program (process N) ended without an exit (killed, or by os._exit) after step 4"
GOOD = "the program ended by itself"
ENDS = {  # how it ends: without a parent that knows; where kprof run watches, the signal that it names
    "plain": (GOOD, None),
    "text": ("the program (process N) ended by exit status 1 after step 4", None),
    "three": ("the program (process N) ended by exit status 3 after step 4", None),
    "zero": (GOOD, None),
    "c": ("the program (process N) ended by exit status 4 after step 4", None),
    "_exit": (EARLY, None),
    "exec": (EARLY, None),
    "thread": (GOOD, None),
    "raises_in_thread": (GOOD, None),
    "atexit": (GOOD, None),
    "child": (GOOD, None),
    "grandchild": (GOOD, None),
    "interrupt": ("the program (process N) ended by SIGINT after step 4", "SIGINT"),
    "term": ("the program (process N) ended by SIGTERM after step 4", "SIGTERM"),
    "handled": ("the program (process N) ended by exit status 143 after step 4", None),
    "saved": (GOOD, None),
    "pipe": (EARLY, "SIGPIPE"),
    "quit": (EARLY, "SIGQUIT"),
    "alarm": (EARLY, "SIGALRM"),
    "usr1": (EARLY, "SIGUSR1"),
    "cpu": (EARLY, "SIGXCPU"),
    "abort": (EARLY, "SIGABRT"),
    "fault": (EARLY, "SIGSEGV"),
    "kill_at_exit": ("the program (process N) ended without an exit (killed, or by os._exit) after step 6", "SIGKILL"),
}


def why(tmp_path, torch_double, how, *watched):
    """The first line, without the number of the process."""
    folder = tmp_path / "k"
    harness.cli("run", *watched, "-o", folder, "--", *harness.script_command("ends_alone.py", torch_double, how))
    said = harness.cli("why", folder)
    assert said.returncode == 0, said.stderr
    return re.sub(r"process \d+", "process N", said.stdout.splitlines()[0])


@pytest.mark.parametrize("how", ENDS)
def test_the_sentence_is_right_where_nobody_watches(how, tmp_path, torch_double):
    assert why(tmp_path, torch_double, how) == ENDS[how][0]


@pytest.mark.parametrize("how", [how for how, (_, signal) in ENDS.items() if signal])
def test_a_signal_is_named_where_kprof_run_watches(how, tmp_path, torch_double):
    said, signal = why(tmp_path, torch_double, how, "--json"), ENDS[how][1]
    assert said.startswith(f"the program (process N) {'was killed' if signal == 'SIGKILL' else 'ended'} by {signal} after step "), said
