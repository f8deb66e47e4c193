# SPDX-License-Identifier: Apache-2.0
"""The same unmodified program under torch.profiler and under libkprof states the same facts, to the last one."""
import json
import re
import subprocess
import sys

import pytest

import facts
import harness

# program -> what differs from the usual run. `ignore`: markers that torch shows only to its own profiler.
PROFILER_ONLY = r"^(Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|## Call CompiledFxGraph .* ##)$"
PROGRAMS = {
    "resnet18.py": {"args": ("--workers", "1"), **harness.LATE},  # with two, batches that come early are unpacked in another step's time
    "transformer.py": {},
    "lstm.py": harness.LATE,
    "gan.py": {**harness.LATE, "KPROF_STEP": "range:Optimizer.step#"},  # torch.profiler is stepped after either optimizer here
    # not auto: a compiler that takes long runs ops and steps nothing, so that after half a minute seconds would count
    "script_compile.py": {"ignore": PROFILER_ONLY, "KPROF_STEP": "optimizer"},
    "applied.py": harness.LATE,
    "hf_trainer.py": harness.LATE,
    "lightning_fit.py": harness.LATE,
}
PROPERTIES = ["steps", "op counts", "categories", "ops by step", *facts.INPUTS, "nesting", "threads", "fwd-bwd pairs", "fwdbwd flows"]


@pytest.fixture(scope="session")
def pair(oracle, ours, inductor):
    """pair(program): the two traces of it, parsed, and the paths of their files."""
    def make(program):
        options = {key: value for key, value in PROGRAMS[program].items() if key not in ("ignore", "args")}
        args = PROGRAMS[program].get("args", ())
        kept = {"TORCHINDUCTOR_CACHE_DIR": inductor} if program == "script_compile.py" else {}  # the others are other files' recordings, too
        reference = oracle(program, *args, **kept)
        candidate = ours(program, *args, **kept, **options)
        return reference, candidate

    return make


@pytest.fixture(scope="session")
def stated(pair, once):
    def make(program):
        def count(_):
            reference, candidate = pair(program)
            ignore = PROGRAMS[program].get("ignore")
            return facts.facts(facts.load(reference.trace), ignore), facts.facts(facts.load(candidate.trace), ignore)

        return once(("facts", program), count)

    return make


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_states_the_same(program, name, stated):
    reference, candidate = stated(program)
    assert sum(reference[name].values()) > 0, "the reference has no such fact: the program shows nothing"
    assert not facts.differences(reference, candidate, [name])


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_event_crosses_another(program, pair):
    assert not facts.crossings(facts.load(pair(program)[1].trace))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_comparison_agrees(program, pair, tmp_path):
    """A second opinion, written by other hands: every property it has, 1.0000."""
    reference, candidate = pair(program)
    paths = []
    for label, path in (("ref", reference.trace), ("ours", candidate.trace)):
        ignore = PROGRAMS[program].get("ignore")
        if ignore:
            trace = facts.load(path)
            trace["traceEvents"] = [e for e in trace["traceEvents"] if not re.match(ignore, e["name"])]
            path = tmp_path / f"{label}.json"
            path.write_text(json.dumps(trace))
        paths.append(path)
    said = subprocess.run([sys.executable, harness.HERE / "oracle" / "compare.py", *paths, "--json"], capture_output=True, text=True, check=True)
    scores = json.loads(said.stdout)
    assert {"op counts", "categories", "nesting", *facts.INPUTS, "fwd-bwd pairs", "fwdbwd flows"} <= set(scores)
    assert {name: score for name, score in scores.items() if score != 1.0} == {}


TIMED = """
import time, torch
from torch.profiler import record_function
for number in range(40):
    a = time.monotonic_ns()
    with record_function(f"range {number}"):
        b = time.monotonic_ns()
        torch.rand(50 * number, 50).sum()
        time.sleep(0.001 * (number % 7))
        c = time.monotonic_ns()
    print(b, c, a, time.monotonic_ns())
"""


def test_durations_are_those_of_the_clock(tmp_path):
    """A range lasts as long as the program's own clock says, read just inside of it at least, just outside of it at most; so do distances."""
    script = tmp_path / "timed.py"
    script.write_text(TIMED)
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, **harness.LATE).ok()
    inside = [tuple(map(int, line.split())) for line in run.out.splitlines()]
    spans = {e["name"]: e for e in facts.spans(facts.load(run.trace)) if e["name"].startswith("range ")}
    assert len(spans) == len(inside) == 40
    first = facts.begin(spans["range 0"])
    for number, (b, c, a, d) in enumerate(inside):
        event, slack = spans[f"range {number}"], 2000 + (d - inside[0][2]) // 1000  # ns, for two fits of one clock
        assert c - b - slack <= facts.ns(event["dur"]) <= d - a + slack, number
        assert a - inside[0][0] - slack <= facts.begin(event) - first <= b - inside[0][2] + slack, number


def test_options_change_what_is_recorded(ours):
    """Without KPROF_RECORD_SHAPES no event has inputs, and the same ops are there."""
    bare = facts.facts(facts.load(ours("transformer.py", shapes=False, **harness.LATE).trace))
    full = facts.facts(facts.load(ours("transformer.py").trace))
    assert not any(sum(bare[name].values()) for name in facts.INPUTS)
    assert not facts.differences(full, bare, ["op counts", "nesting", "fwd-bwd pairs"])


def test_with_the_gpu_alone_asked_for_steps_are_counted_and_no_op_is_recorded(ours):
    trace = facts.load(ours("lstm.py", KPROF_ACTIVITIES="cuda", **harness.LATE).trace)
    assert [e["name"] for e in facts.steps(trace)] == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert not [e["name"] for e in trace["traceEvents"] if e.get("cat") == "cpu_op"]


@pytest.mark.parametrize("program", ["resnet18.py", "gan.py", "lstm.py"])
def test_the_program_prints_the_same(program, pair, tmp_path):
    plain = harness.run_plain(program, tmp_path, *PROGRAMS[program].get("args", ()), warm_start=True).ok()
    assert pair(program)[1].out == plain.out


def test_repeated_cycles_each_leave_a_file(ours, oracle):
    """wait=0,warmup=1,active=2,repeat=2: two files, steps 1-2 and 4-5; an unfinished third does not exist."""
    run = ours("resnet18.py", "--steps", "7", "--workers", "0", schedule="wait=0,warmup=1,active=2,repeat=2", **harness.LATE)
    names = [[e["name"] for e in facts.steps(facts.load(path))] for path in run.traces]
    assert names == [["ProfilerStep#1", "ProfilerStep#2"], ["ProfilerStep#4", "ProfilerStep#5"]]


@pytest.mark.parametrize("program", ["resnet18.py", "hf_trainer.py", "lightning_fit.py"])
def test_nothing_is_advised_of_a_training_as_it_is(program, pair):
    """By either recording. The two little models of the frameworks need less time than the Python around them, and that is told;
    where others use the machine, their loader takes a share of the step as well. ResNet-18 takes thousands of page faults per step, or none (decisions/118)."""
    by_others, of_little = {"slow-steps", "slower-steps", "too-many-threads", "page-faults"}, {"no-op-runs", "data-loading", "optimizer-unfused"}
    for run in pair(program):
        findings = json.loads(harness.cli("advise", run.trace, "--json").stdout)["findings"]
        assert {finding["id"] for finding in findings} - by_others <= (of_little if program != "resnet18.py" else set()), findings
