# SPDX-License-Identifier: Apache-2.0
"""Out of a device's memory: KPROF_ON_OOM tells what torch's own snapshot tells at that moment, with the lines."""
import json

import pytest

import harness
import simgpu

PROGRAM = "out_of_memory.py"
LINES = {line.rsplit("# ", 1)[1]: number for number, line in enumerate((simgpu.PROGRAMS / PROGRAM).read_text().splitlines(), 1)
         if "  # " in line}


def fail(folder, *args, **settings):
    return simgpu.run(PROGRAM, folder, *args, kprof=True, **{"SIMGPU_MEMORY_MB": 64, "LAZY_DYNAMO": 1, "KPROF_ON_OOM": "dump", "schedule": "none",
                                                             **settings})


@pytest.fixture(scope="module")
def caught(tmp_path_factory):
    """(the folder, what torch said, the file)"""
    folder = tmp_path_factory.mktemp("device")
    run = fail(folder).ok()
    [path] = folder.glob("oom-*.json")
    return run, json.loads(run.out), path


def test_figures_are_those_of_torchs_own_snapshot(caught):
    run, torch_says, path = caught
    told = json.loads(path.read_text())
    assert told["device"] == "cuda:0" and told["asked"] == 30 << 20 and told["asked_at"]["line"] == LINES["asked"]
    assert told["live"] == told["allocated"] == torch_says["allocated"]
    assert told["reserved"] == torch_says["reserved"]
    assert sorted(block["bytes"] for block in told["largest"]) == torch_says["blocks"]
    assert told["live"] == sum(site["bytes"] for site in told["sites"])
    assert f"kprof: {told['text']} (by line: kprof memory " in run.err


def test_lines_have_their_blocks(caught):
    _, torch_says, path = caught
    sites = {(site["line"], site["category"]): site for site in json.loads(path.read_text())["sites"]}
    assert sites[LINES["kept"], ""]["blocks"] == torch_says["kept"] and sites[LINES["kept"], ""]["grows"] >= 1_000_000
    assert sites[LINES["weights"], ""]["bytes"] == sites[LINES["momentum"], "optimizer state"]["bytes"] >= 4_000_000


def test_memory_says_why_the_cache_did_not_do(caught):
    _, torch_says, path = caught
    cached = torch_says["reserved"] - torch_says["allocated"]
    assert cached >= 30 << 20, "the program must leave more in torch's cache than it asks for"
    first = harness.cli("memory", path.parent).stdout.splitlines()[0]
    assert first.startswith(f"cuda:0 ran out of memory: 30.00 MiB asked for at {PROGRAM}:{LINES['asked']} <module>, "
                            f"{torch_says['allocated'] / (1 << 20):.2f} MiB live, "), first
    assert first.endswith(f", {cached / (1 << 20):.2f} MiB cached in parts that do not fit"), first


def test_gradients_have_the_line_of_their_forward_op(tmp_path):
    """Threads of autograd have no frames of Python."""
    fail(tmp_path, "grads", schedule=None, KPROF_RING="1h").ok()
    [path] = tmp_path.glob("oom-*.json")
    sites = {(site["line"], site["category"]): site["bytes"] for site in json.loads(path.read_text())["sites"]}
    assert sites[LINES["forward"], "gradients"] >= 4_000_000, sites
