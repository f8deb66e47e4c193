# SPDX-License-Identifier: Apache-2.0
"""kprof why of one program: each end has its sentence, right or without a cause, and none is called good that was not."""
import re
import subprocess
import time
from signal import Signals

import pytest

import harness

EARLY = "the program (process N) ended without an exit (killed, or by os._exit) after step 4"
GOOD = "the program ended by itself"
LEFT = "the program (process N) ended by _exit with status 5 at threading.py:N run (not the main thread) after step 4"
ABORTED = "the program (process N) ended by SIGABRT at threading.py:N run (not the main thread) after step 4"
THROWN = {"runtime": 'std::runtime_error "no space"', "index": 'c10::IndexError "index 7 is out of bounds"', "alloc": "std::bad_alloc", "number": "i",
          "both": "Both", "again": 'std::out_of_range "once more"', "joinable": "std::terminate()", "smash": "stack smashing"}
EXECS = ["execl", "execlp", "execle", "execv", "execvp", "execvpe", "fexecve", "execveat"]  # of C; "exec" is Python's
ENDS = {  # how it ends: without a parent that knows; where kprof run watches, the signal that it names
    "plain": (GOOD, None),
    "text": ("the program (process N) ended by exit status 1 at ends_alone.py:N <lambda> after step 4", None),
    "three": ("the program (process N) ended by exit status 3 at ends_alone.py:N <lambda> after step 4", None),
    "zero": (GOOD, None),
    "c": ("the program (process N) ended by exit status 4 after step 4", None),
    "_exit": (LEFT, None),
    "_Exit": ("the program (process N) ended by _exit with status 5 at ends_alone.py:N by_c after step 4", None),
    "exec": ("the program (process N) ended by exec of sh after step 4", None),
    "exec_refused": (GOOD, None),
    **{function: ("the program (process N) ended by exec of sh after step 4", None) for function in EXECS},
    **{function + "_refused": (GOOD, None) for function in EXECS},
    "thread": (GOOD, None),
    "raises_in_thread": (GOOD, None),
    "atexit": (GOOD, None),
    "child": (GOOD, None),
    "grandchild": (GOOD, None),
    "interrupt": ("the program (process N) ended by SIGINT after step 4", "SIGINT"),
    "term": ("the program (process N) ended by SIGTERM after step 4", "SIGTERM"),
    "handled": ("the program (process N) ended by exit status 143 at ends_alone.py:N <lambda> after step 4", None),
    "saved": (GOOD, None),
    "pipe": (EARLY, "SIGPIPE"),
    "quit": (EARLY, "SIGQUIT"),
    "alarm": (EARLY, "SIGALRM"),
    "usr1": (EARLY, "SIGUSR1"),
    "cpu": (EARLY, "SIGXCPU"),
    "abort": (ABORTED, "SIGABRT"),
    "abort_in_main": ("the program (process N) ended by SIGABRT at ends_alone.py:N aborts after step 4", "SIGABRT"),
    "assert": ("the program (process N) ended by SIGABRT of assert() in execs.c:N at ends_alone.py:N by_c after step 4", "SIGABRT"),
    "abort_by_name": (EARLY, "SIGABRT"),  # as dlsym finds it, so no call that can be seen
    "thrown": ("the program (process N) ended by SIGABRT of std::terminate() at ends_alone.py:N <lambda> after step 4", "SIGABRT"),
    **{f"throw_{how}": (f"the program (process N) ended by SIGABRT of {what} at ends_alone.py:N throws after step 4", "SIGABRT") for how, what in THROWN.items()},
    "throw_thread": ('the program (process N) ended by SIGABRT of std::runtime_error "in a thread" (not the main thread) after step 4', "SIGABRT"),
    "raised": ("the program (process N) ended by SIGFPE at ends_alone.py:N <lambda> after step 4", "SIGFPE"),
    "killed": ("the program (process N) was killed by SIGKILL at ends_alone.py:N <lambda> after step 4", "SIGKILL"),
    "kept": ("the program (process N) ended by exit status 9 at ends_alone.py:N <lambda> after step 4", None),
    "fault_told": ("the program (process N) ended by SIGSEGV at ends_alone.py:N <lambda> (in ctypes/__init__.py:N string_at) after step 4", "SIGSEGV"),
    "fault": (EARLY, "SIGSEGV"),
    "kill_at_exit": ("the program (process N) was killed by SIGKILL after step 6", "SIGKILL"),
}


@pytest.fixture(scope="module", autouse=True)
def execs(torch_double):
    """The functions of EXECS in C, and those of THROWN in C++, beside the torch of one file."""
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-o", torch_double / "libexecs.so", harness.SCRIPTS / "cpp" / "execs.c"], check=True)
    subprocess.run(["g++", "-O1", "-fPIC", "-shared", "-fstack-protector-all", "-pthread", "-o", torch_double / "libthrows.so",
                    harness.SCRIPTS / "cpp" / "throws.cpp"], check=True)


def why(tmp_path, torch_double, how, *flags, pause=0):
    """The first line, without the number of the process."""
    folder = tmp_path / "k"
    harness.cli("run", *flags, "-o", folder, "--", *harness.script_command("ends_alone.py", torch_double, how, str(pause)))
    said = harness.cli("why", folder)
    assert said.returncode == 0, said.stderr
    line = re.sub(r"(process |execs\.c:|__init__\.py:)\d+", r"\1N", said.stdout.splitlines()[0])
    return re.sub(r"((?:_exit with status 5|exit status \d+|SIG[A-Z]+|SIGABRT of [^:]+(?:::[^:]+)?|execs\.c:N) at \w+\.py:)\d+", r"\1N", line)


@pytest.mark.parametrize("how", ENDS)
def test_the_sentence_is_right_where_nobody_watches(how, tmp_path, torch_double):
    assert why(tmp_path, torch_double, how) == ENDS[how][0]


def test_a_killed_program_is_told_with_where_its_signal_is_known(tmp_path, torch_double):
    folder = tmp_path / "k"
    harness.cli("run", "-o", folder, "--", *harness.script_command("ends_alone.py", torch_double, "fault", "0"))
    hint, = harness.cli("why", folder).stdout.splitlines()[1:]
    assert hint.startswith("  only its parent knows ")


@pytest.mark.parametrize("how, is_told", [("abort_by_name", False), ("thrown", True), ("abort_in_main", True)])
def test_an_abort_without_a_cause_is_told_with_where_that_stands(how, is_told, tmp_path, torch_double):
    why(tmp_path, torch_double, how, "--json")
    hints = harness.cli("why", tmp_path / "k").stdout.splitlines()[1:]
    assert hints == ([] if is_told else ["  no call of abort() was seen: if the C library ended it, its standard error has the cause"])


@pytest.mark.parametrize("how", [how for how, (_, signal) in ENDS.items() if signal])
def test_a_signal_is_named_where_kprof_run_watches(how, tmp_path, torch_double):
    said, signal = why(tmp_path, torch_double, how, "--json"), ENDS[how][1]
    word = "was killed" if signal == "SIGKILL" else "ended"
    assert said.startswith((ENDS[how][0], f"the program (process N) {word} by {signal} after step ")), said
    assert f" {signal} " in said


CRASHES = {  # where a watched program crashes in machine code, or is sent a signal of a crash
    "fault": ("SIGSEGV", "ctypes/__init__.py:N string_at (not the main thread)"),
    "fault_in_main": ("SIGSEGV", "ends_alone.py:N <lambda> (in ctypes/__init__.py:N string_at)"),
    "fault_told": ("SIGSEGV", "ends_alone.py:N <lambda> (in ctypes/__init__.py:N string_at)"),
    "cut_file": ("SIGBUS", "ends_alone.py:N reads_a_cut_file"),
    "divide": ("SIGFPE", "ends_alone.py:N by_c"),
    "illegal": ("SIGILL", "ends_alone.py:N by_c"),
    "raised": ("SIGFPE", "ends_alone.py:N <lambda>"),
    "sent": ("SIGSEGV", "ends_alone.py:N <lambda>"),
}


@pytest.mark.parametrize("how, flags, pause", [*((how, ["--ring", "5s"], 0) for how in CRASHES), ("fault_in_main", ["--schedule", "none", "--hang", "5s"], 4)])
def test_a_crash_is_told_at_its_line_where_the_program_is_watched(how, flags, pause, tmp_path, torch_double):
    """It ends as alone, by the kernel's own signal."""
    name, place = CRASHES[how]
    done = harness.cli("run", *flags, "-o", tmp_path / "k", "--", *harness.script_command("ends_alone.py", torch_double, how, str(pause)))
    said = re.sub(r"(process |\.py:)\d+", r"\1N", harness.cli("why", tmp_path / "k").stdout.splitlines()[0])
    assert done.returncode == -Signals[name]
    assert said == f"the program (process N) ended by {name} at {place} after step 4"


def test_an_abort_is_told_at_its_line(tmp_path, torch_double):
    """The same line where its parent knows the signal alone, in text and in the trace."""
    why(tmp_path, torch_double, "abort_in_main", "--json")
    lines = (harness.SCRIPTS / "ends_alone.py").read_text().splitlines()
    place = f"by SIGABRT at ends_alone.py:{lines.index('    os.abort()') + 1} aborts"
    assert place in harness.cli("why", tmp_path / "k").stdout
    assert place in harness.cli("report", tmp_path / "k").stdout


SINCE = "some time after step 3, the last that was recorded"
WITHOUT = f"the program (process N) ended without an exit (killed, or by os._exit) {SINCE}"
PLANTED = 'the program (process N) ended by ValueError "a planted one"%s at ends_alone.py:LINE %s, after step 4'
CLOSED = 2.0  # seconds until a window behind has its trace, also on a busy machine
BEHIND = {  # the window was over: by what the program, or where kprof run watches its parent, wrote
    "plain": (GOOD, None),
    "three": ("the program (process N) ended by exit status 3 at ends_alone.py:N <lambda> after step 4", None),
    "raises": (PLANTED % ("", "raises"), None),
    "worker": (PLANTED % (" (its child process N was killed by SIGKILL: out of memory?)", "lost_a_worker"), None),
    "worker_fault": (PLANTED % (" (its child process N was ended by SIGSEGV)", "lost_a_worker"), None),
    "worker_asked": (PLANTED % ("", "lost_a_worker"), None),  # the program's own wish, as a pool that is closed
    "_exit": (LEFT, None),
    "abort": (ABORTED, "SIGABRT"),
    "fault": (WITHOUT, "SIGSEGV"),
    "exec": ("the program (process N) ended by exec of sh after step 4", None),
    "exec_refused": (GOOD, None),
    "execle": ("the program (process N) ended by exec of sh after step 4", None),
    "execle_refused": (GOOD, None),
    "kill_at_exit": ("the program (process N) was killed by SIGKILL after step 6", "SIGKILL"),
}


def told_at_its_line(how):
    lines = (harness.SCRIPTS / "ends_alone.py").read_text().splitlines()
    raised = 'raise ValueError("a planted one")' if how.startswith("worker") else "raise error"
    return BEHIND[how][0].replace("LINE", str(next(n for n, text in enumerate(lines, 1) if text.endswith(raised))))


@pytest.mark.parametrize("how", [how for how in BEHIND if how.startswith("worker")])
def test_a_worker_that_crashed_before_its_program_failed_is_named(how, tmp_path, torch_double):
    assert why(tmp_path, torch_double, how) == told_at_its_line(how)
    said = re.sub(r"process \d+", "process N", harness.cli("report", tmp_path / "k").stdout)
    assert told_at_its_line(how).removeprefix("the program (process N) ended ") in said


@pytest.mark.parametrize("schedule", ["3-3", "wait=2,warmup=1,active=1,repeat=1", "wait=2,warmup=1,active=1"])
@pytest.mark.parametrize("how", BEHIND)
def test_behind_a_window_the_end_is_told_and_its_step_is_not_the_window_s(how, schedule, tmp_path, torch_double):
    told = told_at_its_line(how)
    if how == "kill_at_exit" and schedule.endswith("active=1"):  # in the next window
        told = told.replace("after step 6", "in step 7")
    assert why(tmp_path, torch_double, how, "--schedule", schedule, pause=CLOSED) == told


@pytest.mark.parametrize("how", [how for how, (_, signal) in BEHIND.items() if signal])
def test_behind_a_window_a_signal_is_named_where_kprof_run_watches(how, tmp_path, torch_double):
    said = why(tmp_path, torch_double, how, "--json", "--schedule", "3-3", pause=CLOSED)
    since = SINCE if SINCE in BEHIND[how][0] else "after step 4"
    assert said == BEHIND[how][0] if how in ("abort", "kill_at_exit") else said == f"the program (process N) ended by {BEHIND[how][1]} {since}"


def test_behind_a_window_a_program_that_goes_on_still_runs(tmp_path, torch_double):
    command = ["run", "--schedule", "3-3", "-o", tmp_path / "k", "--", *harness.script_command("ends_alone.py", torch_double, "plain", "600")]
    program = subprocess.Popen([str(part) for part in (harness.KPROF, *command)], env=harness.clean_environment())
    try:
        until = time.monotonic() + harness.LONG
        while not list((tmp_path / "k").glob("*.ends")) and time.monotonic() < until:
            time.sleep(0.05)
        assert harness.cli("why", tmp_path / "k").stdout == f"the program (process {program.pid}) still runs\n"
    finally:
        program.kill()
        program.wait()
    assert WITHOUT.replace("N", str(program.pid), 1) == harness.cli("why", tmp_path / "k").stdout.splitlines()[0]


def test_the_end_of_an_earlier_process_of_that_number_is_not_told(tmp_path, torch_double):
    assert "exit status 3" in why(tmp_path, torch_double, "three", "--schedule", "3-3", pause=CLOSED)
    word, = (tmp_path / "k").glob("*.ends")
    pid, status, at_ns, rest = word.read_text().split(" ", 3)
    word.write_text(f"{pid} {status} {int(at_ns) - 86400 * 10**9} {rest}")
    assert "went on after its recording" in harness.cli("why", tmp_path / "k").stdout


@pytest.mark.parametrize("after, told", [("three", "ended by exit status 3 at ends_alone.py:N <lambda> after step 4"), ("fault", WITHOUT.split(") ", 1)[1]), ("child", "")])
def test_a_program_that_became_another_one_keeps_its_own_end(after, told, tmp_path, torch_double):
    said = why(tmp_path, torch_double, "itself", "--schedule", "3-3", pause=f"{CLOSED},{after}")
    first, second = sorted((tmp_path / "k").glob("*.json.gz"), key=lambda path: path.stat().st_mtime)
    assert said == (f"the program (process N) {told}" if told else GOOD)
    assert re.search(r"ended by exec of \S*python\S* after step 4$", harness.cli("why", first).stdout.splitlines()[0])
    assert len(list((tmp_path / "k").glob("*.ends"))) == 1 and second.exists()


@pytest.mark.parametrize("how", ["plain", "three", "_exit"])
def test_what_recorded_nothing_leaves_no_file(how, tmp_path, torch_double):
    harness.cli("run", "--schedule", "none", "-o", tmp_path / "k", "--", *harness.script_command("ends_alone.py", torch_double, how))
    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize("how", ["plain", "three", "raises", "_exit", "abort"])
def test_a_program_that_is_watched_for_a_hang_says_how_it_ended(how, tmp_path, torch_double):
    lines = (harness.SCRIPTS / "ends_alone.py").read_text().splitlines()
    line = str(next(n for n, text in enumerate(lines, 1) if text.endswith("raise error")))
    assert why(tmp_path, torch_double, how, "--schedule", "none", "--hang", "5s", pause=4) == BEHIND[how][0].replace("LINE", line)
    assert not list((tmp_path / "k").glob("*.json.gz"))


@pytest.mark.parametrize("more, is_read", [("", False), (',"exception":"ValueError"', True), (',"went_on":true', True)])
def test_the_events_of_a_program_that_ended_by_itself_are_not_read(more, is_read, tmp_path):
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":%d,"dur":1}'
    head = '{"schemaVersion":1,"kprof":{"version":"0.1.0","complete":true' + more + '},"traceEvents":[\n'
    trace = tmp_path / "a.pt.trace.json"
    trace.write_text(head + ",\n".join(event % n for n in range(200_000)) + ",\n}{")  # so reading all of it fails
    said = harness.cli("why", trace)
    assert (said.returncode, said.stdout) == ((1, "") if is_read else (0, f"{GOOD}\n")), said.stderr
    assert harness.cli("report", trace).returncode == 1


# ---- a launcher ----

@pytest.mark.parametrize("status, told", [(9, "killed   by SIGKILL after "), (11, "ended    by SIGSEGV after "), (None, "ended    without an exit (killed")])
def test_a_report_names_what_a_launcher_wrote(status, told, tmp_path):
    step = '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":7,"tid":7,"ts":%d,"dur":1000}'
    op = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":%d,"dur":900}'
    events = ",\n".join(text for n in range(4) for text in (step % (n, 1000 * n), op % (1000 * n)))
    head = '{"schemaVersion":1,"host_name":"h","kprof":{"version":"0.1.0","complete":false},"traceEvents":[\n'
    (tmp_path / "h_7.1.pt.trace.json").write_text(head + events + "]}")
    if status:
        (tmp_path / "h_6.ends").write_text(f"7 {status} {10**18}\n")
    for command in ("report", "advise"):
        assert told in harness.cli(command, tmp_path).stdout, command


LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
{}
"""
WAITS = {"waitpid": "os.waitpid(-1, 0)", "wait": "os.wait()", "wait3": "os.wait3(0)", "wait4": "os.wait4(child.pid, 0)",
         "waitid": "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT); os.waitid(os.P_PID, child.pid, os.WEXITED)"}


@pytest.mark.parametrize("how", WAITS)
@pytest.mark.parametrize("end, told", [("fault", "by SIGSEGV"), ("three", "by exit status 3")])
def test_what_a_launcher_is_told_by_each_call_is_told(how, end, told, mini, tmp_path, torch_double):
    child = [str(part) for part in harness.script_command("ends_alone.py", torch_double, end, str(CLOSED))]
    harness.run_kprof(mini(LAUNCHER.format(WAITS[how])), tmp_path / "k", *child, schedule="3-3").ok()
    words = "".join(path.read_text() for path in (tmp_path / "k").glob("*.ends"))
    assert re.search(rf"^\d+ {'11|139' if end == 'fault' else 768} \d+$", words, re.M), words
    assert f"ended {told} " in harness.cli("why", tmp_path / "k").stdout
