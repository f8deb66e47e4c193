# SPDX-License-Identifier: Apache-2.0
"""kprof memory: torch's categories, block by block; the peak, leaks, devices; our traces and spools like Kineto's."""
import collections
import gzip
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

import harness

PARAMETER, OPTIMIZER, INPUT, TEMPORARY, ACTIVATION, GRADIENT, AUTOGRAD, UNKNOWN = range(8)
NAMES = ["Parameter", "Optimizer state", "Input", "Temporary", "Activation", "Gradient", "Autograd detail", "Unknown", "Before recording"]
SCRIPT = "memory_kinds.py"


@pytest.fixture(scope="session")
def theirs(once):
    """torch's profiler on the program: the folder with its trace and its memory timeline."""
    def make(folder):
        harness.run_plain(SCRIPT, folder, folder, warm_start=True).ok()
        return folder

    return once("memory_kinds under torch.profiler", make)


@pytest.fixture(scope="session")
def mine(ours):
    return ours(SCRIPT, schedule=None, KPROF_PROFILE_MEMORY=1, **harness.LATE)


def memory(*args):
    run = harness.cli("memory", *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_each_block_is_what_torch_says_it_is(theirs):
    """The differences are those of docs/decisions/023, and no others."""
    raw = json.loads(memory("--raw", theirs / "kineto.json"))
    with gzip.open(theirs / "theirs.raw.json.gz", "rt") as file:
        reference = json.load(file)
    told = {(at, size): kind for at, action, size, kind in raw if action == 2}
    wanted = {(at, size): kind for at, action, size, kind in reference if action == 2}
    assert told.keys() == wanted.keys() and len(told) > 300
    pairs = collections.Counter((wanted[key], told[key]) for key in told)
    for kind in (PARAMETER, OPTIMIZER, INPUT, TEMPORARY, ACTIVATION, GRADIENT, AUTOGRAD, UNKNOWN):
        assert pairs[kind, kind] > 0, NAMES[kind]
    for (their, our), count in pairs.items():
        scratch_of_the_optimizer = our == TEMPORARY
        left_by_the_last_step = (their, our) == (UNKNOWN, INPUT) and count == 1
        assert their == our or scratch_of_the_optimizer or left_by_the_last_step, (NAMES[their], NAMES[our], count)
    for kind in (PARAMETER, OPTIMIZER, GRADIENT, ACTIVATION, AUTOGRAD):  # nothing is called so that is not
        assert sum(count for (_, our), count in pairs.items() if our == kind) == pairs[kind, kind], NAMES[kind]
    given_back = collections.Counter(size for _, action, size, _ in raw if action == 4)
    assert given_back == collections.Counter(size for _, action, size, _ in reference if action == 4)


def totals(shown):
    (device,) = shown["devices"]
    for leak in device["leaks"]:
        leak.pop("stack", None)  # ours was recorded without
    return {key: device[key] for key in ("device", "blocks", "peak", "highest", "leaks")}


def test_our_trace_tells_the_same(theirs, mine):
    reference = totals(json.loads(memory("--json", theirs / "kineto.json")))
    assert reference["peak"]["Parameter"] > 0 and reference["peak"]["Optimizer state"] == 2 * reference["peak"]["Parameter"] + 24
    assert totals(json.loads(memory("--json", mine.trace))) == reference


def test_a_spool_is_read_as_well(ours, mine):
    kept = ours(SCRIPT, schedule=None, KPROF_PROFILE_MEMORY=1, KPROF_EXPORT="none", **harness.LATE)
    assert totals(json.loads(memory("--json", kept.spools[0]))) == totals(json.loads(memory("--json", mine.trace)))


def test_the_timeline_is_the_sum_of_its_categories(mine):
    shown = json.loads(memory("--json", mine.trace))
    (device,) = shown["devices"]
    assert shown["categories"] == ["All", *NAMES] and len(device["timeline"]) > 400
    assert all(row[1] == sum(row[2:]) and min(row[1:]) >= 0 for row in device["timeline"])
    assert [row[0] for row in device["timeline"]] == sorted({row[0] for row in device["timeline"]})
    assert max(row[1] for row in device["timeline"]) == device["peak"]["total"]
    live = sum(row["bytes"] for row in json.loads(memory("--json", "--row-limit", -1, mine.trace))["devices"][0]["live_at_peak"])
    assert live == device["peak"]["total"]


def test_the_leak_is_named(mine):
    (device,) = json.loads(memory("--json", mine.trace))["devices"]
    (leak,) = device["leaks"]
    assert (leak["outermost_op"], leak["bytes"] % 4000, leak["bytes"] // 4000) == ("aten::full", 0, leak["steps"])
    text = memory(mine.trace)
    assert re.search(r"Grows from step to step.*\n.*\n.* aten::full ", text)
    assert text.startswith("Steps 1 to 4: ") and "\n\nCPU: peak " in text  # no schedule: what lies outside of the steps is left out
    assert memory("--step", "all", mine.trace).startswith("CPU: peak ")


def test_steps_and_devices_are_chosen(mine):
    whole = json.loads(memory("--json", mine.trace))["devices"][0]
    part = json.loads(memory("--json", "--steps", "1-2", "--device", "cpu", mine.trace))["devices"][0]
    assert 0 < len(part["timeline"]) < len(whole["timeline"])
    none = harness.cli("memory", "--device", "cuda", mine.trace)
    assert none.returncode == 1 and "no memory of cuda" in none.stderr
    assert harness.cli("memory", "--device", "tape", mine.trace).returncode == 2
    assert harness.cli("memory", "--steps", "7-8", mine.trace).returncode == 1


def test_the_drawing_is_one_file(mine, tmp_path):
    memory("-o", tmp_path / "memory.svg", mine.trace)  # the name says what is written
    tree = ElementTree.parse(tmp_path / "memory.svg")
    (data,) = (json.loads(node.text) for node in tree.iter() if node.tag.endswith("metadata"))
    device = json.loads(memory("--json", mine.trace))["devices"][0]
    assert data["names"] == NAMES and len(data["slices"]) == 800
    assert max(sum(slice[1:]) for slice in data["slices"]) == data["peak"]["total"] == sum(data["peak"]["of"]) == device["peak"]["total"]
    assert [number for number, _ in data["steps"]] == [1, 2, 3, 4] and all(0 <= at - data["from"] < data["span"] for _, at in data["steps"])
    text = (tmp_path / "memory.svg").read_text()
    assert "href" not in text and text.count("http") == 2  # the name of SVG, in the file and in its script
    page = memory("--html", mine.trace)
    assert "<svg" in page and "the peak, by op" in page


def test_a_dash_is_standard_output(mine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert memory(mine.trace, "-o", "-") == memory(mine.trace) and not list(tmp_path.iterdir())


def test_out_of_memory_and_no_memory(ours):
    text = memory(ours("memory.py", schedule="wait=1,warmup=1,active=6,repeat=1", KPROF_PROFILE_MEMORY=1, **harness.LATE).trace)
    assert re.search(r"Out of memory at [\d.]+ ms \(step 4\): 1048576.00 TiB requested.* in aten::empty", text)
    none = harness.cli("memory", ours("resnet18.py").trace)  # which other files of tests record, too
    assert none.returncode == 1 and "kprof run --profile-memory" in none.stderr


def test_a_loaders_line_does_not_have_the_backward_of_the_first_layer(tmp_path):
    """Its ops make no node of the graph, so they show the number of the next one's: the first layer's."""
    script = tmp_path / "train.py"
    script.write_text("""
import torch
model, rows = torch.nn.Conv2d(3, 8, 3), torch.utils.data.TensorDataset(torch.randn(12, 3, 16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch, in torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True):
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
""")
    run = harness.run_by_kprof(script, tmp_path / "out", schedule=None, KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops", KPROF_EXPORT="trace,stacks,memory",
                               LAZY_DYNAMO=1).ok()
    said = memory(run.trace, "-n", "100")
    found = set(re.findall(r"((?:backward of )?train\.py:\d+ <module>) .*aten::convolution_backward", said))
    reported = harness.cli("report", "--sort", "mem", "-n", "0", run.trace).stdout
    assert found == {"backward of train.py:6 <module>"}, said
    assert re.search(r"^aten::convolution_backward .* backward of train\.py:6 <module>$", reported, re.M), reported
    assert re.search(r"train\.py:5 <module> .*aten::stack", said), said
    page = run.trace.with_name(run.trace.name.replace(".pt.trace.json.gz", ".memory.html")).read_text()
    own = tmp_path / "own.html"
    memory(run.trace, "--html", "-o", own)
    rows = [re.findall(r"<tr>(?:(?!</tr>).)*convolution_backward(?:(?!</tr>).)*</tr>", text, re.S) for text in (page, own.read_text())]
    assert rows[0] and rows[0] == rows[1] and not any("train.py:5" in row for row in rows[0]), rows


@pytest.mark.parametrize("kind, more", [("sparse", 0), ("graph", 4 * 256)])
def test_parameters_are_found_where_not_all_gradients_are_as_large(kind, more, tmp_path):
    """Those of create_graph go with their graph; of the sparse embedding none has its size. An input that wants a gradient counts, as in torch."""
    run = harness.run_kprof("memory_parameters.py", tmp_path / "out", kind, schedule=None, KPROF_PROFILE_MEMORY=1).ok()
    device, = json.loads(harness.cli("memory", run.trace, "--json", "--step", "all").stdout)["devices"]
    assert device["end"]["Parameter"] == int(run.out.split()[1]) + more, device["end"]
