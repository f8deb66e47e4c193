# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges: NVIDIA's own header in a C program, and torch's calls, by handlers of ours."""
import os
import pathlib
import shutil
import subprocess
import sysconfig

import pytest

import harness
import spoolrecords

SOURCE = harness.SCRIPTS / "nvtx"
SETTINGS = {"KPROF_ACTIVITIES": "cpu,cuda", "KPROF_EXPORT": "none"}
RANGE, MARK, START, END = range(4)


def header_folders():
    """Where toolkits, distributions and wheels keep nvtx3/nvToolsExt.h."""
    yield pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    yield pathlib.Path("/usr/include")
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = subprocess.run([harness.PYTHON, "-c", ask], capture_output=True, text=True, check=False).stdout.strip() or sysconfig.get_paths()["purelib"]
    yield from sorted(pathlib.Path(site).glob("nvidia/*/include"))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    include = next((folder for folder in header_folders() if (folder / "nvtx3" / "nvToolsExt.h").exists()), None)
    if not include or not compiler:
        pytest.skip("no NVTX 3 header, or no C compiler")
    folder = tmp_path_factory.mktemp("nvtx")
    subprocess.run([compiler, f"-I{include}", SOURCE / "client.c", "-o", folder / "client", "-ldl"], check=True)
    subprocess.run([compiler, "-shared", "-fPIC", SOURCE / "other_tool.c", "-o", folder / "libother.so"], check=True)
    return folder / "client"


def run(client, folder, **more):
    return harness.run_kprof(None, folder, command=[client], schedule=None, shapes=False, **SETTINGS, **more).ok()


def test_every_form_of_the_header(client, tmp_path):
    plain = subprocess.run([client], capture_output=True, text=True, check=True, env=harness.clean_environment())
    done = run(client, tmp_path)
    assert done.out == plain.stdout
    found = spoolrecords.load(done.spools[0])["NVTX"]
    assert [(r.name, r.domain, r.type) for r in found[:7]] == [
        ("outer", "", RANGE), ("with attributes", "", RANGE), ("wide €", "", RANGE), ("mark", "", MARK), ("registered", "domain", RANGE),
        ("started", "", START), ("started", "", END)]
    outer, attributes, wide = found[:3]
    assert wide.start + wide.ticks <= attributes.start + attributes.ticks <= outer.start + outer.ticks
    assert outer.start + outer.ticks >= found[6].start
    assert found[5].id == found[6].id != 0
    assert [(r.name, r.type) for r in found[7:]] == [("many", RANGE)] * 1000
    assert all(r.ticks for r in found)


def test_a_tool_the_user_has_set_is_left_alone(client, tmp_path):
    done = run(client, tmp_path, NVTX_INJECTION64_PATH=client.parent / "libother.so")
    assert done.err == "the other tool was asked\n" and not done.spools


def test_without_cuda_among_the_activities_nobody_is_asked(client, tmp_path):
    done = harness.run_kprof(None, tmp_path, command=[client], schedule=None, KPROF_ACTIVITIES="cpu", KPROF_EXPORT="none").ok()
    assert done.err == "" and not done.spools


def test_torch_ranges_without_a_word_in_the_environment(tmp_path):
    done = harness.run_kprof("nvtx/ranges.py", tmp_path, schedule=None, shapes=False, **SETTINGS).ok()
    assert done.out == "False\n0\n", done.explain()
    found = spoolrecords.load(done.spools[0])["NVTX"]
    if not found and "libtorch_cuda" not in subprocess.run(
            [harness.PYTHON, "-c", "import torch, os; print(os.listdir(os.path.dirname(torch.__file__) + '/lib'))"],
            capture_output=True, text=True, check=True).stdout:
        pytest.skip("a torch without CUDA has no NVTX")
    assert [(r.name, r.type) for r in found] == [("outer", RANGE), ("inner", RANGE), ("mark", MARK), ("start", START), ("start", END)]
    assert found[0].start <= found[1].start and found[1].start + found[1].ticks <= found[0].start + found[0].ticks
