# SPDX-License-Identifier: Apache-2.0
"""kprof run on a terminal, or with --advise: the findings of the newest trace are said when the program has ended, and it ends as the program did."""
import os
import pty
import re
import shlex
import signal
import subprocess
import time

import pytest

import advicetraces
import harness
from test_agreement import with_workers

PINNED = "copies from memory that is not pinned"


@pytest.fixture
def ran(tmp_path):
    """ran(script, name): kprof run --advise of a shell script, which may copy a sick trace ($sick) into the folder ($to)."""
    def run(script, **env):
        sick = advicetraces.SICKNESSES["pageable-copies"]().write(tmp_path / "sick.pt.trace.json")
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        script = f"sick={shlex.quote(str(sick))}; to={shlex.quote(str(out))}/one.1.pt.trace.json; {script}"
        return harness.cli("run", "--advise", "-o", out, "--", "sh", "-c", script, **env)
    return run


def test_findings_are_said_and_the_exit_status_stays(ran):
    done = ran("cp $sick $to; exit 7")
    assert (done.returncode, done.stdout) == (7, "")
    said = [line for line in done.stderr.splitlines() if line.startswith("kprof: ")]
    assert len(said) == 1 and PINNED in said[0] and "0.2 ms per step, 20 %" in said[0] and "pin_memory" in said[0]


@pytest.mark.parametrize("names, said", [(1, "Make an item cheaper, first at data.py:7 __getitem__"), (3000, "The workers' own traces say whether more workers or cheaper items help: kprof advise")])
def test_traces_of_workers_are_read_where_that_is_quick(names, said, tmp_path):
    """Of one trace alone "more workers" would be said, which the workers' own traces deny. Large ones take seconds."""
    trace = with_workers(tmp_path / "a.pt.trace.json", names, level=0)
    done = harness.cli("run", "--advise", "-o", tmp_path / "out", "--", "cp", "-r", f"{trace.parent}/.", tmp_path / "out")
    assert said in done.stderr and "Give the DataLoader more workers" not in done.stderr, done.stderr
    assert ("of workers or children" in done.stderr) == (names > 1), done.stderr


def test_traces_that_were_not_read_are_counted(ran):
    """Of workers and children of the program, too, which lie in a folder of their own."""
    done = ran("cp $sick $to; cp $sick ${to%one*}two.2.pt.trace.json")
    assert "kprof: 1 more trace is not read for this. Next: kprof advise " in done.stderr and "/out\n" in done.stderr, done.stderr
    time.sleep(0.05)
    done = ran("cp $sick $to; mkdir ${to%one*}children; for i in 3 4; do cp $sick ${to%one*}children/w.$i.pt.trace.json; done")
    assert "kprof: 2 more traces are not read for this, of workers or children. Next: kprof advise " in done.stderr and "/out\n" in done.stderr, done.stderr
    time.sleep(0.05)
    assert "more trace" not in ran("cp $sick $to").stderr


def test_a_trace_of_before_is_not_told(ran):
    ran("cp $sick $to")
    time.sleep(0.05)  # files' times are of a clock of some milliseconds
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


@pytest.fixture
def watched(tmp_path):
    """watched(script, *flags): exit status, and what a terminal shows, of kprof run in its foreground. $sick and $well are traces, $kprof
    is its pid. Keys are typed once the program says "ready"."""
    def run(script, *flags, typed=b"", **env):
        sick = advicetraces.SICKNESSES["pageable-copies"]().write(tmp_path / "sick.pt.trace.json")
        well = advicetraces.TWINS["pageable-copies"]().write(tmp_path / "well.pt.trace.json")
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        pid, screen = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it
            script = f"sick={sick}; well={well}; kprof={os.getpid()}; to={out}/one.1.pt.trace.json; {script}"
            os.chdir(tmp_path)  # for a log
            os.execve(harness.KPROF, ["kprof", "run", *flags, "-o", str(out), "--", "sh", "-c", script], harness.clean_environment(COLUMNS="1000", **env))
        said = b""
        try:
            while part := os.read(screen, 4096):
                said += part
                if typed and b"ready" in said:
                    os.write(screen, typed)
                    typed = b""
        except OSError:  # the terminal's last process is gone
            pass
        os.close(screen)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode().replace("\r", "")
    return run


def test_on_a_terminal_findings_are_said_unasked(watched):
    status, said = watched("cp $sick $to; echo done; exit 7")
    done, finding = said.splitlines()
    assert (status, done) == (7, "done") and PINNED in finding and "pin_memory" in finding


@pytest.mark.parametrize("script, flags, env", [("cp $well $to", (), {}), ("cp $sick $to", ("--no-advise",), {}),
                                                ("cp $sick $to", (), {"KPROF_LOG": "none"}), ("cp $sick $to", ("--log", "kprof.log"), {}),
                                                ("echo '{' > $to", (), {}), ("trap '' INT; cp $sick $to; kill -TERM $$", ("--no-advise",), {}),
                                                ("true", (), {})])
def test_on_a_terminal_nothing_is_said(watched, script, flags, env):
    """Of a healthy run, where it is switched off, of a file that is no trace, and where there is none."""
    assert watched(script, *flags, **env) == (-signal.SIGTERM if "TERM" in script else 0, "")


def test_where_nobody_watches_kprof_becomes_the_program(watched):
    told, is_kprof = "ps -o comm= -p $PPID", lambda said: said.split()[-1].startswith("kprof")
    assert is_kprof(watched(told)[1]) and not is_kprof(watched(told, "--no-advise")[1])
    assert not is_kprof(watched(told + " 2>/dev/null", "--log", "none")[1])


def test_a_signal_to_kprof_ends_the_program_on_a_terminal_too(watched):
    status, said = watched("trap 'cp $sick $to; exit 9' TERM; kill -TERM $kprof; while :; do sleep 0.05; done")
    assert status == 9 and PINNED in said


def test_ctrl_c_reaches_the_program_once(watched):
    """A terminal sends it to both."""
    script = "trap 'echo heard; cp $sick $to; exit 3' INT; echo ready; while :; do sleep 0.05; done"
    status, said = watched(script, typed=b"\x03")
    assert status == 3 and said.count("heard") == 1 and PINNED in said


@pytest.mark.parametrize("number, name", [(9, "Killed"), (2, "Interrupt: Ctrl-C")])
def test_a_signal_that_ends_the_program_is_told_with_what_is_kept(tmp_path, number, name):
    code = f"import os, signal, torch; torch.ones(2).sum(); signal.signal({number}, signal.SIG_DFL) if {number} != 9 else 0; os.kill(os.getpid(), {number})"
    done = harness.cli("run", "--advise", "-o", tmp_path / "out", "--", harness.PYTHON, "-c", code)
    assert done.returncode == -number
    said = re.sub("; the kernel killed [^.]*", "", done.stderr)  # of another program on this machine
    assert f"kprof: killed by signal {number} ({name}). The recording until then is kept. Next: kprof report {tmp_path / 'out'}" in said
    assert "aten::sum" in harness.cli("report", tmp_path / "out").stdout


@pytest.mark.parametrize("how, left", [("killed", "killed by signal 9 (Killed)"), ("fault", "killed by signal 11 (Segmentation fault)"), ("_exit", "ended without an exit")])
def test_what_a_killed_program_recorded_is_judged_where_advice_was_asked_for(how, left, tmp_path, torch_double):
    """It had run 5 steps. Its spool becomes a trace, in the folder of spools where that is another one."""
    spools = tmp_path / "spools"
    for flags, folder in ([], tmp_path / "k"), (["--spool-dir", spools], spools):
        done = harness.cli("run", "--advise", *flags, "-o", tmp_path / "k", "--", *harness.script_command("ends_alone.py", torch_double, how, "0"))
        trace, = folder.glob("*.pt.trace.json.gz")
        assert f"kprof: {left}" in done.stderr and "recovered 1 trace\nkprof: no operator runs" in done.stderr, done.stderr
        assert not list(folder.glob("*.kprof")), done.stderr
        trace.unlink()


def test_who_did_not_ask_waits_a_second_at_most(watched, tmp_path):
    """Of a trace that takes longer to judge the line names the command. Asked for, it is judged however long that takes."""
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":%d,"dur":3,"args":{"External id":%d}},\n'
    block = b"".join(event % (7 * i, i) for i in range(20000))
    with (tmp_path / "big").open("wb") as big:
        big.write(b'{"traceEvents":[\n')
        for _ in range(100):  # two million events
            big.write(block)
        big.write(b"{}]}")
    began = time.monotonic()
    status, said = watched("mv big $to; touch $to; exit 3")
    took = time.monotonic() - began
    assert (status, said) == (3, f"kprof: what is slow: kprof advise {tmp_path / 'out'}\n")
    assert took < 30  # the second, and a machine that is busy
    began = time.monotonic()
    assert harness.cli("advise", tmp_path / "out").returncode == 0
    assert time.monotonic() - began > 1.0  # so the second was what ended it


@pytest.mark.parametrize("flags, end, is_said", [(["--advise"], "os._exit(3)", True), (["--json"], "os._exit(3)", False),
                                                 (["--advise", "--export", "none"], "os._exit(3)", False), (["--advise", "--export", "none"], "exit(3)", False),
                                                 (["--advise"], "exit(3)", False), (["--advise"], "os.fork() or os._exit(0); exit(3)", False)])
def test_a_program_that_ends_without_an_exit_has_a_closing_line(tmp_path, flags, end, is_said):
    """The spool of a child that ended so says nothing where the program wrote its trace."""
    done = harness.cli("run", *flags, "-o", tmp_path / "out", "--", harness.PYTHON, "-c", f"import os, torch; torch.ones(2).sum(); {end}")
    said = f"kprof: ended without an exit (killed, or by os._exit), so no trace was written. The recording until then is kept. Next: kprof report {tmp_path / 'out'}"
    assert done.returncode == 3 and done.stderr.count("ended without an exit") == is_said == (said in done.stderr), done.stderr
