# SPDX-License-Identifier: Apache-2.0
"""Runs of every sort: no schedule, no trace, a program that profiles itself, children, bad settings, full disks."""
import errno
import gzip
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import facts
import harness
from minitorch import told

LOOP = """
for step in range({steps}):
    op(b"aten::arange"), op(b"aten::sum")
print("done", flush=True)
"""


@pytest.fixture()
def program(tmp_path):
    """program(text): a script of that text."""
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def ops_of(path):
    return [e for e in facts.spans(facts.load(path)) if e.get("cat") == "cpu_op"]


NAMES = ['say "hi"', "back\\slash", "line\nbreak", "tab\there", "ünï", "bell\u0007", "x" * 300]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A program with torch and nothing set: its first ops, an op that raises, ranges of all names, and a status of its own."""
    folder = tmp_path_factory.mktemp("usual")
    script = folder / "program.py"
    script.write_text(f"""
import sys, torch
torch.hann_window(7)
for _ in range(3): torch.eye(3)
for _ in range(3):
    try: torch.ones(2, 3) @ torch.ones(2, 3)
    except RuntimeError: pass
for name in {NAMES!r}:
    with torch.profiler.record_function(name): torch.ones(1)
print("done")
sys.exit(3)
""")
    run = harness.run_kprof(script, folder / "out", schedule=None)
    assert run.code == 3, run.explain()
    return run


def test_without_a_schedule_the_very_first_op_is_there(usual):
    names = [e["name"] for e in sorted(ops_of(usual.trace), key=facts.begin)]
    assert names.count("aten::hann_window") >= 1 and names.count("aten::eye") >= 3
    assert names.index("aten::hann_window") < names.index("aten::eye")
    assert usual.closing[3] == 0 and usual.out == "done\n"


def test_without_a_schedule_all_steps_are_counted(ours):
    """LD_PRELOAD and nothing else: everything from start to exit."""
    run = ours("transformer.py", schedule=None, shapes=False)
    path, steps, ops, dropped = run.closing
    trace = facts.load(run.trace)
    assert os.path.samefile(path, run.trace) and dropped == 0
    counted = [e for e in facts.spans(trace) if e.get("cat") in ("cpu_op", "user_annotation") and not facts.STEP.match(e["name"])]
    assert ops == len(counted)
    assert sum(e["name"] == "Optimizer.step#AdamW.step" for e in counted) == 6


def test_no_schedule_agrees_with_torch_profiler_over_the_training(ours, oracle):
    """From the first optimizer step to the last both have recorded: the same ops in between."""
    def between(path):
        spans = [e for e in facts.spans(facts.load(path)) if e.get("cat") in ("cpu_op", "user_annotation") and not facts.STEP.match(e["name"])]
        marks = sorted(facts.begin(e) for e in spans if e["name"].startswith("Optimizer.step#"))
        return facts.collections.Counter(e["name"] for e in spans if marks[0] <= facts.begin(e) < marks[-1])

    assert between(ours("transformer.py", schedule=None, shapes=False).trace) == between(oracle("transformer.py", schedule=None, shapes=False).trace)


def test_threads_that_torch_profiler_misses_are_there(ours, oracle):
    reference, candidate = facts.load(oracle("threads.py").trace), facts.load(ours("threads.py").trace)
    only_helpers = {"aten::arange", "aten::cumsum", "aten::remainder"}
    assert not only_helpers & {e["name"] for e in facts.host_events(reference)}
    lines = facts.by_thread(facts.host_events(candidate))
    helpers = [line for line in lines.values() if any(e["name"] == "aten::cumsum" for e in line)]
    assert len(lines) == 3 and len(helpers) == 2
    assert [sum(e["name"] == "aten::cumsum" for e in line) for line in helpers] == [3, 3]
    main = [line for line in lines.values() if line not in helpers]
    counts = facts.collections.Counter(e["name"] for e in main[0])
    assert counts == facts.facts(reference)["op counts"]


def test_a_program_that_profiles_itself_gets_the_same_trace_and_so_do_we(program, tmp_path):
    script = program("""
import sys, torch
from torch.profiler import profile, schedule, ProfilerActivity
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=1), record_shapes=True,
             on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1])) as own:
    for step in range(6):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        own.step()
""")
    alone, both = tmp_path / "alone.json", tmp_path / "both.json"
    harness.run_plain(script, tmp_path, alone, warm_start=True).ok()
    run = harness.run_kprof(script, tmp_path / "out", both).ok()
    names = ["op counts", "categories", *facts.INPUTS, "nesting", "fwd-bwd pairs", "fwdbwd flows"]
    first, second, third = (facts.facts(facts.load(path)) for path in (alone, both, run.trace))
    assert not facts.differences(first, second, names)
    assert not facts.differences(second, third, names)


STEPS = """
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range({steps}):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


def test_says_how_many_steps_were_missing(program, tmp_path):
    run = harness.run_kprof(program(STEPS.format(steps=1)), tmp_path / "out").ok()
    assert run.said == ["kprof: no trace: saw 1 step by optimizer, the schedule needs 5: try KPROF_SCHEDULE=active=1"]
    assert not run.traces and not run.spools
    run = harness.run_kprof(program(STEPS.format(steps=20)), tmp_path / "out", schedule="wait=30,warmup=1,active=3").ok()
    advice = "KPROF_SCHEDULE=warmup=1,active=19"
    assert run.said == [f"kprof: no trace: saw 20 steps by optimizer, the schedule needs 34: try {advice}"]
    taken = harness.run_kprof(program(STEPS.format(steps=20)), tmp_path / "taken", schedule=advice.split("=", 1)[1]).ok()
    assert taken.closing[1] == 19 and "no warmup" not in taken.err


def test_a_folder_that_no_run_made_is_explained(tmp_path):
    said = harness.cli("report", tmp_path / "nothing").stderr
    assert "nothing made no folder" in said
    assert harness.cli("report", tmp_path / "a.pt.trace.json").stderr.endswith(f"a.pt.trace.json: {os.strerror(errno.ENOENT)}; check the name\n")


def test_a_schedule_without_a_step_says_what_was_looked_for(mini, tmp_path):
    script = mini(LOOP.format(steps=3))
    for rule, seen in (("auto", "no optimizer stepped and no DataLoader"), ("range:generate", "no record_function range matches 'generate'"),
                       ("op:nosuch", "no op matches 'nosuch'"), ("api", "kprof_step() was not called")):
        run = harness.run_kprof(script, tmp_path / "out", KPROF_STEP=rule).ok()
        said, = told(run.said)
        assert said.startswith(f"kprof: no trace: saw 0 steps, the schedule needs 5: {seen}"), run.said


def test_the_closing_line_names_the_next_command_and_it_works(mini, tmp_path):
    script = mini('for _ in range(5): op(b"aten::linear")\n')
    for folder, options in ((tmp_path / "kprof", []), (tmp_path / "log", [str(tmp_path / "log")])):
        run = harness.run_kprof(script, folder, schedule="wait=1,active=2,repeat=1", cwd=tmp_path, KPROF_STEP="op:^aten::linear$").ok()
        words = run.said[-1].split("; next: ")[1].split()
        assert words == ["kprof", "report", *(["log"] if options else [])]
        assert "(2 steps by op, " in run.said[-1] and ", no warmup: " in run.said[-1]
        told = subprocess.run([str(harness.KPROF), *words[1:]], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
        assert told.returncode == 0 and "aten::" in told.stdout, told.stderr
        assert ("latest run: kprof/" in told.stderr) == (not options)


def test_a_run_without_steps_is_told_what_makes_some(program, tmp_path):
    """The closing line and the report name the same flag; with it, or with an optimizer, nothing is to be told."""
    calls = program("import torch\nmodel = torch.nn.Linear(8, 2)\nfor _ in range(20): model(torch.ones(4, 8))\n")
    for flags, is_told in (([], True), (["--schedule", "active=1000"], False)):
        done = harness.cli("run", "-o", tmp_path / f"calls{is_told}", *flags, "--", harness.PYTHON, calls)
        assert done.returncode == 0 and ("; no steps: --schedule active=1000 makes each call of a model, or generate() of transformers, a step\n" in done.stderr) == is_told, done.stderr
        report = harness.cli("report", tmp_path / f"calls{is_told}").stdout
        assert ("or of generate() as steps: kprof run --schedule active=1000\n" in report) == is_told and ("steps (" in report) != is_told, report
    trained = harness.cli("run", "-o", tmp_path / "trained", "--", harness.PYTHON, program(STEPS.format(steps=3)))
    assert "(3 steps by optimizer" in trained.stderr and "no steps" not in trained.stderr, trained.stderr


def test_spawned_workers_do_not_complain_of_steps(tmp_path):
    """The worker is a program of its own that runs ops and never steps: the one line is the training's."""
    run = harness.run_kprof("spawned_workers.py", tmp_path / "out").ok()
    assert len(run.said) == 1 and run.said[0].startswith("kprof: wrote "), run.said
    assert len(run.traces) == 1


def test_a_window_cut_short_by_exit_is_torch_profilers(program, tmp_path):
    """Three steps where five are needed: torch.profiler writes what it has when it is stopped, and so do we."""
    script = program(STEPS.format(steps=3))
    reference = harness.Oracle(script, tmp_path / "kineto")
    run = harness.run_kprof(script, tmp_path / "out").ok()
    assert ", until the program's end)" in run.said[-1]
    assert not facts.differences(*(facts.facts(facts.load(path)) for path in (reference.trace, run.trace)))


def test_a_process_without_events_writes_nothing_and_says_nothing(tmp_path):
    for command in (["/bin/true"], ["/bin/sh", "-c", "ls / >/dev/null"], [harness.PYTHON, "-c", "pass"]):
        run = harness.run_kprof(None, tmp_path / "out", command=command).ok()
        assert run.err == "" and not (tmp_path / "out").exists()


def test_kprof_run_says_that_nothing_was_there_to_record(mini, tmp_path):
    """Of the program that it ran, not of those that this one starts; nothing when one of those was recorded."""
    inner = mini("op(b'aten::sum')\n")
    for command, lines in ((["/bin/true"], ["true"]), (["/bin/ls", "/"], ["ls"]), ([harness.PYTHON, "-c", "import os; os.system('ls / >/dev/null')"], [os.path.basename(harness.PYTHON)]),
                           ([harness.PYTHON, "-c", "import torch"], [os.path.basename(harness.PYTHON)]),
                           ([harness.PYTHON, "-c", f"import torch, os; os.system('{harness.PYTHON} {inner}')"], [])):
        run = harness.Run([harness.KPROF, "run", "-o", tmp_path / "out", "--", *command], tmp_path / "out", harness.clean_environment(), harness.LONG).ok()
        said = [line for line in told(run.said) if "wrote" not in line]
        assert said == [f"kprof: nothing was recorded: {name} ran no PyTorch op and no CUDA call. kprof does not time lines of plain Python. kprof run --malloc trace records the heap of any program, --symbols its calls of C functions"
                        for name in lines], run.explain()
        assert len(run.traces) == (not lines)


def test_of_programs_without_steps_the_one_that_was_asked_for_is_told(mini, tmp_path):
    """A recorded heap is of any program: those that a shell starts have no steps, and nobody looks for them there."""
    missed, script = "no trace: saw 0 steps", mini('for _ in range(5): op(b"aten::linear")\n')
    helpers, trains = "ls / >/dev/null; timeout 9 ls / >/dev/null", f"KPROF_STEP='op:^aten::linear$' timeout 99 {harness.PYTHON} {script}"
    flags = ["--malloc", "trace", "--schedule", "wait=1,active=2,repeat=1"]
    for command, lines, traces in ((["ls", "/"], 1, 0), (["bash", "-c", f"{helpers}; :"], 1, 0), (["bash", "-c", f"{helpers}; {trains}; :"], 0, 1)):
        run = harness.Run([harness.KPROF, "run", *flags, "-o", tmp_path / "out", "--", *command], tmp_path / "out", harness.clean_environment(), harness.LONG).ok()
        assert (sum(missed in line for line in run.said), len(run.traces)) == (lines, traces), run.explain()
    run = harness.run_kprof(None, tmp_path / "loaded", command=["bash", "-c", f"{helpers}; :"], schedule="wait=1,active=2,repeat=1", KPROF_MALLOC="trace").ok()
    assert missed not in run.err, run.explain()


@pytest.mark.parametrize("flags, variables, is_said", [(["--with-stack", "1"], {}, True), (["--with-stack", "ops"], {}, False),
                                                       (["--with-stack", "1", "--schedule", "1-2"], {}, False), ([], {"KPROF_WITH_STACK": "1"}, True),
                                                       (["--with-stack", "1", "--log", "none"], {}, False)])
def test_all_python_calls_without_a_schedule_are_called_heavy(tmp_path, flags, variables, is_said):
    said = harness.cli("run", *flags, "-o", tmp_path, "--", "/bin/true", **variables).stderr
    assert ("--schedule 10-12 records three steps; --with-stack ops the stacks of ops alone" in said) is is_said, said


@pytest.mark.parametrize("flags, is_said", [(["--with-modules"], True), (["--with-modules", "--with-stack", "1"], False), ([], False),
                                            (["--with-modules", "--log", "none"], False)])
def test_modules_alone_are_called_torchscripts(tmp_path, flags, is_said):
    said = harness.cli("run", *flags, "-o", tmp_path, "--", "/bin/true").stderr
    assert ("records modules of TorchScript alone" in said and "needs --with-stack 1\n" in said) is is_said, said


def test_switched_off_means_inert(mini, tmp_path):
    run = harness.run_kprof(mini(LOOP.format(steps=3)), tmp_path / "out", KPROF=0).ok()
    assert run.err == "" and run.out == "done\n" and not (tmp_path / "out").exists()


def test_export_none_leaves_the_spool_to_the_command(ours, tmp_path_factory, once):
    folder = tmp_path_factory.mktemp("spool")
    run = harness.run_kprof("transformer.py", folder, KPROF_EXPORT="none").ok()
    assert not run.traces and len(run.spools) == 1
    said = harness.cli("export", run.spools[0])
    assert said.returncode == 0, said.stderr
    trace = facts.facts(facts.load(run.trace))
    assert not facts.differences(facts.facts(facts.load(ours("transformer.py").trace)), trace)


def test_recover_makes_the_trace_of_a_killed_run(program, tmp_path):
    script = program("""
import os, signal, torch
m = torch.nn.Linear(2, 2)
o = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(4): m(torch.ones(1, 2)).sum().backward(); o.step()
os.kill(os.getpid(), signal.SIGKILL)
""")
    run = harness.run_kprof(script, tmp_path / "out", schedule=None)
    assert run.code == -9 and not run.traces and len(run.spools) == 1
    said = harness.cli("recover", tmp_path / "out")
    assert said.returncode == 0, said.stderr
    names = facts.collections.Counter(e["name"] for e in facts.spans(facts.load(run.trace)))
    assert names["aten::linear"] == 4 and names["Optimizer.step#SGD.step"] == 4


def test_a_schedule_that_is_over_leaves_no_spool_to_a_kill(program, tmp_path):
    """As Ray ends its actors. The program waits for the trace, as long as the machine needs, and for the spool to go."""
    script = program("""
import glob, os, signal, sys, time, torch
m = torch.nn.Linear(2, 2)
o = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(6): m(torch.ones(1, 2)).sum().backward(); o.step()
limit = time.monotonic() + 600
files = lambda end: glob.glob(os.path.join(sys.argv[1], "*" + end))
while (not files(".gz") or files(".kprof")) and time.monotonic() < limit: time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
""")
    run = harness.run_kprof(script, tmp_path / "out", tmp_path / "out", schedule="wait=1,warmup=1,active=1,repeat=2")
    assert run.code == -9 and len(run.traces) == 2 and not run.spools, run.explain()


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_what_a_signal_ended_is_the_latest_run(mini, tmp_path, signal_name):
    """The next command recovers it, and says so once. The program ends by the signal, as alone."""
    script = mini(f"""
import os, signal
signal.signal(signal.{signal_name}, signal.SIG_DFL)
for _ in range(4): op(b"aten::linear")
os.kill(os.getpid(), signal.{signal_name})
""")
    run = harness.run_kprof(script, tmp_path / "kprof", schedule=None)
    assert run.code == -getattr(signal, signal_name) and len(run.spools) == 1 and not run.traces, run.explain()
    spool = run.spools[0].name

    def report(*argv):
        done = subprocess.run([str(harness.KPROF), "report", *argv], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
        assert done.returncode == 0 and "aten::linear" in done.stdout, done.stderr
        return done

    told = report("--json")
    traces = list((tmp_path / "kprof").glob("*.pt.trace.json.gz"))
    assert len(traces) == 1 and not list((tmp_path / "kprof").glob("*.kprof")) and json.loads(told.stdout)
    assert f"kprof/{spool}: its program ended" in told.stderr
    assert f"latest run: kprof/{traces[0].name}" in told.stderr
    assert "recovered" not in report("kprof").stderr + report("kprof/latest").stderr


@pytest.mark.parametrize("flags, is_said", [((), True), (("--no-advise",), True), (("--json",), True), (("--advise",), True), (("--log", "none"), False)])
def test_an_interrupt_without_a_terminal_has_a_closing_line(mini, tmp_path, flags, is_said):
    """Python ends itself by SIGINT after KeyboardInterrupt, so no exit handler runs. The caller sees the signal, as alone."""
    script = mini("""
import time
for _ in range(4): op(b"aten::linear")
print("ready", flush=True)
time.sleep(600)
""")
    command = [str(harness.KPROF), "run", *flags, "--", harness.PYTHON, str(script)]
    with subprocess.Popen(command, cwd=tmp_path, env=harness.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as run:
        assert run.stdout.readline() == "ready\n"
        if "--json" in flags:  # kprof passes on what another process sends, and has nothing to say itself: the program gets one
            run.send_signal(signal.SIGINT)
        else:
            os.killpg(run.pid, signal.SIGINT)
        said = run.communicate()[1]
    assert run.returncode == -signal.SIGINT and "KeyboardInterrupt" in said, said
    assert said.count("kprof: killed by signal 2 (Interrupt: Ctrl-C). ") == is_said, said
    report = subprocess.run([str(harness.KPROF), "report"], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
    assert "aten::linear" in report.stdout and "ended    by SIGINT" in report.stdout, report.stdout + report.stderr


DIES = """
import sys, traceback
def bad():
    raise KeyError("a planted key")
for _ in range(4): op(b"aten::linear")
try:
    bad()
except KeyError:
    sys.excepthook(*sys.exc_info())
    traceback.print_exc()
{}
"""


@pytest.mark.parametrize("end, said", [("bad()", ('KeyError "a planted key"', "bad", "    raise")),
                                       ("import json; json.loads('{')", ('JSONDecodeError "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"', "<module>", "import json;")),
                                       ("raise OSError(2, 'No\\tfile')", ('FileNotFoundError "No file"', "<module>", "raise OSError")), ("raise ValueError(7)", ("ValueError", "<module>", "raise ValueError")),
                                       ("raise ValueError('\\n' + 41 * 'é' + '\\nsecond')", (f'ValueError "{40 * "é"}..."', "<module>", "raise ValueError")),
                                       ("sys.exit(3)", None), ("pass", None)])
def test_an_exception_that_ends_a_program_is_told_first_with_its_line(mini, tmp_path, end, said):
    """One that the program caught and printed ended nothing. The innermost line of the program's own counts; of the text the first line, at most 80 bytes of it, without a call of __str__."""
    script = mini(DIES.format(end))
    environment = harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_DIR=str(tmp_path / "kprof"))
    alone = subprocess.run([harness.PYTHON, str(script)], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
    done = subprocess.run([harness.PYTHON, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == alone.returncode and alone.stderr in done.stderr, done.stderr
    trace, = (tmp_path / "kprof").glob("*.pt.trace.json.gz")
    line_of = lambda begin: 1 + next(i for i, line in enumerate(script.read_text().splitlines()) if line.startswith(begin))
    for command in ("report", "advise"):
        text = subprocess.run([str(harness.KPROF), command, str(trace)], env=harness.clean_environment(), capture_output=True, text=True).stdout
        line = text.splitlines()[command == "report"]
        words = said and f"ended    by {said[0]} at {script.name}:{line_of(said[2])} {said[1]}. "
        assert line.startswith(words) if said else "ended  " not in text, text


@pytest.mark.parametrize("raised, is_lost", [("RuntimeError('[/x/gloo/transport/tcp/pair.cc:5] Connection closed by peer [::1]:7')", True),
                                             ("type('DistStoreError', (RuntimeError,), {})('Timed out after 9 seconds')", True),
                                             ("RuntimeError('no gloo/ here')", False), ("RuntimeError()", False), ("RuntimeError(7)", False),
                                             ("ConnectionResetError('Connection reset by peer')", False)])
def test_an_exception_of_a_rank_that_was_gone_is_noted(mini, tmp_path, raised, is_lost):
    script = mini(f"for _ in range(4): op(b'aten::linear')\nraise {raised}\n")
    environment = harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_DIR=str(tmp_path / "kprof"))
    done = subprocess.run([harness.PYTHON, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    trace, = (tmp_path / "kprof").glob("*.pt.trace.json.gz")
    ours = json.loads(gzip.decompress(trace.read_bytes()))["kprof"]
    assert done.returncode == 1 and ours["exception"] and ours.get("lost_peer", False) == is_lost, (done.stderr, ours)


@pytest.mark.parametrize("number, word", [(signal.SIGTERM, "ended    by SIGTERM"), (signal.SIGKILL, "killed   by SIGKILL"), (signal.SIGSEGV, "ended    by SIGSEGV")])
def test_the_report_of_a_program_that_a_signal_ended_names_it(mini, tmp_path, number, word):
    """`kprof run` keeps in the spool how its child ended, where it stays for it. Where it becomes the program nobody knows it afterwards."""
    script = mini(f"""
import os
for _ in range(4): op(b"aten::linear")
if {int(number)} == 11:
    import ctypes; ctypes.string_at(0)
os.kill(os.getpid(), {int(number)})
""")
    for flags, said in ((("--advise",), word), ((), "ended    without an exit (killed, or by os._exit)")):
        if not flags and number != signal.SIGSEGV:
            continue  # the library sees that the program sends it to itself
        out = tmp_path / "-".join(("out", *flags))
        run = harness.cli("run", *flags, "-o", out, "--", harness.PYTHON, script)
        assert run.returncode == -number, run.stderr
        report = harness.cli("report", out)
        assert said in report.stdout, report.stdout + report.stderr


@pytest.mark.parametrize("flags, there", [(("-o", "x"), "x"), ((), "kprof"), (("-o", "elsewhere/x"), "elsewhere/x")])
def test_a_program_of_another_folder_writes_into_that_of_kprof_run(mini, tmp_path, flags, there):
    """The command of the closing line is for the user's shell, which is not where the program is."""
    script = mini("""for _ in range(4): op(b"aten::linear")
""")
    (tmp_path / "elsewhere").mkdir()
    for line, shown in ((f"cd elsewhere; {harness.PYTHON} {script}", tmp_path.resolve() / there), (f"{harness.PYTHON} {script}; true", there)):
        done = subprocess.run([str(harness.KPROF), "run", *flags, "--", "sh", "-c", line], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        command = re.search(r"next: (kprof report.*)", done.stderr)[1]
        assert command == ("kprof report" if shown == "kprof" else f"kprof report {shown}"), done.stderr
        report = subprocess.run([str(harness.KPROF), *command.split()[1:]], cwd=tmp_path, env=harness.clean_environment(), capture_output=True, text=True)
        assert report.returncode == 0 and "aten::linear" in report.stdout, report.stderr
    assert len(list((tmp_path / there).glob("*.pt.trace.json.gz"))) == 2 and not (tmp_path / "elsewhere" / "kprof").exists()


def test_a_running_programs_spool_is_read_and_stays(mini, tmp_path):
    script = mini("""
import signal
for _ in range(4): op(b"aten::linear")
print("ready", flush=True)
signal.pause()
""")
    env = {**harness.clean_environment(), "LD_PRELOAD": str(harness.LIBRARY), "KPROF_DIR": "kprof"}
    with subprocess.Popen([harness.PYTHON, str(script)], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout.readline() == "ready\n"
            for argv in ([], ["kprof"]):
                told = subprocess.run([str(harness.KPROF), "report", *argv], cwd=tmp_path, env=harness.clean_environment(), capture_output=True,
                                      text=True)
                assert told.returncode == 0 and "aten::linear" in told.stdout and "recovered" not in told.stderr, told.stderr
                assert told.stderr.count("its program still runs: ") == 1, told.stderr
            spool, = (tmp_path / "kprof").iterdir()
            assert f"{spool}: its program still runs: " in harness.cli("advise", spool).stderr
            mixed = tmp_path / "mixed"
            mixed.mkdir()
            (mixed / spool.name).hardlink_to(spool)
            (mixed / "vm_1.1.pt.trace.json").write_text('{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":9}]}')
            assert f"{mixed}: this is of its traces alone. 1 program still runs: name the file (*.kprof)" in harness.cli("report", mixed).stderr
            assert [path.suffix for path in (tmp_path / "kprof").iterdir()] == [".kprof"]
        finally:
            host.kill()


@pytest.mark.parametrize("bad", [
    {"KPROF_SCHEDULE": "wait=1,active=zwei", "KPROF_STEP": "range:(", "KPROF_RECORD_SHAPES": "maybe", "KPROF_MAX_MB": "-3", "KPROF_METADATA": "{not json",
     "KPROF_GZIP": "yes please", "KPROF_EXPORT": "everything", "KPROF_VERBOSE": "loud"},
    {"KPROF_SCHEDULE": "active=0", "KPROF_STEP": "time:never"}])
def test_bad_values_are_each_named_once_and_the_host_runs(mini, tmp_path, bad):
    run = harness.run_kprof(mini(LOOP.format(steps=3)), tmp_path / "out", schedule=None, **bad).ok()
    assert run.out == "done\n"
    for name, value in bad.items():
        naming = [line for line in run.said if name in line]
        assert len(naming) == 1 and value in naming[0], run.explain()
    assert len(told(run.said)) == len(bad) + 1 and run.closing[3] == 0, run.explain()


def test_a_folder_that_cannot_be_written_is_named_and_the_host_runs(mini, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    run = harness.run_kprof(mini(LOOP.format(steps=3)), blocked, schedule=None).ok()
    assert run.out == "done\n" and any(str(blocked) in line for line in run.said), run.explain()
    assert len(run.said) <= 3


def test_forked_children_stay_inert(ours):
    """ResNet-18 has two DataLoader workers: one file, one process in it, no mention of the workers."""
    run = ours("resnet18.py")
    trace = facts.load(run.trace)
    assert {e["pid"] for e in facts.spans(trace) if isinstance(e["pid"], int)} == {run.pid}
    left = sorted(path.name for path in run.folder.iterdir() if path.suffix != ".ends")
    assert not run.spools and left == [run.trace.name]


def test_an_executed_program_with_torch_is_a_program_of_its_own(program, mini, tmp_path):
    inner = mini(LOOP.format(steps=3), "inner.py")
    outer = program(f"import subprocess, sys, torch\ntorch.ones(2).sum()\n"
                    f"subprocess.run([sys.executable, {str(inner)!r}], check=True)\nsubprocess.run(['/bin/true'], check=True)\n")
    run = harness.run_kprof(outer, tmp_path / "out", schedule=None).ok()
    assert len(run.traces) == 2 and len({re.sub(r"\.\d+\.pt\.trace\.json\.gz$", "", path.name) for path in run.traces}) == 2


def test_a_variable_that_is_none_of_ours_is_named(mini, tmp_path):
    run = harness.run_kprof(mini(LOOP.format(steps=3)), tmp_path / "out", schedule=None, KPROF_RECORD_SHAPE=1).ok()
    assert sum("KPROF_RECORD_SHAPE" in line for line in run.said) == 1 and run.traces


def test_file_name_worker_and_compression(mini, tmp_path):
    script = mini(LOOP.format(steps=2))
    run = harness.run_kprof(script, tmp_path / "a", schedule=None).ok()
    host = os.uname().nodename
    assert re.fullmatch(rf"{re.escape(host)}_{run.pid}\.\d{{16,20}}\.pt\.trace\.json\.gz", run.trace.name)
    plain = harness.run_kprof(script, tmp_path / "b", schedule=None, KPROF_WORKER_NAME="worker7", KPROF_GZIP=0).ok()
    assert re.fullmatch(r"worker7\.\d{16,20}\.pt\.trace\.json", plain.trace.name)
    assert plain.trace.read_bytes()[:1] == b"{"


def test_metadata_is_escaped(mini, tmp_path):
    wanted = {"note": 'quoted "text" and \\ and \t tab', "number": 7, "list": [1, {"a": None}], "ünï": "日本\u0001"}
    script = mini(LOOP.format(steps=2))
    for gzip in (0, 1):
        run = harness.run_kprof(script, tmp_path / str(gzip), schedule=None, KPROF_METADATA=json.dumps(wanted, ensure_ascii=gzip == 1), KPROF_GZIP=gzip).ok()
        trace = facts.load(run.trace)
        assert {key: trace.get(key) for key in wanted} == wanted


def test_names_of_ranges_are_escaped(usual):
    seen = {e["name"] for e in facts.spans(facts.load(usual.trace)) if e.get("cat") == "user_annotation"}
    assert {'say "hi"', "back\\slash", "tab\there", "ünï"} <= seen or {'say "hi"', "back/slash"} <= seen, seen
    assert len(seen) == len(NAMES)


def test_kprof_step_by_ctypes_and_metadata_by_ctypes(program, tmp_path):
    """The C API called from Python: from its first call it is the only source of steps."""
    script = program(f"""
import ctypes, torch
kprof = ctypes.CDLL({str(harness.LIBRARY)!r})
m = torch.nn.Linear(2, 2)
o = torch.optim.SGD(m.parameters(), lr=0.1)
kprof.kprof_metadata(b"note", b'say "hi"')
kprof.kprof_metadata_json(b"numbers", b"[1, 2]")
for step in range(6):
    m(torch.ones(1, 2)).sum().backward()
    kprof.kprof_step()
    o.step()
""")
    run = harness.run_kprof(script, tmp_path / "out").ok()
    trace = facts.load(run.trace)
    assert [e["name"] for e in facts.steps(trace)] == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert trace["note"] == 'say "hi"' and trace["numbers"] == [1, 2]
    first = min((e for e in facts.host_events(trace)), key=facts.begin)
    assert first["name"] == "Optimizer.step#SGD.step"


def test_time_makes_steps_when_asked(mini, tmp_path):
    """Until the sixth step, however late the machine lets it come. A step may be late by nearly a period, and the next ones do not wait for it:
    three last two periods at least, and never do more steps come than there is time for."""
    script = mini("""
import time
steps = ctypes.CDLL(None).kprof_step_num
began = time.monotonic()
while steps() < 6 and time.monotonic() < began + 600:
    op(b"aten::sum"); time.sleep(0.005)
print(time.monotonic() - began, steps())
""")
    run = harness.run_kprof(script, tmp_path / "out", KPROF_STEP="time:500ms").ok()
    marks = facts.steps(facts.load(run.trace))
    assert [e["name"] for e in marks] == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert sum(e["dur"] for e in marks) > 0.9e6
    seconds, steps = run.out.split()
    assert int(steps) >= 6 and float(seconds) > 2.4


def test_the_launchers_variables_give_the_rank(mini, tmp_path):
    """What torchrun sets, without torch.distributed running."""
    script = mini(LOOP.format(steps=2))
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, RANK=5, WORLD_SIZE=8, LOCAL_RANK=1, MASTER_ADDR="127.0.0.1", KPROF_GZIP=0).ok()
    info = facts.load(run.trace)["distributedInfo"]
    assert info["rank"] == 5 and info["world_size"] == 8
    lines = run.trace.read_text().splitlines()
    found = [re.search(r'"rank":\s+(\d+)', line) for line in lines]
    assert [m.group(1) for m in found if m][0] == "5", "HTA finds ranks line by line, with a blank after the colon"


def test_torchrun_itself_leaves_no_trace_of_its_python_calls(mini, tmp_path):
    script = mini("op(b'aten::sum')\n")
    run = harness.run_kprof(None, tmp_path / "out", command=[harness.PYTHON, "-m", "torch.distributed.run", "--standalone", script], schedule=None, KPROF_WITH_STACK=1).ok()
    assert len(run.traces) == 1 and facts.load(run.traces[0])["kprof"]["script"] == os.path.basename(script), run.explain()
    assert len(told(run.said)) == 1, run.explain()


def test_torchrun_says_no_more_than_its_ranks_where_they_record_nothing(mini, tmp_path):
    """The rank says that the schedule was not met, and the launcher does not add that it ran no op itself."""
    for flags, lines in ((["--schedule", "100-105"], 1), (["--control", "--schedule", "none"], 0)):
        command = [harness.KPROF, "run", *flags, "-o", tmp_path / "out", "--", harness.PYTHON, "-m", "torch.distributed.run", "--standalone", mini(LOOP.format(steps=3))]
        run = harness.Run(command, tmp_path / "out", harness.clean_environment(), harness.LONG).ok()
        assert [line.startswith("kprof: no trace: saw ") for line in told(run.said)] == [True] * lines, run.explain()


def test_ranks_of_torchrun_write_a_file_each(program, tmp_path):
    script = program("""
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
def train():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
train()
# torch 2.15's gloo aborts ("terminate called") in a third of such programs when they end at once, alone too
dist.barrier(); time.sleep(2)
dist.destroy_process_group(); time.sleep(2)
""")
    command = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    run = harness.run_kprof(None, tmp_path / "out", command=command).ok()
    assert len(run.traces) == 2, run.explain()
    assert [("_r0_" in line, "; next: kprof report" in line) for line in sorted(run.said)] == [(True, True), (False, False)]
    ranks = [facts.load(path)["distributedInfo"] for path in run.traces]
    assert len({facts.load(path)["kprof"]["ppid"] for path in run.traces}) == 1, "torchrun started both"
    assert sorted(info["rank"] for info in ranks) == [0, 1] and {info["world_size"] for info in ranks} == {2}
    assert [re.search(r"_r(\d)_\d+\.\d+\.pt", path.name)[1] for path in run.traces] == [str(info["rank"]) for info in ranks]
    for path in run.traces:
        names = {e["name"] for e in facts.host_events(facts.load(path))}
        assert any("allreduce" in name or "all_reduce" in name for name in names), names


def test_kprof_run_sets_the_same_as_the_variables(tmp_path, ours):
    said = subprocess.run([str(harness.KPROF), "run", "--schedule", harness.SCHEDULE, "--record-shapes", "-o", str(tmp_path / "out"), "--",
                           harness.PYTHON, str(harness.SCRIPTS / "transformer.py")], capture_output=True, text=True, env=harness.clean_environment(), timeout=harness.LONG)
    assert said.returncode == 0, said.stderr
    traces = list((tmp_path / "out").glob("*.pt.trace.json.gz"))
    assert len(traces) == 1
    assert not facts.differences(facts.facts(facts.load(ours("transformer.py").trace)), facts.facts(facts.load(traces[0])))


def test_cpythons_own_test_of_json_passes_where_our_lines_go_elsewhere(tmp_path):
    """Its children's standard error must be empty, and each child that allocates has a closing line."""
    if subprocess.run([harness.PYTHON, "-c", "import test.test_json"], capture_output=True).returncode:
        pytest.skip("this Python comes without its own tests")
    command = [harness.PYTHON, "-m", "test", "test_json"]
    for where, of_these in (("stderr", ["-m", "*test_tool*"]), ("none", ["-m", "*test_tool*"]), (tmp_path / "lines.log", [])):  # test_tool has children
        folder = tmp_path / str(where).rsplit("/", 1)[-1].replace(".log", "")
        run = harness.run_kprof(None, folder, command=[*command, *of_these], KPROF_MALLOC="trace", KPROF_LOG=where, schedule=None)
        assert len(run.traces) > 10, run.explain()
        assert (run.code != 0) == (where == "stderr"), run.explain()
        assert ("kprof" in run.err + run.out) == (where == "stderr"), run.explain()
    lines = (tmp_path / "lines.log").read_text().splitlines()
    assert len(lines) == len(run.traces) == len({re.fullmatch(r"kprof\[(\d+)\]: wrote .*", line)[1] for line in lines}), lines


def test_kprof_run_log_is_one_file_wherever_the_processes_start(mini, tmp_path):
    script = mini("op(b'aten::ones')\nprint('done')\n")
    (tmp_path / "elsewhere").mkdir()
    said = subprocess.run([str(harness.KPROF), "run", "--log", "made/on the way.log", "-o", str(tmp_path / "out"), "--", "/bin/sh", "-c",
                           'cd elsewhere; "$0" "$1"; cd /; "$0" "$1"', harness.PYTHON, str(script)],
                          capture_output=True, text=True, env=harness.clean_environment(), timeout=harness.LONG, cwd=tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (0, "done\ndone\n", "")
    lines = told((tmp_path / "made" / "on the way.log").read_text().splitlines())
    assert len(lines) == 2 and all(" wrote " in line for line in lines) and len({line.split(":")[0] for line in lines}) == 2, lines


def test_an_op_that_raises_is_there(usual):
    assert sum(e["name"] == "aten::mm" for e in ops_of(usual.trace)) == 3


def test_the_exit_status_of_the_program_stays(program, mini, tmp_path):
    """With torch that of a status of its own (the program of `usual`), and of what ends without its destructors."""
    for code, text in ((1, "raise ValueError('x')"), (0, "import os; os._exit(0)"), (-6, "import os; os.abort()")):
        assert harness.run_kprof(mini(f"op(b'aten::ones'); {text}\n"), tmp_path / "out", schedule=None).code == code
    assert harness.run_kprof(program("import os, torch; torch.ones(1); os.abort()"), tmp_path / "out", schedule=None).code == -6


@pytest.fixture()
def small_disk(tmp_path):
    """A tmpfs of 4 MB; needs the right to mount."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here (needs root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_changes_nothing_for_the_program(mini, tmp_path, small_disk):
    script = mini(LOOP.format(steps=100000))
    plain = harness.run_plain(script, tmp_path, warm_start=True).ok()
    run = harness.run_kprof(script, small_disk / "out", schedule=None).ok()
    assert run.out == plain.out
    assert any(re.search(r"space|full|disk", line) for line in run.said), run.explain()
    assert len(run.said) <= 4


def test_what_was_dropped_at_the_cap_is_counted(mini, tmp_path):
    """A spool of 4 MB: kept + dropped = all ops that ran."""
    script = mini(LOOP.format(steps=100000))
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, shapes=False, KPROF_MAX_MB=4).ok()
    _, _, ops, dropped = run.closing
    few = harness.run_kprof(mini(LOOP.format(steps=100)), tmp_path / "few", schedule=None, shapes=False).ok().closing[2]
    more = harness.run_kprof(mini(LOOP.format(steps=200)), tmp_path / "more", schedule=None, shapes=False).ok().closing[2]
    a_step = (more - few) // 100
    assert dropped > 0 and ops > 10000
    assert re.search(rf"{dropped} dropped, \d+ of them over KPROF_MAX_MB: raise it, or set KPROF_SCHEDULE", run.err), run.explain()
    assert ops + dropped == few + a_step * (100000 - 100)


def test_doctor_runs_a_program_and_says_what_counted_its_steps(program, tmp_path):
    script = program(STEPS.format(steps=4) + "    print('step')\n")
    said = subprocess.run([harness.KPROF, "doctor", "--steps", harness.PYTHON, script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=harness.LONG, env=harness.clean_environment(TMPDIR=tmp_path))
    assert "ok    steps: saw 4 steps by optimizer: try KPROF_SCHEDULE=warmup=1,active=3\n" in said.stdout, said
    assert said.stdout.count("step\n") == 4 and not [name for name in os.listdir(tmp_path) if "kprof" in name], said
    assert "warn  steps: it ran no PyTorch op" in harness.cli("doctor", "--steps", "/bin/true").stdout
    assert harness.cli("doctor", "--steps").returncode == 2


def test_doctor_warns_of_more_threads_than_processors(tmp_path):
    cores = len(os.sched_getaffinity(0))
    for threads, is_said in ((str(cores + 14), True), (str(cores), False), ("many", False)):
        said = harness.cli("doctor", KPROF_DIR=tmp_path, OMP_NUM_THREADS=threads)
        found = said.stdout + said.stderr
        assert (f"threads: OMP_NUM_THREADS={threads}, and {cores} processor" in found) is is_said, found


def test_doctor_and_config_speak_json(tmp_path):
    here = {"KPROF_DIR": tmp_path / "a \"b\"", "KPROF_WITH_STACK": "ops", "KPROF_MAX_MB": "lots", "KPROF_SCHEDUEL": "1"}
    told, spoken = harness.cli("doctor", "--json", harness.PYTHON, **here), harness.cli("doctor", harness.PYTHON, **here)
    found = json.loads(told.stdout)
    free = lambda text: re.sub(r"\d+ MiB|(ok|warn) +processors: .*", "", text)  # noqa: E731
    assert [free(f"{c['level']:5} {c['about']}: {c['text']}") for c in found["checks"]] == [free(line) for line in spoken.stdout.splitlines()]
    busy = [c for c in found["checks"] if c["about"] == "processors" and re.search(r"load average (of )?\d+\.\d", c["text"])]
    assert len(busy) == 1 and busy[0]["text"].startswith(f"{len(os.sched_getaffinity(0))}"), found
    levels = [check["level"] for check in found["checks"]]
    assert (found["warnings"], found["fails"]) == (levels.count("warn"), levels.count("fail")) and found["warnings"] >= 2
    assert told.returncode == spoken.returncode == (1 if found["fails"] else 0)
    assert harness.cli("doctor", "--json", "--steps", "/bin/true").returncode == 2

    said = harness.cli("config", "--json", **here)
    config = json.loads(said.stdout)
    settings = {s["name"]: s for s in config["settings"]}
    assert said.returncode == 1 and len(config["problems"]) == 2 and said.stderr.splitlines() == [f"kprof: {line}" for line in config["problems"]]
    assert [s["name"] for s in config["settings"]] == [line.split()[0] for line in harness.cli("config").stdout.splitlines()[1:]]
    assert [(settings[name]["value"], settings[name]["source"]) for name in ("KPROF_DIR", "KPROF_WITH_STACK", "KPROF_MAX_MB", "KPROF_SCHEDULE")] == \
        [(str(here["KPROF_DIR"]), "environment"), ("ops", "environment"), ("4096", "refused"), (None, "default")]
    assert settings["KPROF_MAX_MB"]["flag"] == "--max-mb" and settings["KPROF_MAX_MB"]["default"] == "4096" and settings["KPROF_MAX_MB"]["what"]
    assert harness.cli("config", "--json", "more").returncode == 2


def test_doctor_names_the_cupti_that_torch_brings(tmp_path):
    for name, text in {"torch/__init__.py": "", "torch/version.py": "__version__ = '9.9'\ncuda = '13.2'\n", "nvidia/cu13/lib/libcupti.so.13": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    here = {"PYTHONPATH": tmp_path, "KPROF_DIR": tmp_path / "out"}
    said = harness.cli("doctor", harness.PYTHON, **here).stdout
    assert f"ok    CUPTI: {tmp_path}/nvidia/cu13/lib/libcupti.so.13\n" in said
    (tmp_path / "nvidia/cu13/lib/libcupti.so.13").unlink()
    said = harness.cli("doctor", harness.PYTHON, **here).stdout
    assert " CUPTI: " in said and f"{tmp_path}/nvidia" not in said
    (tmp_path / "torch/version.py").write_text("__version__ = '9.9'\ncuda = None\n")
    assert " CUPTI: " not in harness.cli("doctor", harness.PYTHON, **here).stdout


@pytest.mark.parametrize("version,refused", [(130000, 1), (130001, 0), (130100, 0), (130101, 0)])
def test_doctor_says_what_is_wrong_with_a_cupti(tmp_path, version, refused):
    simulated = harness.BUILD / "simgpu" / "libcupti.so.13"
    if not simulated.exists():
        pytest.skip(f"no {simulated}: make simgpu")
    for name, text in {"torch/__init__.py": "", "torch/version.py": "__version__ = '9.9'\ncuda = '13.0'\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "nvidia/cu13/lib").mkdir(parents=True)
    (tmp_path / "nvidia/cu13/lib/libcupti.so.13").symlink_to(simulated)
    said = harness.cli("doctor", harness.PYTHON, PYTHONPATH=tmp_path, KPROF_DIR=tmp_path / "out", SIMCUPTI_VERSION=version,
                       LD_LIBRARY_PATH=simulated.parent).stdout
    assert f"ok    CUPTI: it is CUPTI {version} (CUDA 13." in said
    assert said.count("warn  CUPTI: it may hang") == refused
    assert ("one window a process where CUDA graphs are used" in said) == (version == 130100)
    assert "(mended in 13.4 Update 1): read" in said
