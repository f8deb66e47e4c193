# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/tutorials: each line behind a `$` is typed, in order, in one folder, and says what the page shows."""
import os
import re
import shutil
import subprocess
import sys

import pytest

import harness


VERDICTS = {"faster", "us", "ms"}  # on a busy machine a change may be within noise; a time chooses its unit


def lines_of(page):
    """[command, [lines shown below it]] of a page."""
    found, text = [], (harness.ROOT / page).read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S) or [text]
    for line in re.findall(r"^(.*)" if "```console" in text else r"^    (.*)", "".join(blocks), re.M):
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip() not in ("", "..."):
            found[-1][1].append(line.strip().removesuffix("..."))
    return found


def words(text):
    """Words without numbers, which differ from run to run, and without the marks around them."""
    return [word.strip("(),:;") for word in re.split(r"[\s;]+", text) if not re.search(r"\d", word) and re.search(r"[A-Za-z]", word)]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    harness.needs("torchvision")
    room = tmp_path_factory.mktemp("room")
    shutil.copytree(harness.ROOT / "examples", room / "examples")
    (room / "train.py").write_text(TRAIN)
    (room / "bin").mkdir()
    (room / "bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (room / "bin/kprof").write_text(f'#!/bin/sh\nexec "{harness.KPROF}" "$@"\n')
    for path in (room / "bin").iterdir():
        path.chmod(0o755)
    return room


@pytest.mark.parametrize("page", ("README.md", "docs/tutorials/torch-profiler-recipe.md", "docs/tutorials/slow-job.md"))
def test_each_line_of_the_tutorial_works_and_says_what_the_page_shows(room, page):
    assert len(lines_of(page)) >= 8
    env = harness.clean_environment(PATH=f"{room}/bin:{os.environ['PATH']}")
    for command, shown in lines_of(page):
        done = subprocess.run(["bash", "-c", command], cwd=room, env=env, capture_output=True, text=True, timeout=harness.LONG)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said = [set(words(line)) for line in (done.stdout + done.stderr).splitlines()]
        is_busy = any(line & {"cores", "core", "certain", "beyond"} for line in said)
        for line in shown:
            if is_busy and line.startswith(("verdict ", "line ", "change ", "CRITICAL ", "step ")):  # a busy machine hides what it would name
                line = "" if line.startswith("line ") else line.split()[0]
            wanted = set(words(line)) - VERDICTS
            assert any(wanted <= one for one in said), (command, line, done.stdout, done.stderr)
    for made in re.findall(r" -o (\S+)", " ".join(command for command, _ in lines_of(page))):
        assert (room / made).stat().st_size > 100, made


def flags_of(command):
    text = subprocess.run([harness.KPROF, "help", command], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", text.replace("--[no-]", "--").replace(",", " ")))


@pytest.mark.parametrize("page", ("howto/from-other-profilers.md", "howto/launchers.md", "tutorials/torch-profiler-recipe.md", "tutorials/slow-job.md"))
def test_each_flag_that_a_page_names_is_one_of_the_command(page):
    text = (harness.ROOT / "docs" / page).read_text().replace("\n", " ")
    commands = re.findall(r"(?:`|\$ | )kprof ([a-z]+)((?: [^`$|]*?)?)(?=`| -- |\$| \||    |; )", text)
    assert len(commands) >= 8
    for command, more in commands:
        if command in ("run", "report", "advise", "html", "stacks", "memory", "events", "export", "ctl", "diff"):
            own = re.sub(r"'[^']*'", "", more).partition(" -- ")[0]
            assert set(re.findall(r"(?<=\s)(--?[a-z][a-z-]*)", own)) <= flags_of(command), (command, more)


def test_each_flag_in_the_right_column_of_coming_from_is_one_of_kprof():
    rows = re.findall(r"^\| [^|]* \| ([^|]*) \|$", (harness.ROOT / "docs/howto/from-other-profilers.md").read_text(), re.M)
    flags = set(re.findall(r"`(--[a-z-]+)", " ".join(rows)))
    known = set().union(*(flags_of(command) for command in ("run", "ctl", "report", "diff")))
    assert len(flags) >= 8 and flags <= known, flags - known



TRAIN = """import torch
model, kept = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    loss = model(torch.randn(256, 64)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(bytes(5000))
"""


def commands_of_coming_from():
    """Code in the right column, in order, by heading; a flag alone is one of kprof run."""
    for part in re.split(r"^## ", (harness.ROOT / "docs/howto/from-other-profilers.md").read_text(), flags=re.M)[1:]:
        for row in re.findall(r"^\| [^|]* \| ([^|]*) \|$", part, re.M):
            for code in re.findall(r"`([^`]+)`", row):
                if code.startswith("kprof "):
                    yield part.splitlines()[0], code.replace("-- ...", "-- python train.py")
                elif code.startswith("--") and code.split()[0] in flags_of("run"):
                    yield part.splitlines()[0], f"kprof run {code}{' active=2' if code == '--schedule' else ''} -- python train.py"


def test_each_command_of_coming_from_works(room):
    """What is read was recorded with all that the page names: in memray's part the heap, for kernels on a GPU. Programs end at once."""
    env = harness.clean_environment(PATH=f"{room}/bin:{os.environ['PATH']}", KPROF_LOG="none")
    (room / "train.py").write_text(TRAIN)
    for folder, flags in (("tensors", "--profile-memory --with-stack ops"), ("heap", "--malloc trace --with-stack ops")):
        shell = ["bash", "-c", f"kprof run {flags} -o {folder}/kprof -- python train.py"]
        assert subprocess.run(shell, cwd=room, env=env, timeout=harness.LONG).returncode == 0
        for name in "AB":
            (room / folder / name).symlink_to("kprof")
        (room / folder / "bin").mkdir()
        (room / folder / "bin/python").write_text("#!/bin/sh\n[ $# = 1 ]\n")
        (room / folder / "bin/python").chmod(0o755)
    (room / "gpu/kprof").mkdir(parents=True)
    shutil.copy(harness.ROOT / "test/data/gpu/h200_training/h200_training.pt.trace.json.gz", room / "gpu/kprof")
    (room / "gpu/bin").symlink_to(room / "tensors/bin")
    ran = []
    for part, command in commands_of_coming_from():
        if re.search(" ctl | hang| --leaks", command):  # test_ctl and test_hang have programs that run on, test_heap one that leaks by step
            continue
        folder = room / ("gpu" if "kernel" in command or "gpu" in command else "heap" if part == "memray" else "tensors")
        if (folder, command) in ran:
            continue
        here = {**env, "PATH": f"{folder}/bin:{env['PATH']}"}
        at = room / "bin" if " run " in command else folder  # what it leaves is not what the next command reads
        done = subprocess.run(["bash", "-c", command], cwd=at, env=here, capture_output=True, text=True, timeout=harness.LONG)
        assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-1500:])
        out = re.search(r" -o (\S+)", command)
        assert " run " in command or ((folder / out[1]).stat().st_size if out else done.stdout + done.stderr), command
        ran.append((folder, command))
    assert len(ran) >= 30 and sum(command.startswith("kprof run") for _, command in ran) >= 10, ran
