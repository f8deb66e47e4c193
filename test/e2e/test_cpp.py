# SPDX-License-Identifier: Apache-2.0
"""libtorch without Python: linked to a C++ program, loaded late and local by a C program."""
import os
import shutil
import subprocess

import pytest

import facts
import harness

ASK = """
import torch, os
from torch.utils.cpp_extension import include_paths
print(os.path.dirname(torch.__file__)); print(torch.__version__); print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print(*[path for path in include_paths() if os.path.isdir(path)], sep=":")
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The three hosts and the library of ops, built against the wheel."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("cpp")
    package, version, abi, includes = subprocess.run([harness.PYTHON, "-c", ASK], capture_output=True, text=True, check=True,
                                                     env=harness.clean_environment(LAZY_DYNAMO=1)).stdout.split("\n")[:4]
    standard = "c++20" if tuple(map(int, version.split(".")[:2])) >= (2, 14) else "c++17"
    lib = os.path.join(package, "lib")
    source = harness.SCRIPTS / "cpp"

    def build(*arguments):
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    build(compiler, "-shared", "-fPIC", "-O0", "-w", f"-std={standard}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-DAT_PER_OPERATOR_HEADERS",
          *[f"-I{path}" for path in includes.split(":")], source / "ops.cpp", "-o", folder / "libops.so",
          f"-L{lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}", "-pthread")
    build(compiler, "-O0", "-w", f"-std={standard}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *[f"-I{path}" for path in includes.split(":")],
          source / "undefined.cpp", "-o", folder / "undefined", f"-L{lib}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}", "-pthread")
    for work, host in [("run_ops", "linked"), ("serve", "server")]:
        build(compiler, f"-DWORK={work}", source / "linked.cpp", "-o", folder / host, f"-L{folder}", "-lops", f"-Wl,-rpath,{folder}",
              f"-Wl,-rpath-link,{lib}", "-Wl,--allow-shlib-undefined")
    build(shutil.which("gcc") or "cc", source / "late.c", "-o", folder / "late", "-ldl")
    return folder


def check(run, rounds):
    assert run.out == "done\n", run.explain()
    lines = facts.by_thread([e for e in facts.spans(facts.load(run.trace)) if e.get("cat") == "cpu_op"])
    counts = sorted((facts.collections.Counter(e["name"] for e in line) for line in lines.values()), key=lambda c: c["aten::mm"])
    assert len(counts) == 2
    assert counts[0]["aten::cumsum"] == rounds and counts[0]["aten::mm"] == 0
    assert counts[1]["aten::mm"] == rounds and counts[1]["aten::ones"] == 2 * rounds and counts[1]["aten::cumsum"] == 0


def test_a_linked_program_from_its_first_op(programs, tmp_path):
    check(harness.run_kprof(None, tmp_path, command=[programs / "linked", 7], schedule=None).ok(), 7)


def test_an_undefined_tensor_has_no_shape_where_the_program_has_a_copy_of_it(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "undefined"], schedule=None).ok()
    given = [e["args"] for e in facts.spans(facts.load(run.trace)) if e["name"] == "given_nothing"]
    assert [(e["Input Dims"], e["Input Strides"], e["Input type"]) for e in given] == [([[2], []], [[1], []], ["float", ""])] * 3


def test_a_late_local_dlopen_from_its_first_op(programs, tmp_path):
    check(harness.run_kprof(None, tmp_path, command=[programs / "late", programs / "libops.so", 7], schedule=None).ok(), 7)


def test_a_shell_that_becomes_the_program(programs, tmp_path):
    """The library starts in the shell and, after exec, once more in the program: only that leaves a file."""
    command = ["/bin/sh", "-c", f"exec {programs}/late {programs}/libops.so 3"]
    check(harness.run_kprof(None, tmp_path, command=command, schedule=None).ok(), 3)


def test_a_server_has_a_step_for_each_request(programs, tmp_path):
    """Its model is TorchScript's; 16 calls come before they count."""
    run = harness.run_kprof(None, tmp_path, command=[programs / "server", 24], schedule="wait=1,warmup=1,active=2,repeat=1").ok()
    assert run.out == "done\n" and "(2 steps by module (the first 16 calls not counted)," in run.err, run.explain()
    assert facts.requests_of_steps(facts.load(run.trace)) == [1, 1]
