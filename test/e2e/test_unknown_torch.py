# SPDX-License-Identifier: Apache-2.0
"""A torch that came after us: what self-calibration finds is recorded right, what it cannot find is left out with one line."""
import collections
import re
import subprocess

import pytest

import facts
import harness
from test_parity import PROPERTIES

# Its table of layouts knows no version and puts every field in a wrong place (test/doubles/strange_layout.c).
STRANGE = harness.BUILD / harness.ARCH / "test" / "libkprof-strange.so"
STEPPED = {"KPROF_STEP": "api", "KPROF_GZIP": "0"}


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    """double(*flags): a folder with a torch of one file, built with these."""
    def make(*flags):
        folder = tmp_path_factory.mktemp("torch")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-I", harness.ROOT, "-O1", "-fPIC", "-shared", *flags, "-o", folder / "libtorch_cpu.so",
                        harness.ROOT / "test" / "doubles" / "libtorch_double.c"], check=True)
        return folder

    return make


def without(folder, *symbols):
    """Flags that keep these functions out of sight."""
    script = folder / "hidden.map"
    script.write_text("{ local: %s };\n" % " ".join(symbol + ";" for symbol in symbols))
    return f"-Wl,--version-script={script}"


def run_on(torch, folder, **more):
    return harness.run_kprof("python_calls.py", folder, torch, "plain", KPROF_VERBOSE=1, **STEPPED, **more).ok()


def ops_of(run):
    """What the double lets us see: names, categories, and that each op is within its step."""
    events = facts.host_events(facts.load(run.trace))
    return collections.Counter((e["name"], e["cat"], e["args"].get("Sequence number"), e["args"].get("Fwd thread id")) for e in events)


def about_layout(run):
    return [line for line in run.said if "layout" in line or "RecordFunction" in line]


@pytest.fixture(scope="module")
def usual(double, tmp_path_factory):
    run = run_on(double(), tmp_path_factory.mktemp("usual"))
    assert [line.rpartition(": ")[2] for line in about_layout(run)] == ["lists"]  # the type they are told by is missing
    assert sum(ops_of(run).values()) >= 9
    return run


def test_a_real_torch_without_its_row_of_the_table(oracle, ours):
    reference = oracle("transformer.py")
    candidate = ours("transformer.py", LD_PRELOAD=STRANGE, KPROF_VERBOSE=1)
    found = about_layout(candidate)
    assert len(found) == 1 and "is newer than any version known here; its layout was found and proved" in found[0]
    theirs, mine = facts.facts(facts.load(reference.trace)), facts.facts(facts.load(candidate.trace))
    assert all(theirs[name] for name in PROPERTIES)
    assert not facts.differences(theirs, mine, PROPERTIES)


@pytest.mark.parametrize("moved", [8, 24])
def test_a_torch_2_99_whose_fields_moved(double, usual, tmp_path, moved):
    """It lacks the functions that would prove tensors and values: one line says so, all else is as ever."""
    run = run_on(double(f"-DMINI_MOVED={moved}"), tmp_path)
    assert ops_of(run) == ops_of(usual)
    found = about_layout(run)
    assert len(found) == 1 and re.search("torch 2\\.99: its layout .* without: tensor shapes, lists, scalars$", found[0]), found


def test_where_nothing_can_be_proved_names_are_left(double, usual, tmp_path):
    torch = double("-DMINI_MOVED=24", without(tmp_path, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"))
    run = run_on(torch, tmp_path / "run")
    found = about_layout(run)
    assert len(found) == 1 and "recorded without: scopes, torch's thread ids, sequence numbers," in found[0], run.explain()
    names = collections.Counter(e["name"] for e in facts.host_events(facts.load(run.trace)))
    expected = collections.Counter()
    for (name, *_), count in ops_of(usual).items():
        expected[name] += count
    assert names == expected


def test_where_no_callback_can_be_added_torch_is_left_alone(double, tmp_path):
    torch = double(without(tmp_path, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"))
    run = run_on(torch, tmp_path / "run")
    assert [line for line in about_layout(run) if "torch is not profiled" in line] and len(about_layout(run)) == 1, run.explain()
    assert "done" in run.out
