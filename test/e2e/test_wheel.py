# SPDX-License-Identifier: Apache-2.0
"""pip install of a checkout and of the source archive: this machine's compiler makes the wheel, and what is installed records."""
import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import building
import harness


def call(*words, env=None, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=harness.clean_environment(**(env or {})), **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the tree, so that what pip builds is no other test's."""
    at = tmp_path_factory.mktemp("checkout") / "kprof"
    call("git", "clone", "-q", harness.ROOT, at)
    changed = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=harness.ROOT, capture_output=True, check=True).stdout
    if changed:
        subprocess.run(["git", "apply", "--index"], cwd=at, input=changed, check=True)
        call("git", "-c", "user.name=a test", "-c", "user.email=test@localhost", "commit", "-qm", "test: What is not committed", cwd=at)
    return at


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A virtual environment with nothing in it, no setuptools and no wheel."""
    at = tmp_path_factory.mktemp("venv")
    call(sys.executable, "-m", "venv", at)
    return at / "bin/python"


def pip(python, *words, **more):
    return call(python, "-m", "pip", "--disable-pip-version-check", *words, "--no-index", **more)


@pytest.fixture(scope="module")
def gcc(tmp_path_factory):
    return building.kept_gcc(tmp_path_factory.mktemp("gcc"))


def recorded(python, folder):
    """Runs the installed command by the module, on a program of this Python."""
    script = folder / "script.py"
    script.write_text("import kprof, time\nkprof.start()\nwith kprof.range('a range'): time.sleep(0.01)\nkprof.stop()\n")
    run = harness.Run([python, "-m", "kprof", "run", "-o", folder / "out", "--schedule", "none", script], folder / "out", harness.clean_environment(), 120)
    assert run.ok().closing[3] == 0, run.explain()
    return call(python, "-m", "kprof", "report", folder / "out")


def test_pip_install_of_a_checkout_needs_a_compiler_alone(checkout, python, gcc, tmp_path):
    pip(python, "install", checkout, env=gcc)
    assert "a range" in recorded(python, tmp_path)
    prefix = python.parent.parent
    assert call(python, "-m", "kprof", "path").strip() == str(prefix / "lib/libkprof.so")
    assert f"commit {call('git', 'rev-parse', 'HEAD', cwd=checkout)[:12]}" in call(prefix / "bin/kprof", "--version")
    assert (prefix / "share/man/man1/kprof.1").exists() == bool(shutil.which("scdoc"))
    call(python, "-m", "pip", "uninstall", "-y", "kprof")
    assert not (prefix / "bin/kprof").exists() and not (prefix / "lib/libkprof.so").exists()


def test_two_wheels_of_a_checkout_have_equal_bytes(checkout, gcc, tmp_path):
    wheels, commits = [], int(call("git", "rev-list", "--count", "HEAD", cwd=checkout))
    for name in ("a", "b"):  # the first of what pip has built above, when it has; of the second a quarter is compiled anew
        env = building.three_of_four(gcc, tmp_path / "objects", commits) if wheels else gcc
        call(checkout / "scripts/wheel", "--here", "-o", tmp_path / name, env=env)
        shutil.rmtree(checkout / "build")
        wheels.append(next((tmp_path / name).glob("*.whl")))
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert re.search(r"-py3-none-linux_\w+\.whl$", wheels[0].name)
    with zipfile.ZipFile(wheels[0]) as wheel:
        assert wheel.testzip() is None
        assert any(name.endswith(".data/scripts/kprof") for name in wheel.namelist())


def test_the_source_archive_installs(checkout, python, gcc, tmp_path):
    code = "import sys; sys.path.insert(0, 'scripts/pip'); import backend; print(backend.build_sdist(sys.argv[1]))"
    name = call(sys.executable, "-c", code, tmp_path, cwd=checkout).strip()
    with tarfile.open(tmp_path / name) as tar:
        info = tar.extractfile(name[:-len(".tar.gz")] + "/PKG-INFO").read().decode()
    head = email.message_from_string(info)
    assert (head["Name"], head["Author"], head["License"]) == ("kprof", "The libkprof authors", "Apache-2.0")
    assert "Operating System :: POSIX :: Linux" in head.get_all("Classifier") and "](docs/" not in info  # an index has no docs folder
    pip(python, "install", tmp_path / name, env=gcc)
    assert "a range" in recorded(python, tmp_path)


def test_without_a_compiler_pip_says_what_is_missing(checkout, python, tmp_path):
    shutil.rmtree(checkout / "build", ignore_errors=True)
    env = harness.clean_environment(CC="no-such-cc")
    done = subprocess.run([python, "-m", "pip", "wheel", "--no-index", "-w", tmp_path, checkout], capture_output=True, text=True, env=env)
    assert done.returncode and "cannot build here: no C compiler 'no-such-cc'" in done.stdout + done.stderr
