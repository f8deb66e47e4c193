# SPDX-License-Identifier: Apache-2.0
"""docs/howto/README.md and the README's nine questions: every command of every row is run on a training that has what the rows ask for."""
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import harness

PAGES = ("docs/howto/README.md", "README.md")
TRAIN = """
import ctypes, os, sqlite3, sys, time
import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

kprof, steps = ctypes.CDLL(None), int(os.environ.get("TRAIN_STEPS", 34))
phase = kprof.kprof_phase if hasattr(kprof, "kprof_phase") else lambda name: None
ranks = int(os.environ.get("WORLD_SIZE", 1))
if ranks > 1:
    torch.distributed.init_process_group("gloo")

class Rows(Dataset):
    def __len__(self):
        return steps * 4

    def __getitem__(self, at):
        time.sleep(0.004)
        return torch.full((16,), at / 4)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x)

def answer(model, x):
    return model(x)

def validate(model, x):
    with record_function("validate"), torch.no_grad():
        return [answer(model, x).sum() for _ in range(4)]

model, kept, base = Net(), [], sqlite3.connect(":memory:")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = DataLoader(Rows(), batch_size=4, num_workers=1 if steps < 100 else 0)
phase(b"train")
for step, x in enumerate(data):
    loss = model(x).square().mean()
    loss.backward()
    if ranks > 1:
        torch.distributed.all_reduce(model.layers[0].weight.grad)
    optimizer.step()
    optimizer.zero_grad()
    kept.append((loss, bytes(5000)))
    base.execute("select 1").fetchall()
    if step % 10 == 9:
        phase(b"validate")
        validate(model, x)
        phase(b"train")
if ranks > 1:
    torch.distributed.destroy_process_group()
"""
HEAP = """
import ctypes
step, kept = ctypes.CDLL(None).kprof_step, []
def keep():
    kept.append([bytes(5000), [n * 1000 for n in range(200)]])
for _ in range(12):
    keep()
    step()
"""  # for rows about the heap: torch alone makes millions of blocks
ABOVE, RUNNING = "as above", re.compile("running job|hangs|goes on")


def rows_of(page):
    """[question, commands that record, commands that answer] of each row."""
    rows, recorded = [], []
    for cells in re.findall(r"^\| (.*?) \| (.*?) ?\| (.*) \|$", (harness.ROOT / page).read_text(), re.M):
        record, then = (re.findall(r"`([^`]*kprof [^`]*)`", cell) for cell in cells[1:])
        if not then:
            continue
        if cells[1] != ABOVE:
            recorded = [command.replace("-- ...", "-- python train.py") for command in record]
        rows.append((cells[0], tuple(recorded), then))
    return rows


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """Its bin comes first in PATH. torchrun is that of this Python."""
    room = tmp_path_factory.mktemp("room")
    (room / "bin").mkdir()
    for name, words in (("python", f'"{sys.executable}"'), ("kprof", f'"{harness.KPROF}"'), ("torchrun", f'"{sys.executable}" -m torch.distributed.run')):
        (room / "bin" / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (room / "bin" / name).chmod(0o755)
    return room


def environment(room, **more):
    return harness.clean_environment(PATH=f"{room}/bin:{os.environ['PATH']}", **more)


def shell(room, folder, command):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment(room), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.LONG)


def folder_of(room, recorded):
    """The folder of a recording: made once for all rows that ask for it."""
    folder = room / f"run{abs(hash(recorded))}"
    if not folder.exists():
        folder.mkdir()
        (folder / "train.py").write_text(HEAP if any("--malloc" in command for command in recorded) else TRAIN)
        for command in recorded:
            done = shell(room, folder, command)
            assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-2000:])
    return folder


def seen(room, folder):
    """`kprof view` on a terminal, left by q."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(["kprof", "view"], cwd=folder, env=environment(room, TERM="xterm", COLUMNS=100, LINES=30), stdin=theirs, stdout=theirs, stderr=theirs) as view:
        os.close(theirs)
        os.write(ours, b"q")
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # the terminal's other side is closed
            pass
        assert view.wait(harness.LONG) == 0, text
    os.close(ours)
    return text


def answered(room, folder, command):
    """Runs a command of the third column; it ends well and says or writes something. A recording that was just asked for may have nothing yet."""
    if command == "kprof view":
        assert seen(room, folder)
        return
    until = time.monotonic() + harness.LONG
    while "has recorded nothing yet" in (done := shell(room, folder, command)).stderr and time.monotonic() < until:
        time.sleep(0.3)
    assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-2000:])
    out = re.search(r" -o (\S+)", command)
    assert (folder / out[1]).stat().st_size if out else done.stdout, command


def gpu_folder(room):
    """A trace of a GPU, for the rows about kernels."""
    folder = room / "gpu"
    if not folder.exists():
        (folder / "kprof").mkdir(parents=True)
        shutil.copy(harness.ROOT / "test/data/gpu/h200_training/h200_training.pt.trace.json.gz", folder / "kprof")
    return folder


def while_it_runs(room, question, recorded, then):
    folder = room / f"job{len(list(room.glob('job*')))}"  # a short name: the path of a socket has at most 107 bytes
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (command,) = recorded
    log = open(folder / "log", "w+")
    job = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment(room, TRAIN_STEPS=100000), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           start_new_session=True)
    try:
        asked = "kprof ctl kprof status | grep step" if "--control" in command and "--ring" not in command else "kprof report kprof | grep 'by optimizer\\|steps'"
        until = time.monotonic() + harness.LONG
        while shell(room, folder, asked).returncode:
            assert job.poll() is None and time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.3)
        for one in then:
            if "killed" in question:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
            answered(room, folder, one)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        log.close()


@pytest.mark.parametrize("page", PAGES)
def test_each_command_of_the_questions_works(room, page):
    ran = 0
    for question, recorded, then in rows_of(page):
        if RUNNING.search(question) or "killed" in question:
            while_it_runs(room, question, recorded, then)
        else:
            folder = folder_of(room, recorded)
            for command in then:
                is_gpu = "kernel" in command or "GPU" in question
                answered(room, gpu_folder(room) if is_gpu else folder, command)
        ran += 1
    assert ran >= (45 if page.startswith("docs") else 9), ran


def test_the_two_commands_of_a_fresh_machine_stand_near_the_top_of_the_readme():
    """CI runs the second; pip's is that of test_wheel.py."""
    text = (harness.ROOT / "README.md").read_text()
    commands = [line.partition("#")[0].strip() for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]
    assert commands == ["./scripts/demo", "./scripts/test", "pip install ."]
    assert text[:text.index("./scripts/test")].count("\n") < 40 and text.count("\n") <= 150
    assert (harness.ROOT / ".ci/run").read_text().splitlines()[-1].removeprefix("exec ") == "scripts/test"


def test_the_demo_ends_with_an_answer_and_a_page(tmp_path):
    harness.needs("torchvision")
    done = subprocess.run([harness.ROOT / "scripts/demo", tmp_path], env=harness.clean_environment(KPROF_PYTHON=sys.executable), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=harness.LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = done.stdout.rpartition("== build/kprof advise")[2]
    assert "DataLoader has no workers" in answer and "resnet18.py:18" in answer, answer
    assert (tmp_path / "page.html").stat().st_size > 10000 and str(tmp_path / "page.html") in answer
