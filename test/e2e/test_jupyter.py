# SPDX-License-Identifier: Apache-2.0
"""%%kprof in a real Jupyter kernel, with the installed wheel: each cell has a window, a report and a page of its own."""
import json
import re
import subprocess

import pytest

import building
import harness
import viewing

LOAD = "%load_ext kprof"
WITH_TORCH = f"{LOAD}\nimport torch"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A virtual environment with the wheel of this machine's compiler, over those of Jupyter and of torch."""
    below = viewing.venv("jupyter")
    at = tmp_path_factory.mktemp("venv")
    subprocess.run([below, "-m", "venv", "--without-pip", at], check=True)  # to install pip takes longer than all else
    python = at / "bin/python"
    packages = {name: subprocess.run([path, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True)
                .stdout.strip() for name, path in (("own", python), ("below", below))}
    with open(packages["own"] + "/below.pth", "w") as pth:
        pth.write(f"import site; site.addsitedir({packages['below']!r})\n")
    made = subprocess.run([harness.ROOT / "scripts/wheel", "--here", "-o", at], capture_output=True, text=True,
                          env=harness.clean_environment(**building.kept_gcc(tmp_path_factory.mktemp("gcc"))))
    assert made.returncode == 0, made.stderr
    subprocess.run([below, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", made.stdout.split()[-1]], check=True)
    return python


def outputs(python, folder, *cells, words=(), kernel="python3", **env):
    """What cells put out, in a notebook of this folder; words stand before the program that has the kernel."""
    done = subprocess.run([*words, python, harness.SCRIPTS / "notebook.py", kernel], input=json.dumps(cells), cwd=folder, text=True, capture_output=True,
                          env=harness.clean_environment(**env), timeout=harness.LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def under_kprof(python):
    return [python, "-m", "kprof", "run", "--schedule", "none", "--"]


@pytest.fixture()
def load(torch_double):
    """A first cell around the torch of one file, so that the others have ops: op(b"aten::name")."""
    return f"{LOAD}\nimport ctypes; op = ctypes.CDLL({str(torch_double / 'libtorch_cpu.so')!r}).mini_op"


def test_each_cell_has_a_report_and_a_page_of_its_own_and_a_failing_one_stays_a_failure(python, tmp_path):
    load, first, between, second, failing = outputs(
        python, tmp_path, WITH_TORCH, "%%kprof -n 0\ntorch.ones(8, 8) @ torch.ones(8, 8)\nimport os; os.chdir('/')", "torch.linalg.svd(torch.ones(4, 4))",
        "%%kprof -n 0\ntorch.ones(8).sort()", "%%kprof\ntorch.ones(8).sort()\nraise KeyError('mine')", words=under_kprof(python))
    assert failing["error"] == "CellFailed" and "aten::sort" in failing["text"]
    assert not any(cell["error"] for cell in (load, first, between, second)), (load, first, between, second)
    assert "aten::mm" in first["text"] and "aten::sort" not in first["text"]
    assert "aten::sort" in second["text"] and "aten::mm" not in second["text"] and "aten::linalg_svd" not in second["text"]
    pages = [re.search(r'<iframe src="([^"]*\.html)"', cell["html"])[1] for cell in (first, second)]
    assert pages[0] != pages[1]
    for page, cell in zip(pages, (first, second)):
        assert not page.startswith("/") and f'<a href="{page}"' in cell["html"]
        trace = re.search(r"^trace: (.*)$", cell["text"], re.M)[1]
        again = harness.cli("html", trace)
        assert again.returncode == 0 and (tmp_path / page).read_text() == again.stdout


def test_a_page_beyond_the_notebook_gets_a_link_and_no_frame(python, load, tmp_path):
    (tmp_path / "at").mkdir()
    _, cell = outputs(python, tmp_path / "at", load, "%%kprof\nop(b'aten::sort')", words=under_kprof(python), KPROF_DIR=tmp_path / "out")
    assert "iframe" not in cell["html"] and '<a href="../out/' in cell["html"]


def test_a_kernel_without_the_library_runs_the_cell_and_says_how_to_start_it(python, tmp_path):
    _, cell = outputs(python, tmp_path, LOAD, "%%kprof\nprint(6 * 7)")
    assert cell["text"].splitlines()[-1] == "42" and not cell["error"]
    assert "this kernel is not recorded" in cell["text"] and "kprof run --schedule none -- jupyter lab" in cell["text"]


def test_a_kernel_of_a_kernelspec_with_the_library_in_its_environment(python, load, tmp_path):
    library = subprocess.run([python, "-m", "kprof", "path"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([python, "-m", "ipykernel", "install", "--prefix", tmp_path, "--name", "kprof", "--env", "LD_PRELOAD", library,
                    "--env", "KPROF_SCHEDULE", "none"], check=True, capture_output=True)
    _, cell = outputs(python, tmp_path, load, "%%kprof\nop(b'aten::sort')", kernel="kprof", JUPYTER_PATH=tmp_path / "share/jupyter")
    assert "aten::sort" in cell["text"] and "iframe" in cell["html"]
