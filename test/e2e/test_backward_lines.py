# SPDX-License-Identifier: Apache-2.0
"""What autograd's engine runs beside a backward op (sums of a bias's gradient, of what was broadcast) is backward of the forward line."""
import json
import re

import harness
import pytest

TRAINING = """
import torch
linear, scale = torch.nn.Linear(64, 64), torch.nn.Parameter(torch.ones(64))
optimizer = torch.optim.SGD([*linear.parameters(), scale], lr=0.01)
def double(grad):
    return torch.logaddexp(grad, grad)  # line 6, of a hook
for i in range(6):
    hidden = linear(torch.randn(32, 64))  # line 8
    hidden.register_hook(double)
    scaled = hidden * scale  # line 10
    optimizer.zero_grad()
    scaled.square().sum().backward()  # line 12
    optimizer.step()
"""


@pytest.fixture(scope="module", params=["ops", "1", "native"])
def trace(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backward")
    (folder / "train.py").write_text(TRAINING)
    return harness.run_kprof(folder / "train.py", folder / "out", schedule="wait=1,warmup=1,active=3,repeat=1", KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK=request.param).ok().trace


def told(*args):
    done = harness.cli(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(*args):
    """Each own line, and whether it is backward of it, with its count."""
    rows = json.loads(told("report", "--json", "-n", "0", "--step", "all", *args, "--by", "line"))["rows"]
    return {(row["name"].split(" ")[0], row.get("backward", False)): row["count"] for row in rows}


def test_sums_of_gradients_stand_at_the_forward_line(trace):
    found = lines("--within", "aten::sum", trace)
    assert {place: count for place, count in found.items() if place[1]} == {("train.py:8", True): 3, ("train.py:10", True): 3}, found
    assert found.keys() - {("train.py:8", True), ("train.py:10", True)} <= {("train.py:12", False)}, found  # the loss
    assert {("train.py:8", True), ("train.py:10", True), ("train.py:12", False)} <= lines(trace).keys()  # and AccumulateGrad's


def test_a_hook_and_accumulated_gradients_stay_where_they_run(trace):
    assert lines("--within", "aten::logaddexp", trace).keys() == {("train.py:6", False)}
    assert ("train.py:12", False) in lines("--within", "torch::autograd::AccumulateGrad", trace)


def test_memory_is_told_by_the_forward_line(trace, tmp_path):
    said = told("memory", "-n", "0", trace)
    live = re.findall(r"(backward of .*?|\S+, .*?|train\S+ \S+) +autograd::engine\S+ \w+ +(aten::\w+)$", said[:said.index("Allocated most")], re.M)
    places = {(op, place.replace("Linear_0, ", "")) for place, op in live if op in ("aten::sum", "aten::mm")}
    assert places == {(op, f"backward of train.py:{line} <module>") for op, line in (("aten::sum", 8), ("aten::sum", 10), ("aten::mm", 8))}, said
    taken = said[said.index("Allocated most"):]
    assert re.search(r" backward of (Linear_0, )?train\.py:8 <module> .*aten::mm", taken), said
    assert re.search(r" (Linear_0, )?train\.py:8 <module> .*aten::addmm", taken) and not re.search(r"backward.* aten::addmm", said), said
    rows = json.loads(told("memory", "--json", "-n", "0", trace))["devices"][0]["live_at_peak"]
    assert {row["op"] for row in rows if row.get("backward")} == {"aten::sum", "aten::mm"}, rows
    told("memory", "--html", "-n", "0", "-o", tmp_path / "m.html", trace)
    page = (tmp_path / "m.html").read_text()
    shown = re.findall(r'<td class="o">aten::mm</td>.*?<td class="o">([^<]*)</td></tr>', page, re.S)
    assert shown and all(place.startswith("backward of ") for place in shown), shown
