# SPDX-License-Identifier: Apache-2.0
"""kprof.h: the same program with and without the library, in C and C++, fixed or movable, with and without optimisation; and ctypes."""
import json
import shutil
import subprocess
import sys

import pytest

import harness

PROGRAM = r"""
#include "kprof.h"
#include <stdio.h>
int main(void)
{
    int (*by_address)(void) = kprof_step;
    errno = 7;
    printf("%d %d ", kprof_step(), by_address());
    printf("%d ", kprof_range_push("outer"));
    printf("%d ", kprof_range_pop());
    printf("%d ", kprof_range_pop() != 0);
    printf("%d %d ", kprof_metadata("key", "a \"text\""), kprof_metadata_json("list", "[1, 2]"));
    printf("%d ", kprof_metadata_json("list", "[1, 2") != 0);
    printf("%d ", kprof_phase("train"));
    printf("%d ", kprof_alive());
    printf("%d ", kprof_keep());
    printf("%lld %d\n", kprof_step_num(), errno);
    return 0;
}
"""
WITHOUT = "-38 -38 -38 -38 1 -38 -38 1 -38 -38 -38 -38 7"
WITH = "0 0 0 0 1 0 0 1 0 0 -61 2 7"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def compilers():
    return [(name, std, ending) for name, std, ending in (("gcc", "c99", "c"), ("clang", "c99", "c"), ("g++", "c++11", "cc"),
                                                          ("g++", "c++17", "cc"), ("clang++", "c++17", "cc")) if shutil.which(name)]


@pytest.mark.parametrize("shape", ["-O0 -fPIE -pie", "-O2 -fPIE -pie", "-O0 -fno-pie -no-pie", "-O2 -fno-pie -no-pie"])
@pytest.mark.parametrize("name,std,ending", compilers())
def test_a_program_runs_with_and_without_the_library(tmp_path, name, std, ending, shape):
    source = tmp_path / f"program.{ending}"
    source.write_text(PROGRAM)
    subprocess.run([name, f"-std={std}", *STRICT, *shape.split(), "-I", harness.ROOT / "preload", source, "-o", tmp_path / "program"], check=True)
    for preload, want in (("", WITHOUT), (str(harness.LIBRARY), WITH)):
        run = subprocess.run([tmp_path / "program"], env=harness.clean_environment(LD_PRELOAD=preload, KPROF_DIR=tmp_path / "out"),
                             capture_output=True, text=True, check=True)
        assert run.stdout.strip() == want, run.stderr


def test_ctypes_calls_the_exported_names():
    code = "import ctypes; k = ctypes.CDLL(None); print(k.kprof_step(), k.kprof_step_num(), k.kprof_range_push(b'x'), k.kprof_range_pop())"
    run = subprocess.run([sys.executable, "-c", code], env=harness.clean_environment(LD_PRELOAD=harness.LIBRARY), capture_output=True, text=True)
    assert run.stdout.split() == ["0", "1", "0", "0"], run.stderr
    without = subprocess.run([sys.executable, "-c", code], env=harness.clean_environment(), capture_output=True, text=True)
    assert "AttributeError" in without.stderr


RANGES = """
import ctypes, json
k = ctypes.CDLL(None)
for i in range(3000):
    assert k.kprof_metadata_json(b"epoch", str(i).encode()) == 0
assert k.kprof_metadata_json(b"large", json.dumps("y" * 20000).encode()) == 0
assert k.kprof_metadata_json(b"larger", json.dumps("y" * 40000).encode()) == -7
k.kprof_range_push(b"x"); k.kprof_range_pop()
"""


def test_much_metadata_pushes_out_neither_the_rank_nor_what_comes_later(tmp_path):
    text = "x" * 30000
    run = subprocess.run([sys.executable, "-c", RANGES], capture_output=True, text=True,
                         env=harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path, KPROF_GZIP="0", RANK="3",
                                                       WORLD_SIZE="8", KPROF_METADATA=json.dumps({"long": text})))
    assert run.returncode == 0 and "wrote" in run.stderr, run.stderr
    trace = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert trace["distributedInfo"]["rank"] == 3 and trace["distributedInfo"]["world_size"] == 8
    assert trace["long"] == text
    assert trace["epoch"] == 2999
    assert len(trace["large"]) == 20000
