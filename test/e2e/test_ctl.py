# SPDX-License-Identifier: Apache-2.0
"""A training that runs is steered from outside: kprof ctl, the socket behind it, KPROF_SIGNAL."""
import contextlib
import errno
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import time

import facts
import harness
import pytest
import viewing
from minitorch import told

NOBODY = 65534


class Training:
    """scripts/until_told.py under libkprof, until end(): with torch, or around the torch of one file whose folder is given."""

    def __init__(self, folder, *double, **settings):
        self.folder = folder
        env = harness.clean_environment(**{"LD_PRELOAD": harness.LIBRARY, "KPROF_DIR": folder, "KPROF_SCHEDULE": "none", **settings})
        self.process = subprocess.Popen(harness.script_command("until_told.py", *double), env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, *words):
        return harness.cli("ctl", self.folder, *words)

    def status(self):
        return json.loads(self.ask("status", "--json").stdout)

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def wait_for(self, is_so):
        until = time.monotonic() + harness.LONG
        while not is_so(self.status()):
            assert time.monotonic() < until and self.process.poll() is None
            time.sleep(0.05)

    @property
    def socket(self):
        found, = self.folder.glob("*.sock")
        return found

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(harness.LONG)
        client.connect(str(self.socket))
        return client

    def end(self):
        _, self.err = self.process.communicate(timeout=harness.LONG)
        assert self.process.returncode == 0, self.err
        return sorted(self.folder.glob("*.pt.trace.json*"))


@pytest.fixture
def begun():
    all_of_them = []
    yield all_of_them
    for one in all_of_them:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def training(tmp_path, begun):
    def begin(**settings):
        begun.append(Training(tmp_path, **settings))
        return begun[-1]

    return begin


@pytest.fixture
def stepping(tmp_path, begun, torch_double):
    """As training(), without torch: ops and steps (kprof_step) come as ever, and the program starts in a twentieth of the time."""
    def begin(**settings):
        begun.append(Training(tmp_path, torch_double, **settings))
        return begun[-1]

    return begin


def steps_of(trace):
    return sum(e.get("name", "").startswith("ProfilerStep#") and e.get("cat") == "user_annotation" for e in facts.load(trace)["traceEvents"])


def test_three_steps_are_recorded_when_they_are_asked_for(training):
    run = training(KPROF_CONTROL=1)
    assert stat.S_IMODE(run.socket.stat().st_mode) == 0o600
    run.wait_for(lambda now: now["step"] > 0)  # "start --at-step 1" below is too late then
    before = run.status()
    assert before["ops"] == 0 and before["traces"] == 0 and before["steps_by"] == "optimizer", before
    assert 0 < before["cost_ms"] < run.status()["cost_ms"], before  # finer than a clock tick: the answer itself counts
    assert run.ask("metadata", "why", "slow since noon").returncode == 0
    assert run.ask("start", "--at-step", "1").returncode == 1  # it has begun
    begins = json.loads(run.ask("start", "--steps", "3", "--json").stdout)["begins"]
    assert begins > before["step"]
    run.wait_for(lambda now: now["traces"] == 1)
    trace, = run.end()
    assert steps_of(trace) == 3
    assert facts.load(trace)["why"] == "slow since noon"
    assert not list(run.folder.glob("*.sock"))


def test_its_schema_accepts_each_answer_and_refuses_other_members(stepping):
    run = stepping(KPROF_CONTROL=1)
    run.wait_for(lambda now: now["step"] > 0)
    words = ["status"], ["where"], ["start", "--at-step", "1"], ["start", "--steps", "3"], ["status"], ["metadata", "why", "slow"]
    said = [json.loads(run.ask(*request, "--json").stdout) for request in words]
    assert "threads" in said[1] and "error" in said[2] and "begins" in said[3] and said[5] == {"ok": True}, said
    schema = json.loads(harness.cli("ctl", "--json-schema").stdout)
    judged = viewing.judge(schema, [*said, *({**answer, "no such": 1} for answer in said)])
    assert not any(judged[:len(said)]) and all(judged[len(said):]), judged


def test_the_ring_is_kept_while_the_program_goes_on(stepping):
    run = stepping(KPROF_CONTROL=1, KPROF_SCHEDULE="", KPROF_RING="1h", KPROF_SIGNAL="USR2")
    run.wait_for(lambda now: now["ops"] > 0)
    assert run.ask("keep").stdout.endswith(": done\n")
    run.wait_for(lambda now: now["traces"] == 1)
    run.process.send_signal(signal.SIGUSR2)
    run.wait_for(lambda now: now["traces"] == 2)
    assert run.status()["window"] == "recording"
    traces = run.end()
    assert [[facts.load(t)["kprof"].get(key) for key in ("kept", "went_on")] for t in traces] == [[True, True], [True, True], [None, None]]
    counts = [sum(e.get("cat") == "cpu_op" for e in facts.load(t)["traceEvents"]) for t in traces]
    assert 0 < counts[0] < counts[1] < counts[2], counts
    said = harness.cli("report", traces[0]).stdout
    assert "ring     all that was recorded until then, kept when it was asked for; the program went on\n" in said, said
    assert "ring  " not in harness.cli("report", traces[2]).stdout


def test_without_a_ring_nothing_can_be_kept(stepping):
    run = stepping(KPROF_CONTROL=1)
    asked = run.ask("keep")
    assert asked.returncode == 1 and "there is no ring: KPROF_RING=30s makes one" in asked.stderr


def test_a_ring_without_traces_says_so(stepping):
    run = stepping(KPROF_CONTROL=1, KPROF_SCHEDULE="", KPROF_RING="1h", KPROF_EXPORT="none")
    run.wait_for(lambda now: now["ops"] > 0)
    asked = run.ask("keep")
    assert asked.returncode == 1 and "KPROF_EXPORT=none asks for no trace" in asked.stderr, asked.stderr


def test_a_window_ends_where_the_kernel_leaves_the_clock_of_the_processor(stepping):
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource") as source, open("/proc/cpuinfo") as processors:
        if source.read() != "tsc\n" or "nonstop_tsc" not in processors.read():
            pytest.skip("the kernel's clock is not the processor's here")
    run = stepping(KPROF_CONTROL=1, KPROF_SCHEDULE="active=1000000", KPROF_TEST_FAIL="clocksource:20")
    run.wait_for(lambda now: now["traces"] == 1)
    assert run.status()["window"] != "recording"
    trace, = run.end()
    assert facts.load(trace)["kprof"]["clock_left"] == "tsc" and steps_of(trace) > 0
    assert run.err.count("has left the processor's clock (tsc)") == 1 and "the window ends here" in run.err


def test_start_and_stop_make_a_trace_and_the_process_is_found_by_its_number(training):
    run = training(KPROF_CONTROL=1)
    number = run.process.pid
    assert harness.cli("ctl", number, "start").returncode == 0
    assert "already" in run.ask("start").stderr
    run.wait_for(lambda now: now["ops"] > 0)
    assert run.ask("toggle", "cpu", "off").returncode == 0
    run.status()  # ops that were under way have ended
    ops = run.status()["ops"]
    time.sleep(0.2)
    assert run.status()["ops"] == ops
    assert run.ask("toggle", "cpu", "on").returncode == 0
    run.wait_for(lambda now: now["ops"] > ops)
    assert harness.cli("ctl", number, "stop").returncode == 0
    assert harness.cli("ctl", number, "stop").returncode == 1
    assert len(run.end()) == 1
    gone = harness.cli("ctl", number, "status")
    assert gone.returncode == 1 and f"process {number} is gone" in gone.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_not_heard(stepping):
    run = stepping(KPROF_CONTROL=1)
    for folder in (run.folder, *run.folder.parents[:2]):  # pytest's own
        folder.chmod(folder.stat().st_mode | 0o055)
    run.socket.chmod(0o666)  # whoever loosens the mode lets nobody in
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'status\\n'); print(s.recv(100))"
    done = subprocess.run(["/usr/bin/python3", "-c", program, str(run.socket)], user=NOBODY, group=NOBODY, capture_output=True, text=True,
                          timeout=harness.LONG)
    assert "ok" not in done.stdout
    assert run.status()["ok"]
    run.end()
    assert "user 65534 was refused" in run.err


def test_a_killed_program_leaves_nothing_that_answers(stepping):
    run = stepping(KPROF_CONTROL=1, KPROF_SCHEDULE="active=100000")
    (run.folder / f"{run.socket.stem.rsplit('_', 1)[0]}_1.sock").touch()  # no socket, and process 1 runs
    run.wait_for(lambda now: now["ops"] > 0)
    run.process.kill()
    run.process.wait()
    gone = run.ask("status")
    assert gone.returncode == 1 and len(gone.stderr.splitlines()) == 1, gone
    assert harness.cli("recover", run.folder).returncode == 0
    assert len(list(run.folder.glob("*.sock"))) == 1 and len(list(run.folder.glob("*.pt.trace.json*"))) == 1


def test_a_folder_is_the_same_by_another_path(tmp_path, stepping):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    run = stepping(KPROF_CONTROL=1, KPROF_DIR=tmp_path / "link")
    for path in (tmp_path / "link", tmp_path / "out", tmp_path / "out/../link"):
        run.folder = path
        assert run.status()["ok"]
    assert run.ask("start", "--steps", "1").returncode == 0
    run.wait_for(lambda now: now["traces"] == 1)
    assert len(run.end()) == 1


@pytest.mark.parametrize("options, why", [("size=64k,nr_inodes=1", os.strerror(errno.ENOSPC)), ("ro", "Read-only file system")])
def test_where_no_socket_can_be_made_one_line_says_so(tmp_path, stepping, options, why):
    (tmp_path / "out").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path / "out"], capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here (needs root)")
    try:
        run = stepping(KPROF_CONTROL=1, KPROF_DIR=tmp_path / "out")
        assert run.end() == []
        assert [line for line in run.err.splitlines() if why in line and "no control socket" in line] == \
               told([line for line in run.err.splitlines() if line.startswith("kprof:")]), run.err
    finally:
        subprocess.run(["umount", "-l", tmp_path / "out"], check=True)


def test_slow_and_rude_clients_hold_up_nothing(stepping):
    run = stepping(KPROF_CONTROL=1)
    slow = [run.connect() for _ in range(12)]  # more than are served at a time
    for client in slow:
        client.sendall(b"sta")
    rude = run.connect()
    rude.sendall(b"status\n" * 500)
    long = run.connect()
    long.sendall(b"x" * 5000)
    before = run.status()  # once the slow ones are dropped
    with pytest.raises(ConnectionResetError):  # what it sent was not read to its end
        long.recv(100)
    time.sleep(0.2)
    assert run.status()["step"] > before["step"]
    for line in (b"fly\n", b"start steps=0\n", b"metadata \x1b[2J x\n", b"sta\0tus\n"):
        with run.connect() as client:
            client.sendall(line)
            assert b"error" in client.recv(1000), line
    assert run.end() == []


def test_a_thousand_requests_while_ops_run(stepping):
    run = stepping(KPROF_CONTROL=1)
    with run.connect() as client, client.makefile("r") as answers:
        for _ in range(1000):
            client.sendall(b"status\n")
            assert json.loads(answers.readline())["ok"]
    assert run.end() == []


def test_a_child_keeps_neither_the_socket_nor_the_run(stepping):
    run = stepping(KPROF_CONTROL=1)
    path = run.socket
    child = int(run.tell("fork"))
    try:
        until = time.monotonic() + 30  # the child may not have run yet
        while [fd for fd in descriptors(child) if fd.startswith("socket:")]:
            assert time.monotonic() < until, descriptors(child)
            time.sleep(0.01)
        run.end()
        assert not path.exists()
    finally:
        os.kill(child, signal.SIGKILL)


def descriptors(pid):
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            found.append(os.readlink(fd))
    return found


def test_a_signal_starts_and_stops_in_turns(stepping):
    run = stepping(KPROF_SIGNAL="USR2", KPROF_CONTROL=1)
    run.process.send_signal(signal.SIGUSR2)
    run.wait_for(lambda now: now["ops"] > 0)
    run.process.send_signal(signal.SIGUSR2)
    run.wait_for(lambda now: now["traces"] == 1)
    assert len(run.end()) == 1


def test_a_signal_that_the_program_handles_is_the_programs(training):
    run = training(KPROF_SIGNAL="USR2", KPROF_CONTROL=1)
    assert run.tell("handle") == "True"
    run.process.send_signal(signal.SIGUSR2)
    assert run.process.stdout.readline() == "handled\n"
    assert run.status()["ops"] == 0
    assert run.end() == []
    assert "handles signal" in run.err


def test_a_path_too_long_for_a_socket_is_said_in_one_line(tmp_path, stepping):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    run = stepping(KPROF_CONTROL=1, KPROF_DIR=folder)
    assert run.end() == []
    assert run.err.count("kprof: no control socket") == 1 and "107 bytes" in run.err
