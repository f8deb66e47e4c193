# SPDX-License-Identifier: Apache-2.0
"""docs/reference/compatibility.md: functions stay with the number of the SONAME, and spools of earlier versions are read."""
import collections
import gzip
import re
import struct
import subprocess

import pytest

import facts
import harness

SPOOLS = harness.ROOT / "test/data/spools"
# What each number of the SONAME stands for. A line that is here stays as it is; new functions are added.
FUNCTIONS = {
    "0": """
int kprof_step(void)
int kprof_phase(const char *name)
long long kprof_step_num(void)
int kprof_start(void)
int kprof_stop(void)
int kprof_toggle(const char *activity, int on)
int kprof_range_push(const char *name)
int kprof_range_pop(void)
int kprof_alive(void)
int kprof_keep(void)
int kprof_metadata(const char *key, const char *value)
int kprof_metadata_json(const char *key, const char *json)
""",
}


def test_a_function_stays_as_long_as_the_number_of_the_soname():
    header = (harness.ROOT / "preload/kprof.h").read_text()
    declared = {f"{result} {name}({parameters})" for result, name, parameters in
                re.findall(r"^KPROF_FUNCTION\(([\w ]+), (kprof_\w+), \(([^)]*)\), ", header, re.M)}
    dynamic = subprocess.run(["readelf", "-dW", harness.LIBRARY], capture_output=True, text=True, check=True).stdout
    number = re.search(r"SONAME.*\[libkprof\.so\.(\d+)\]", dynamic)[1]
    assert declared == set(FUNCTIONS[number].split("\n")) - {""}
    exported = subprocess.run(["nm", "-D", "--defined-only", harness.LIBRARY], capture_output=True, text=True, check=True).stdout
    assert {re.search(r"\w+(?=\()", line)[0] for line in declared} <= set(re.findall(r" T (kprof_\w+)", exported))


def spool(folder, name):
    path = folder / "kept.kprof"
    path.write_bytes(gzip.decompress((SPOOLS / name).read_bytes()))
    return path


def test_a_spool_of_version_1_is_read(tmp_path):
    """Three steps of a small training by 0.1.0, with shapes, memory, stacks of ops and the heap's counts."""
    said = harness.cli("export", spool(tmp_path, "version1.kprof.gz"), "-o", tmp_path / "out")
    assert said.returncode == 0, said.stderr
    trace = facts.load(next((tmp_path / "out").glob("*.pt.trace.json*")))
    counts = collections.Counter(event.get("cat") for event in trace["traceEvents"] if event["ph"] in "Xi")
    assert (counts["cpu_op"], counts["cpu_instant_event"], counts["user_annotation"]) == (182, 46, 9), counts
    addmm = next(event for event in trace["traceEvents"] if event["name"] == "aten::addmm")
    assert addmm["args"]["Input Dims"] == [[8], [4, 8], [8, 8], [], []]
    assert "p.py(7): <module>" in addmm["args"]["Call stack"], addmm


@pytest.mark.parametrize("command", ("export", "report"))
def test_a_spool_of_a_later_version_is_refused_in_one_line(tmp_path, command):
    path = spool(tmp_path, "version1.kprof.gz")
    data = bytearray(path.read_bytes())
    assert struct.unpack_from("<I", data, 8) == (1,)
    struct.pack_into("<I", data, 8, 2)
    path.write_bytes(data)
    said = harness.cli(command, path)
    assert said.returncode and "spool format 2, this kprof reads up to 1" in said.stderr and len(said.stderr.splitlines()) == 1, said.stderr
