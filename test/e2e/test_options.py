# SPDX-License-Identifier: Apache-2.0
"""Options of torch.profiler beside ours: with_flops, with_modules, arguments of record_function, metadata, torch.compile's markers."""
import collections
import json

import pytest

import facts
import harness

TABLE = {"row_limit": -1, "max_name_column_width": 200, "max_shapes_column_width": 400}
INPUTS = "Input Dims", "Input type", "Input Strides", "Concrete Inputs"


def columns(text, *wanted):
    """What a table says of each row under some of its heads; the unit of the FLOPs is in theirs."""
    lines = [line for line in text.splitlines() if line.strip() and " time total: " not in line]
    rule = lines[0]
    spans, at = [], 0
    for dashes in rule.split():
        spans.append((rule.index(dashes, at), rule.index(dashes, at) + len(dashes)))
        at = spans[-1][1]
    cut = [[line[low:high].strip() for low, high in spans] for line in lines]
    heads = cut[1]
    numbers = [heads.index(head) for head in wanted]
    return collections.Counter(tuple(row[i] for i in numbers) for row in cut[3:] if row[numbers[0]].strip("-"))


def flops_head(text):
    return next(word for word in ("Total FLOPs", "Total KFLOPs", "Total MFLOPs", "Total GFLOPs") if word in text)


# ---- with_flops ----


@pytest.fixture(scope="module")
def flops(oracle, ours):
    wanted = [{"table": TABLE}, {"key_averages": {"group_by_input_shape": True}, "table": TABLE}]
    reference = oracle("flops.py", shapes=False, flops=True, tables=wanted)
    return reference, ours("flops.py", shapes=False, KPROF_WITH_FLOPS=1, **harness.LATE)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_flops_of_our_trace_are_torchs(flops, grouped):
    reference, candidate = flops
    args = ["--group-by-input-shape"] if grouped else []
    said = harness.cli("report", "--torch", candidate.trace, "--row-limit", "-1", "--max-name-column-width", "200",
                       "--max-shapes-column-width", "400", *args).stdout
    theirs = reference.tables[int(grouped)]
    assert flops_head(said) == flops_head(theirs)
    heads = ["Name", "# of Calls", flops_head(said)] + (["Input Shapes"] if grouped else [])
    assert columns(said, *heads) == columns(theirs, *heads)
    counted = {row[0] for row in columns(theirs, *heads) if row[2] != "--"}
    assert counted == {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::conv2d", "aten::mul", "aten::add"}


def test_flops_bring_the_inputs_and_one_key(flops):
    reference, candidate = (facts.load(run.trace) for run in flops)
    options = {"record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"}
    assert options & candidate.keys() == options & reference.keys() == {"with_flops"}
    assert candidate["with_flops"] == reference["with_flops"] == 1
    assert not facts.differences(facts.facts(reference), facts.facts(candidate), ["op counts", *INPUTS])


def test_without_it_there_is_no_column(ours):
    said = harness.cli("report", "--torch", ours("flops.py", **harness.LATE).trace).stdout
    assert "aten::mm" in said and "FLOPs" not in said


# ---- with_modules ----

HIERARCHY = "Module Hierarchy"
EVALUATE = "autograd::engine::evaluate_function: "


@pytest.fixture(scope="module")
def modules(oracle, ours):
    def make(how):
        return tuple(facts.load(run.trace) for run in (oracle("modules.py", how, shapes=False, modules=True),
                                                       ours("modules.py", how, shapes=False, KPROF_WITH_MODULES=1, **harness.LATE)))

    return make


def in_order(trace):
    """(name, hierarchy) of the one thread's ops and ranges, steps included, as they began."""
    first = facts.begin(facts.steps(trace)[0])
    (line,) = facts.by_thread([e for e in facts.spans(trace) if e["cat"] in ("cpu_op", "user_annotation") and facts.begin(e) >= first]).values()
    return [(e["name"], e["args"].get(HIERARCHY)) for e in line]


def test_ops_stand_in_the_modules_that_torch_says(modules):
    reference, candidate = modules("infer")
    assert reference["with_modules"] == candidate["with_modules"] == 1
    mine = in_order(candidate)
    assert mine == in_order(reference)
    said = {hierarchy for _, hierarchy in mine}
    assert None in said and "TOP(Outer)::forward.inner(Inner)::forward.SELF(Inner)::gate.one(Linear)::forward." in said
    assert not [e for trace in (reference, candidate) for e in trace["traceEvents"] if e.get("cat") == "python_function"]


def test_report_by_module_has_those_of_torchscript(ours):
    trace = ours("modules.py", "infer", shapes=False, KPROF_WITH_MODULES=1, **harness.LATE).trace
    rows = {row["name"] for row in json.loads(harness.cli("report", "--json", "--by", "module", "-n", "0", trace).stdout)["rows"]}
    assert "TOP(Outer).inner(Inner).one(Linear)" in rows, rows
    assert "Source Location" not in harness.cli("report", "--torch", "--group-by-stack-n", "3", trace).stdout  # as torch, which has no stack there


def test_a_backward_node_moves_nothing(modules):
    """torch.profiler asks for no hierarchy of a backward node, yet hands one to every op: from the first such node on each has a later
    op's. Its list, in order, is ours without those nodes (docs/decisions/024)."""
    theirs, mine = map(in_order, modules("train"))
    assert [name for name, _ in theirs] == [name for name, _ in mine]
    nodes = {name.removeprefix(EVALUATE) for name, _ in mine if name.startswith(EVALUATE)}
    asked = [hierarchy for name, hierarchy in mine if name not in nodes]
    assert {hierarchy for name, hierarchy in mine if name in nodes} == {None} and len(set(asked)) > 5
    handed = [hierarchy for _, hierarchy in theirs]
    assert handed == asked + [None] * (len(mine) - len(asked))
    first = next(i for i, (name, _) in enumerate(mine) if name in nodes)
    assert theirs[:first] == mine[:first] and theirs != mine and first > 50


def test_nothing_of_modules_without_the_option(ours):
    trace = facts.load(ours("modules.py", "infer", shapes=False, **harness.LATE).trace)
    assert "with_modules" not in trace and not [e for e in facts.spans(trace) if HIERARCHY in e["args"]]


# ---- markers for torch.profiler alone ----

ASKED = [step in (2, 3, 4) for step in range(9)]


def test_markers_are_those_of_the_profiler(oracle, ours):
    run = ours("markers.py", shapes=False, KPROF_COMPILE_RANGES=1, **harness.LATE)
    reference, candidate = (facts.facts(facts.load(one.trace)) for one in (oracle("markers.py", shapes=False), run))
    assert candidate["op counts"]["inner"] == candidate["op counts"]["raised"] == 3
    assert not facts.differences(reference, candidate)
    assert run.out == f"{ASKED} [] True\n"


def test_markers_over_the_edges_of_a_window_and_the_programs_own_profiler(ours):
    """Its profiler sets the flag and clears it when it stops: markers end there, until the next window."""
    run = ours("markers.py", "held", "profiled", shapes=False, KPROF_COMPILE_RANGES=1, **harness.LATE)
    assert run.out == f"{[step == 2 for step in range(9)]} [2] True\n", run.explain()
    found = collections.defaultdict(list)
    for event in facts.spans(facts.load(run.trace)):
        found[event["name"]].append(event["args"])
    assert len(found["its own"]) == len(found["held since it profiled"]) == 1 and len(found["inner"]) == 2
    assert "held from 1" not in found and [args.get("finished") for args in found["held from 3"]] == [False]


def test_without_the_option_there_are_none(ours):
    run = ours("markers.py", shapes=False, **harness.LATE)
    assert run.out == f"{[False] * 9} [] True\n"
    assert not [e for e in facts.spans(facts.load(run.trace)) if e["name"] in ("outer", "raised")]


def test_torch_compile_is_complete(oracle, ours, inductor):
    reference = facts.facts(facts.load(oracle("script_compile.py", TORCHINDUCTOR_CACHE_DIR=inductor).trace))
    candidate = facts.facts(facts.load(ours("script_compile.py", TORCHINDUCTOR_CACHE_DIR=inductor, KPROF_COMPILE_RANGES=1,
                                            KPROF_STEP="optimizer").trace))
    assert any(name.startswith("## Call CompiledFxGraph") for name in candidate["op counts"])
    assert not facts.differences(reference, candidate)


# ---- Python's garbage collector ----


def collections_of(run):
    """Of each thread, the longest-lived first: how many collections the trace has."""
    found = [e for e in facts.spans(facts.load(run.trace)) if e["name"] == "Python GC"]
    assert all(e["cat"] == "python_function" and list(e["args"]) == ["Ev Idx"] and e["dur"] > 0 for e in found)
    return sorted(collections.Counter(e["tid"] for e in found).values(), reverse=True)


def test_collections_are_those_of_the_profiler(oracle, ours):
    run = ours("garbage.py", shapes=False, KPROF_WITH_STACK=1, KPROF_PYTHON_GC=1, **harness.LATE)
    assert collections_of(run) == collections_of(oracle("garbage.py", shapes=False, stack=True, gc=True)) == [6, 1, 1, 1]
    assert run.out == "[1, 1, 2, 2, 2, 1, 1] 1 True\n", run.explain()


def test_collections_are_recorded_without_stacks_and_only_when_asked_for(ours):
    assert collections_of(ours("garbage.py", shapes=False, KPROF_PYTHON_GC=1, **harness.LATE)) == [6, 1, 1, 1]
    assert collections_of(ours("garbage.py", shapes=False, **harness.LATE)) == []


# ---- arguments of record_function, metadata ----

RANGES = """
import torch
from torch.profiler import record_function
x = torch.ones(2)
for _ in range(6):
    with record_function("bare"):
        pass
    with record_function("with text", 'aw"k\\\\ \\n é'):
        x + x
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1).step()
"""


@pytest.mark.parametrize("shapes", [False, True])
def test_arguments_of_a_range_are_shown_as_torch_shows_them(shapes, oracle, ours, tmp_path_factory):
    script = tmp_path_factory.getbasetemp() / "ranges.py"
    script.write_text(RANGES)
    reference, candidate = (facts.load(run.trace) for run in (oracle(script, shapes=shapes), ours(script, shapes=shapes, **harness.LATE)))
    said = [collections.Counter((e["name"], *(str(e["args"].get(key)) for key in INPUTS)) for e in facts.host_events(trace))
            for trace in (reference, candidate)]
    assert said[0] == said[1]
    assert said[1]["with text", *(["[[]]", "['']", "[[]]", "['']"] if shapes else ["None"] * 4)] == 3
