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
WINDOWS = """
import pathlib, sys, time, torch
model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(x).sum().backward()
    optimizer.step()
tables = pathlib.Path(sys.argv[1])
for _ in range(1200):
    if list(tables.glob("*.table.txt")):
        print("there")
        break
    time.sleep(0.1)
"""


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    return harness.run_by_kprof(SCRIPT, tmp_path_factory.mktemp("everything") / "k", schedule=None, KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops",
                                KPROF_EXPORT="trace,table,stacks,memory", **harness.LATE).ok()


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
    assert "from step to step" in page


def test_only_whole_files_that_no_viewer_takes_for_a_trace(everything):
    names = {path.name for path in everything.folder.iterdir()}
    assert names == {everything.trace.name} | {named(everything.trace, end).name for end in ENDS}
    assert not any(end.endswith((".json", ".gz")) for end in ENDS)


def test_the_closing_line_names_them(everything):
    wrote, beside = everything.said
    assert re.fullmatch(r"kprof: wrote \S+\.pt\.trace\.json\.gz \(5 steps.*\); next: kprof report \S+", wrote)
    assert beside == "kprof: beside 1 trace: .table.txt, .stacks.txt, .memory.html"


def test_what_is_made_of_a_trace_needs_it(tmp_path):
    """They are made of the trace, so it is there in any case."""
    run = harness.run_by_kprof(SCRIPT, tmp_path / "k", schedule=None, KPROF_EXPORT="table,stacks", **harness.LATE).ok()
    assert {path.name for path in run.folder.iterdir()} == {run.trace.name, named(run.trace, ".table.txt").name}
    assert "aten::addmm" in named(run.trace, ".table.txt").read_text()
    assert "kprof stacks: " in run.err and "no call stacks" in run.err and run.said[-1] == "kprof: beside 1 trace: .table.txt"


def test_each_window_has_them_while_the_program_runs(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(WINDOWS)
    run = harness.run_by_kprof(script, tmp_path / "k", tmp_path / "k", schedule="wait=0,warmup=0,active=2", KPROF_EXPORT="table").ok()
    assert run.out.strip() == "there", run.out + run.err
    assert len(run.traces) >= 2 and all(named(trace, ".table.txt").exists() for trace in run.traces)


def test_the_library_alone_says_who_makes_them(ours):
    run = ours(SCRIPT, schedule=None, KPROF_EXPORT="table,stacks", **harness.LATE)
    assert [path.name for path in run.folder.iterdir()] == [run.trace.name]
    assert run.said[-1] == ("kprof: KPROF_EXPORT: only traces are written here, and `kprof run` makes the others; of a trace: "
                            "kprof report --torch, kprof stacks --torch, kprof memory --html")


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
