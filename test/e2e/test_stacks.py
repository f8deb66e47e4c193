# SPDX-License-Identifier: Apache-2.0
"""kprof stacks on a real training: its roots sum to the wall time, and parts are what ranges by hand measure."""
import collections
import json
import re

import pytest

import harness
import facts

# of the ten programs that test/bench/parts.py runs with each setting
RECORDINGS = [("perceptron", "1"), ("perceptron", "ops"), ("perceptron", "native"), ("accumulating", "1"), ("transformer", "ops")]


@pytest.fixture(scope="module", params=RECORDINGS, ids="-".join)
def recorded(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks")
    program, setting = request.param
    run = harness.run_kprof("parts.py", folder, program, schedule="wait=1,warmup=1,active=3,repeat=1", shapes=False,
                            KPROF_WITH_STACK=setting).ok()
    return run.trace


def folded(trace, *flags):
    done = harness.cli("stacks", trace, *flags)
    assert done.returncode == 0, done.stderr
    return [re.fullmatch(r"(.+) (\d+)", line).groups() for line in done.stdout.splitlines()]


def roots(lines):
    sums = collections.Counter()
    for stack, us in lines:
        sums[stack.partition(";")[0]] += int(us)
    return sums


def slices(trace):
    return [e for e in facts.load(trace)["traceEvents"] if e.get("ph") == "X" and e["cat"] != "Trace"]


def test_roots_sum_to_the_wall_time(recorded):
    events = slices(recorded)
    main = next(e["tid"] for e in events if e["name"].startswith("ProfilerStep#"))
    own = [e for e in events if e["tid"] == main and e["cat"] in ("cpu_op", "user_annotation", "python_function")]
    wall = max(e["ts"] + e["dur"] for e in own) - min(e["ts"] for e in own)
    for at in ("run", "forward"):
        assert sum(roots(folded(recorded, "--step", "all", "--backward-at", at)).values()) == pytest.approx(wall, rel=0.01)


def test_parts_are_what_ranges_by_hand_measure(recorded):
    events = slices(recorded)
    sums, whole = roots(folded(recorded)), sum(e["dur"] for e in events if e["name"].startswith("ProfilerStep#"))
    for part in ("forward", "backward", "optimizer"):
        by_hand = sum(e["dur"] for e in events if e["name"] == f"by hand: {part}")
        assert sums[part] / whole == pytest.approx(by_hand / whole, abs=0.03), (part, sums, by_hand, whole)


def test_ops_are_leaves_below_the_line_that_called_them(recorded):
    lines = folded(recorded)
    source = (harness.HERE / "scripts" / "parts.py").read_text().splitlines()
    numbered = {text.strip(): n + 1 for n, text in enumerate(source)}
    ran = rf"parts.py({numbered['loss = loss_of(model(x), y)']}): main"
    assert any(stack.startswith("forward;") and ran in stack and stack.endswith("aten::addmm") for stack, _ in lines)
    backward = rf"parts.py({numbered['loss.backward()']}): main"
    assert any(stack.startswith("backward;") and backward in stack and stack.endswith("aten::mm") for stack, _ in lines)
    caused = folded(recorded, "--backward-at", "forward")
    assert any(stack.startswith("backward;") and ran in stack and stack.endswith("aten::mm") for stack, _ in caused)
    assert not any("_PyEval" in stack for stack, _ in lines)


def test_no_file_is_left_when_it_fails_and_several_traces_are_one_graph(recorded, tmp_path):
    out = tmp_path / "flames.svg"
    assert harness.cli("stacks", tmp_path / "none.json", "--svg", "-o", out).returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert harness.cli("stacks", recorded, recorded, "-o", out).returncode == 0
    svg = out.read_text()
    assert svg.count("<svg ") == 1 and ">2 traces: wall time of the main thread; backward at the line that ran<" in svg
    assert harness.cli("stacks", recorded, "-o", tmp_path / "flames.json").returncode == 0
    assert json.loads((tmp_path / "flames.json").read_text())["traces"] == 1
    once, twice = (sum(roots(folded(*given)).values()) for given in ([recorded], [recorded, recorded]))
    assert abs(twice - 2 * once) <= 2  # each sum is rounded to a microsecond


THREADED = """import threading, torch
def train():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        optimizer.zero_grad(), model(torch.ones(8, 64)).sum().backward(), optimizer.step()
torch.ones(4).sum()
thread = threading.Thread(target=train); thread.start(); thread.join()
"""


@pytest.mark.parametrize("schedule", [None, "active=100", "wait=1,warmup=1,active=3,repeat=1"])
def test_a_training_in_a_thread_of_its_own_is_what_is_shown(tmp_path, schedule):
    script = tmp_path / "threaded.py"
    script.write_text(THREADED)
    trace = harness.run_kprof(script, tmp_path / "out", schedule=schedule, shapes=False, KPROF_WITH_STACK="ops", OMP_NUM_THREADS=1).ok().trace
    lines, report = folded(trace), json.loads(harness.cli("report", "--json", trace).stdout)
    whole = report["steps"]["mean_ms"] * report["steps"]["count"] * 1e3
    assert sum(roots(lines).values()) == pytest.approx(whole, rel=0.02)
    assert all("threaded.py" in stack for stack, _ in lines if "aten::" in stack), lines
    assert re.search(r"^parts    \S+ forward [\d.]+ %, backward [\d.]+ %, optimizer ", harness.cli("report", trace).stdout, re.M)
