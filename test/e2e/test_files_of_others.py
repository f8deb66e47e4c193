# SPDX-License-Identifier: Apache-2.0
"""The command over files that somebody else made, or changes meanwhile: nothing is told to him, nothing of others is lost, nothing hangs."""
import ctypes
import os
import pathlib
import signal
import stat
import struct
import subprocess
import time

import pytest

import facts
import harness
import spoolwriter

VICTIM, OTHER = 52001, 52002
SECONDS = 60  # what waits for ever is seen as such
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who becomes two users")


def spool(path, owner=None, mode=0o600, chunks=0, text=""):
    """One window with an op, or with two thousand in each of so many chunks."""
    made = spoolwriter.Spool(4242, text, 1000)
    made.clock(1000)
    made.cycle(1, 1000, 10**9)
    made.op(7, b"aten::mul", 2000, 5)
    body = b"".join(struct.pack("<BBHIQQIB3x", spoolwriter.OP, 0, 32, made.name(b"aten::add"), 3000 + 10 * k, 5, 1, 0) for k in range(2040))
    for _ in range(chunks):
        made.chunk(spoolwriter.DATA, 1, 7, 7, b"python").extend(body)
    made.save(path)
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner, owner)
    return path


def folder_of(path, owner, mode=0o755):
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, owner)
    return path


def mode_of(path):
    return stat.S_IMODE(path.lstat().st_mode), path.lstat().st_uid


@root
def test_recover_by_root_in_a_users_folder_tells_him_nothing(tmp_path):
    secret = folder_of(tmp_path / "victim", VICTIM, 0o700)
    spool(secret / "a.kprof", VICTIM)
    mine = folder_of(tmp_path / "other", OTHER)
    (mine / "x.kprof").symlink_to(secret / "a.kprof")
    (mine / "children").symlink_to(secret)
    os.link(secret / "a.kprof", mine / "y.kprof")
    done = harness.cli("recover", mine, timeout=SECONDS)
    assert done.returncode == 0 and done.stdout.count("left alone") == 3, done.stdout + done.stderr
    assert sorted(path.name for path in mine.iterdir()) == ["children", "x.kprof", "y.kprof"]
    assert [path.name for path in secret.iterdir()] == ["a.kprof"]


@root
def test_what_is_made_of_a_users_spool_is_his_and_as_secret(tmp_path):
    home = folder_of(tmp_path / "home", VICTIM)
    spool(home / "a.kprof", VICTIM, text="KPROF_EXPORT=trace,table\n")
    workers = folder_of(home / "children", VICTIM)
    spool(workers / "b.kprof", VICTIM)
    done = harness.cli("recover", home, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    made = [path for path in home.rglob("*") if path.is_file()]
    assert sorted("".join(path.suffixes[-2:]) for path in made) == [".json.gz", ".json.gz", ".table.txt"]
    assert {mode_of(path) for path in made} == {(0o600, VICTIM)}


def test_two_at_once_write_each_window_once(tmp_path):
    for number in range(12):
        spool(tmp_path / f"s{number}.kprof", chunks=8)
    at_once = [subprocess.Popen([harness.KPROF, "recover", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=harness.clean_environment()) for _ in range(3)]
    said = [process.communicate(timeout=SECONDS)[0] for process in at_once]
    assert [process.returncode for process in at_once] == [0, 0, 0], said
    assert len(list(tmp_path.glob("*.pt.trace.json.gz"))) == 12 and not list(tmp_path.glob("*.kprof")), said


@pytest.mark.parametrize("command", ["report", "events", "stacks", "memory"])
def test_a_pipe_in_a_folder_is_not_waited_for(command, tmp_path):
    assert harness.cli("export", spool(tmp_path / "s.kprof"), timeout=SECONDS).returncode == 0
    os.mkfifo(tmp_path / "x.pt.trace.json")
    done = harness.cli(command, tmp_path, timeout=SECONDS)
    assert f"{tmp_path}/x.pt.trace.json: is no file, skipped" in done.stderr
    if command in ("report", "events"):
        assert done.returncode == 0 and "aten::mul" in done.stdout


def opens_of(path):
    """A descriptor that can be read once somebody opens the file."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(watch, os.fsencode(path), 0x20)  # IN_OPEN
    return watch


@root
@pytest.mark.parametrize("command", ["export", "report", "recover"])
def test_a_user_who_cuts_his_spool_off_ends_no_command(command, tmp_path):
    """At another moment each time: a file that is mapped and cut off is a SIGBUS."""
    whole = spool(tmp_path / "whole", chunks=40).read_bytes()
    for number in range(8):
        path = tmp_path / f"{number}.kprof"
        path.write_bytes(whole)
        os.chown(path, VICTIM, VICTIM)
        watch = opens_of(path)
        with subprocess.Popen([harness.KPROF, command, path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=harness.clean_environment()) as process:
            os.read(watch, 4096)
            time.sleep(number / 500)
            os.truncate(path, 0)
            said = process.communicate(timeout=SECONDS)[1]
        os.close(watch)
        assert process.returncode in (0, 1) and "signal" not in said, (number, process.returncode, said)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGXCPU])
def test_a_spool_that_ends_its_reader_ends_it_for_no_other(number, tmp_path):
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        pytest.skip("this kernel does not list the children of a process")
    spool(tmp_path / "a.kprof", chunks=600)
    spool(tmp_path / "b.kprof")
    with subprocess.Popen([harness.KPROF, "recover", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=harness.clean_environment()) as process:
        limit = time.monotonic() + SECONDS
        while not list(tmp_path.glob(".*.part")):
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.001)
        (reader,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(reader), number)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, out + err
    assert f"{tmp_path}/a.kprof: reading it " in err and "it stays where it is" in err
    assert ("processor time" if number == signal.SIGXCPU else f"signal {int(number)} ") in err
    assert [path.name for path in tmp_path.glob("*.kprof")] == ["a.kprof"] and not list(tmp_path.glob(".*"))
    (trace,) = tmp_path.glob("*.pt.trace.json.gz")
    assert "aten::mul" in {event["name"] for event in facts.spans(facts.load(trace))}
