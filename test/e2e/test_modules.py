# SPDX-License-Identifier: Apache-2.0
"""kprof report --by module and --by class: forward and backward of each, beside hooks of the program that clock them."""
import collections
import json
import re
import statistics

import pytest

import facts
import harness

STEPS = 6


WAYS = [("forward", "none"), ("backward", "none"), ("backward", "kept")]


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def clocked(request, tmp_path_factory):
    """The way that hooks clock (those of the other would be part of its time), and the run."""
    folder = tmp_path_factory.mktemp("modules")
    return request.param[0], harness.run_kprof("module_clock.py", folder, *request.param, shapes=False, KPROF_WITH_STACK="1",
                                               schedule=f"skip_first=1,warmup=1,active={STEPS},repeat=1").ok()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return harness.run_kprof("module_clock.py", tmp_path_factory.mktemp("once"), "forward", "none", shapes=False, KPROF_WITH_STACK="1",
                             schedule=f"skip_first=1,warmup=1,active={STEPS},repeat=1").ok()


def rows(trace, by, *argv):
    done = harness.cli("report", "--by", by, "-n", "0", "--json", *argv, trace)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def test_a_modules_forward_and_backward_last_as_long_as_its_hooks_clock(clocked):
    way, run = clocked
    spans, steps = json.loads(run.out), [rows(run.trace, "module", "--step", str(2 + i)) for i in range(STEPS)]
    assert len(spans) == 21 and "Net_0.Block_2.GELU_2" in spans
    for path, milliseconds in spans.items():
        off = [shown[path][f"{way}_ms"] - one for shown, one in zip(steps, milliseconds)]
        least = min(off, key=abs)  # another program may come between in some steps, and hooks are part of a call
        assert abs(least) < max(0.08, 0.03 * statistics.median(milliseconds)), (path, off, milliseconds)


def test_a_total_is_forward_and_backward(run):
    for path, row in rows(run.trace, "module").items():
        if path:
            assert row["total_ms"] == pytest.approx(row["forward_ms"] + row["backward_ms"], abs=1e-5), path
            assert row["total_ms"] == pytest.approx(STEPS * row["total_ms_a_step"], abs=1e-4), path
            assert row["count"] == STEPS and row["backward_ms"] > 0, path


def test_a_class_has_the_time_of_all_its_modules(run):
    by_module, shown = rows(run.trace, "module"), rows(run.trace, "class")
    of = collections.defaultdict(list)
    for path, row in by_module.items():
        of[re.sub(r"_\d+$", "", path.rpartition(".")[2])].append((path, row))
    assert set(shown) == set(of)
    for name, parts in of.items():
        for key in ("self_ms", "count", "self_percent"):
            assert shown[name][key] == pytest.approx(sum(row[key] for _, row in parts), abs=1e-3), (name, key)
        outer = [row for path, row in parts if f"{name}_" not in path.rpartition(".")[0]]
        for key in ("forward_ms", "backward_ms", "total_ms") if name else ():
            assert shown[name][key] == pytest.approx(sum(row[key] for row in outer), abs=1e-4), (name, key)
    assert (shown["Linear"]["modules"], shown["Sequential"]["modules"], shown["Net"]["modules"]) == (8, 2, 1)


def test_the_table_says_how_many_modules_a_class_has(run):
    said = harness.cli("report", "--by", "class", "--sort", "total", run.trace).stdout
    assert re.search(r"^class +self ms +self % +total ms +forward +backward +count +longest ms +total a step +line$", said, re.M), said
    assert re.search(r"^Linear x 8 ", said, re.M) and re.search(r"^Net ", said, re.M), said
    assert re.search(r"^Net_0 ", harness.cli("report", "--by", "module", "--sort", "total", run.trace).stdout, re.M)


def test_the_table_of_ops_leads_to_the_modules(run):
    said = harness.cli("report", run.trace).stdout
    assert "\nparts of the model, forward and backward: kprof report --by module, or --by class\n" in said
    assert "parts of the model (" not in said and "parts of the model" not in harness.cli("report", "--by", "module", run.trace).stdout


def test_without_modules_the_flag_that_records_them_is_told(tmp_path):
    run = harness.run_kprof("module_clock.py", tmp_path, "forward", "none", schedule="wait=1,active=1,repeat=1", KPROF_WITH_STACK="ops").ok()
    done = harness.cli("report", "--by", "class", run.trace)
    assert done.returncode == 1 and "--with-stack 1" in done.stderr and done.stdout == ""
    told = harness.cli("report", run.trace).stdout
    assert "parts of the model (--with-stack 1)" in told and "--by module" not in told


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return harness.run_kprof("module_names.py", tmp_path_factory.mktemp("names"), schedule="wait=1,active=1000", shapes=False,
                             KPROF_WITH_STACK="1", KPROF_PROFILE_MEMORY="1").ok()


def calls_of_modules(trace):
    events = [e for e in facts.load(trace)["traceEvents"] if e["name"].startswith("nn.Module: ")]
    return sorted(events, key=lambda e: e["ts"])


def test_a_modules_event_carries_the_name_that_the_program_gives_it(named):
    told, calls = json.loads(named.out), calls_of_modules(named.trace)
    assert not [call for call in told if call and call.startswith("Loud")], "kprof ran the program's code"
    names = [e["args"].get("Python module name") for e in calls]
    assert len(names) > 60 and names == [None if name == "odd.inner" else name for name in told][-len(names):]  # its holder is a dict of the program's own
    assert {"blocks.2.norm", "parts.deep.0.1", "öffnung", "head", "blocks.0.act"} <= set(names) and "tied" not in names
    unnamed = {e["name"][len("nn.Module: "):].rpartition("_")[0] for e in calls if not e["args"].get("Python module name")}
    assert unnamed == {"Net", "MSELoss", "Softsign", "Hardswish", "Sequential"}


def test_a_row_of_a_module_has_its_name_and_torchs(named):
    shown = rows(named.trace, "module")
    assert shown["Net_0.Block_2.Linear_3"]["path"] == "Net_0.blocks.2.fc1 (Linear_3)"
    assert shown["Net_0.Block_2.ReLU_0"]["path"] == "Net_0.blocks.2.ReLU_0"  # its name is that of the first block's
    assert shown["Block_1.Linear_2"]["path"] == "blocks.1.fc1 (Linear_2)" and "path" not in shown["MSELoss_0"]
    said = harness.cli("report", "--by", "module", "-n", "0", named.trace).stdout
    assert re.search(r"^Net_0\.parts\.embed \(Linear_0\) ", said, re.M) and re.search(r"^Net_0\.head \(Linear_5\) ", said, re.M), said


def test_a_modules_name_stands_in_stacks_and_chooses_the_time(named, tmp_path):
    stacks = harness.cli("stacks", "--all-paths", named.trace).stdout
    assert ";nn.Module: Net_0;" in stacks and ";nn.Module: blocks.2.fc1 (Linear_3);" in stacks and "nn.Module: Linear_" not in stacks
    for name in ("blocks.2.fc1", "Linear_3"):
        within = rows(named.trace, "module", "--within", name)
        assert {row.get("path") for row in within.values() if row["self_ms"]} >= {"Net_0.blocks.2.fc1 (Linear_3)"}, within
        assert not [path for path in within if "Linear_2" in path]
    part = tmp_path / "part.json"
    assert harness.cli("slice", "--within", "parts.deep.*", "-o", part, named.trace).returncode == 0
    kept = {e["args"].get("Python module name") for e in calls_of_modules(part)}
    assert {"parts.deep.0", "parts.deep.0.0", "parts.deep.0.1"} <= kept and "head" not in kept
    assert rows(part, "module")["Net_0.Sequential_0.Linear_4"]["path"] == "Net_0.parts.deep.0.0 (Linear_4)"


def test_memory_tells_a_modules_name(named):
    said = harness.cli("memory", "-n", "0", named.trace).stdout
    assert re.search(r"  blocks\.1\.norm \(LayerNorm_1\), module_names\.py:\d+ forward", said), said
