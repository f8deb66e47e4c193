# SPDX-License-Identifier: Apache-2.0
"""Everything on at once (inputs, memory, stacks, FLOPs, modules): ten programs under torch.profiler and under libkprof, compared.

Ops, inputs, nesting, links, memory and FLOPs must be equal to the last one. Of Python's calls those are compared that
docs/decisions/026 names: without torch.profiler's own, and without those that were open as the window began.
"""
import collections
import json
import re
import subprocess
import sys

import pytest

import facts
import harness
from test_options import TABLE, columns, flops_head
from test_parity import PROFILER_ONLY

ALL_OF_THEIRS = {"memory": True, "stack": True, "flops": True, "modules": True}
ALL_OF_OURS = {"KPROF_PROFILE_MEMORY": 1, "KPROF_WITH_STACK": 1, "KPROF_WITH_FLOPS": 1, "KPROF_WITH_MODULES": 1,
               "KPROF_STEP": "optimizer"}  # on a busy machine it may take 30 s to the first step: then each second would count as one
PROGRAMS = {  # name -> script, its arguments, settings of ours
    "cnn": ("resnet18.py", ("--workers", "0", "--batch", "2"), {}),
    "transformer": ("transformer.py", (), {}),
    "lstm": ("lstm.py", (), {}),
    "gan": ("gan.py", (), {"KPROF_STEP": "range:Optimizer.step#"}),  # torch.profiler is stepped after either optimizer
    "torchscript": ("script_compile.py", ("script",), {}),
    "compile": ("script_compile.py", ("compile",), {}),
    "threads": ("threads.py", (), {}),
    "generators and exceptions": ("calls_in_torch.py", (), {}),
    "hf trainer": ("hf_trainer.py", (), {}),
    "lightning": ("lightning_fit.py", (), {}),
}
OWN = re.compile(r"torch/profiler/profiler\.py|kineto\.py|runpy")  # torch.profiler, and what drives it here
# With all they call: markers that torch.compile makes for torch.profiler alone (docs/decisions/012), and how threads wait for each other.
NOT_OURS = re.compile(r"torch/profiler/profiler\.py|.*RecordFunctionFast object|.*: record_(pregraph_bytecode|runtime_wrapper_prologue)_(enter|exit)$|" +
                      facts.WAITS.pattern)
LEAST = {"python functions": 0.99, "modules of TorchScript": 0.99}


def calls_in(trace):
    return [e for e in trace["traceEvents"] if e.get("cat") == "python_function"]


def window_of(trace):
    marks = facts.steps(trace)
    return facts.begin(marks[0]), facts.end(marks[-1])


def is_left_out(trace):
    """A test of one call: was it open as the window began, is it torch.profiler's own or within such a one?"""
    by_id = {e["args"]["Python id"]: e for e in calls_in(trace)}
    low, _ = window_of(trace)
    within = {}  # by id: is the call, or one around it, not ours?

    def is_within(e):
        asked = []
        while e is not None and e["args"]["Python id"] not in within and not NOT_OURS.match(e["name"]):
            asked.append(e["args"]["Python id"])
            e = by_id.get(e["args"].get("Python parent id"))
        found = e is not None and within.get(e["args"]["Python id"], True)
        within.update(dict.fromkeys(asked, found))
        return found

    def test(e):
        return facts.begin(e) <= low or OWN.search(e["name"]) or (e["name"][0] == "<" and OWN.search(e["args"]["CallFrom"])) or is_within(e)

    return test


def is_elsewhere(trace):
    """A test of one event: an op or a block of a thread that does not step, which torch.profiler does not see?"""
    thread = {e["tid"] for e in facts.steps(trace)}
    return lambda e: (e.get("cat") == "cpu_op" or e["name"] == "[memory]") and e["tid"] not in thread


def comparable(path):
    """The trace without the calls that are left out, the ops of other threads and the markers torch makes for its own profiler alone."""
    trace = facts.load(path)
    test, marker, elsewhere = is_left_out(trace), re.compile(PROFILER_ONLY), is_elsewhere(trace)
    trace["traceEvents"] = [e for e in trace["traceEvents"] if not marker.match(e["name"]) and not elsewhere(e) and
                            not (e.get("cat") == "python_function" and test(e))]
    return trace


def module_of(call):
    """transformers makes a loss for each step: whether it has the number of the last one is chance, as it may lie at the same address."""
    name, number = call["name"], call["args"]["Python module id"]
    return (name.rstrip("0123456789"), "any") if "CrossEntropyLoss" in name else (name, number)


def stated(trace):
    said = facts.facts(trace)
    low, high = window_of(trace)
    memory = [e for e in trace["traceEvents"] if e["name"] in ("[memory]", "[OutOfMemory]") and low <= facts.begin(e) < high]
    said["memory events"] = collections.Counter((e["name"], e["args"]["Device Type"], e["args"]["Bytes"]) for e in memory)
    said["modules of TorchScript"] = collections.Counter(  # not whose: torch hands them to the wrong ops (docs/decisions/024)
        e["args"]["Module Hierarchy"] for e in facts.host_events(trace) if "Module Hierarchy" in e.get("args", {}))
    said["modules"] = collections.Counter(module_of(e) for e in calls_in(trace) if "Python module id" in e["args"])
    said["python functions"] = collections.Counter(re.sub(r" at 0x[0-9a-f]+", "", e["name"]) for e in calls_in(trace) if low < facts.begin(e) < high)
    return said


@pytest.fixture(scope="module")
def pair(oracle, ours, inductor):
    """pair(name): both runs, with all that can be asked for."""
    def make(name):
        script, args, settings = PROGRAMS[name]
        reference = oracle(script, *args, tables=[{"table": TABLE}], TORCHINDUCTOR_CACHE_DIR=inductor, **ALL_OF_THEIRS)
        return reference, ours(script, *args, TORCHINDUCTOR_CACHE_DIR=inductor, **{**ALL_OF_OURS, **settings})

    return make


@pytest.fixture(scope="module")
def both(pair, once):
    """both(name): folder with ref.json and ours.json, what is comparable of the two; and what they state."""
    def make(name):
        def write(folder):
            said = []
            for label, run in zip(("ref", "ours"), pair(name)):
                trace = comparable(run.trace)
                (folder / f"{label}.json").write_text(json.dumps(trace))  # at once: json.dump writes it in ten times as long
                said.append(stated(trace))
            return folder, *said

        return once(("everything", name), write)

    return make


@pytest.mark.parametrize("name", PROGRAMS)
def test_states_the_same(name, both):
    _, reference, candidate = both(name)
    calls = "python functions"
    exact = [what for what in reference if what not in LEAST]
    assert all(sum(reference[what].values()) for what in ("op counts", "Input Dims", "memory events", "modules", calls))
    assert reference["modules of TorchScript"] or name != "torchscript"
    assert not facts.differences(reference, candidate, exact)
    for what, least in LEAST.items():
        assert facts.ratio(reference[what], candidate[what]) >= least, facts.differences(reference, candidate, [what])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_comparison_agrees(name, both):
    folder, *_ = both(name)
    said = subprocess.run([sys.executable, harness.HERE / "oracle" / "compare.py", folder / "ref.json", folder / "ours.json", "--json"],
                          capture_output=True, text=True, check=True)
    scores = json.loads(said.stdout)
    assert {"op counts", "nesting", *facts.INPUTS, "memory events (bytes)", "python functions"} <= set(scores)
    assert scores.pop("python functions") >= LEAST["python functions"]
    assert {what: score for what, score in scores.items() if score != 1.0} == {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_flops_are_torchs(name, pair, both):
    theirs = pair(name)[0].tables[0]
    said = harness.cli("report", "--torch", both(name)[0] / "ours.json", "--row-limit", "-1", "--max-name-column-width", "200").stdout
    marker = re.compile(PROFILER_ONLY)
    heads = ["Name", "# of Calls", flops_head(theirs)]
    rows = [collections.Counter({row: n for row, n in columns(text, *heads).items() if not marker.match(row[0]) and not row[0].startswith("ProfilerStep")})
            for text in (theirs, said)]
    assert rows[0] == rows[1] and any(row[2] != "--" for row in rows[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_slices_nest(name, pair):
    """torch.profiler's own do not: a range begins inside the call of __enter__ and ends outside of it (docs/decisions/131)."""
    theirs, ours = pair(name)
    assert not facts.crossings(facts.load(ours.trace))
    assert facts.crossings(facts.load(theirs.trace))
