# SPDX-License-Identifier: Apache-2.0
"""KPROF_EXPORT: table, stacks and memory beside the trace, the same bytes that the command makes of that trace."""
import re
import signal

import pytest

import harness

SCRIPT = "memory_kinds.py"
ENDS = [".table.txt", ".stacks.txt", ".memory.html"]
KILLED = """
import os, signal, torch
for _ in range(50):
    torch.ones(3).add(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="session")
def everything(ours):
    return ours(SCRIPT, schedule=None, KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops", KPROF_EXPORT="trace,table,stacks,memory", **harness.LATE)


def named(trace, end):
    return trace.with_name(re.sub(r"\.pt\.trace\.json(\.gz)?$", end, trace.name))


def shown(*args, **options):
    run = harness.cli(*args, **options)
    assert run.returncode == 0 and run.stdout, run.stderr
    return run.stdout


def test_files_have_what_the_command_shows(everything):
    trace = everything.trace
    assert named(trace, ".table.txt").read_text() == shown("report", "--torch", trace)
    assert named(trace, ".stacks.txt").read_text() == shown("stacks", "--torch", trace)
    page = shown("memory", "--html", trace).replace(str(trace), trace.name)
    assert named(trace, ".memory.html").read_text() == page
    assert "Grows from step to step" in page


def test_only_whole_files_that_no_viewer_takes_for_a_trace(everything):
    names = {path.name for path in everything.folder.iterdir()}
    assert names == {everything.trace.name} | {named(everything.trace, end).name for end in ENDS}
    assert not any(end.endswith((".json", ".gz")) for end in ENDS)


def test_the_closing_line_names_them(everything):
    (line,) = everything.said
    assert re.fullmatch(r"kprof: wrote \S+\.pt\.trace\.json\.gz, \.table\.txt, \.stacks\.txt, \.memory\.html \(5 steps.*\); next: kprof report \S+", line)


def test_without_the_trace(ours):
    run = ours(SCRIPT, schedule=None, KPROF_EXPORT="table,stacks", **harness.LATE)
    (table,) = run.folder.iterdir()
    assert table.name.endswith(".table.txt") and "aten::addmm" in table.read_text()
    assert [re.sub(r"\S*/|\(.*", "", line) for line in run.said] == [
        "kprof: nothing to write as stacks.txt: set KPROF_WITH_STACK to 1 or ops", f"kprof: wrote {table.name} "]


def test_export_and_recover_do_as_the_run_was_told(tmp_path):
    killed = harness.run_kprof(SCRIPT, tmp_path, schedule=None, KPROF_EXPORT="trace,table", command=[harness.PYTHON, "-c", KILLED])
    assert killed.code == -signal.SIGKILL and killed.spools and not killed.traces
    line = shown("export", "--export", "memory,table", "-o", tmp_path / "told", killed.spools[0])
    (table,) = (tmp_path / "told").iterdir()
    assert line.startswith(f"kprof: wrote {str(table)} (") and "aten::ones" in table.read_text()
    assert harness.cli("export", "--export", "tables", killed.spools[0]).returncode == 2
    line = shown("recover", tmp_path)
    assert f"kprof: wrote {killed.trace}, .table.txt (" in line
    assert named(killed.trace, ".table.txt").read_text() == shown("report", "--torch", killed.trace)
    assert not killed.spools
