# SPDX-License-Identifier: Apache-2.0
"""All views of a trace agree on every figure that they share: report, view, html, advise, diff and memory, on every trace that lies here or is built here."""
import functools
import gzip
import json
import pathlib
import re
import tempfile

import pytest

import advicetraces
import harness
import pagedata
from test_advice_findings import evaluating
from test_diff import ahead
from test_view import trace_make

DATA = harness.ROOT / "test" / "data"
STORED = {path.name.split(".")[0]: path for folder in ("traces", "gpu/*") for path in sorted(DATA.glob(f"{folder}/*.pt.trace.json.gz"))}
MADE = {f"{kind} {name}": make for kind, table in (("sick", advicetraces.SICKNESSES), ("well", advicetraces.TWINS)) for name, make in table.items()}
FOLDER = tempfile.TemporaryDirectory(prefix="agreement")


def edges(path):
    """Kernels, calls and waits that reach over the edge of a step; a thread beside the program's first that waits; work of before the recording."""
    trace = advicetraces.Trace()
    def make(base):
        trace.work("k_inside", base + 100, 50)
        trace.work("k_late", base + 995, 10, ahead=90)  # is asked for in the step, and ends in the next
        trace.work("k_next", base + 1010, 30, ahead=60)  # is asked for in the step, and begins in the next
        trace.add("python_function", "<built-in method acquire of _thread.lock object at 0x7f0000000000>", 2, base + 300, 1900)
        trace.add("cpu_op", "aten::wide", 3, base + 900, 300)
        trace.add("cpu_op", "aten::wide", 3, base + 950, 100)
    trace.each(make)
    trace.add("kernel", "k_before", 7, 10020, 30, pid=0, device=0, stream=7, correlation=-5)
    return trace.write(path)


def named_modules(path):
    """Python's calls with nn.Modules that the program has names for; two of three steps are looked at."""
    trace = advicetraces.Trace()
    def make(base):
        trace.add("python_function", "train.py(3): main", 1, base + 10, 900, **{"Python id": base, "Python parent id": None})
        for i in range(2):
            trace.add("python_function", f"nn.Module: Linear_{i}", 1, base + 100 + 300 * i, 200, **{"Python module name": f"blocks.{i}.fc", "Python id": base + 1 + i, "Python parent id": base})
            trace.add("cpu_op", "aten::addmm", 1, base + 110 + 300 * i, 100 + 20 * i)
    return trace.each(make).write(path)


def with_workers(path, names=1, level=1):
    """A training that waits for its DataLoader, whose workers have traces beside it, with so many names of 2000 letters."""
    folder = path.parent / path.name.split(".")[0]
    (folder / "children").mkdir(parents=True, exist_ok=True)
    trace = advicetraces.Trace(kprof={"version": "1", "cores": "2"})
    def make(base):
        trace.add("cpu_op", "aten::mm", 1, base + 650, 300)
        trace.add("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, base + 10, 600, **{"Call stack": advicetraces.SICK})
    for pid in ("71", "72"):
        head = {"schemaVersion": 1, "kprof": {"version": "1", "parent_pid": "7", "cores": "2", "steps": 0, "complete": False, "busy_ms": 900, "busy_of_ms": 1000}}
        work = [{"ph": "X", "cat": "cpu_op", "name": f"{i:07d} " * (250 if names > 1 else 1), "pid": int(pid), "tid": int(pid), "ts": i, "dur": 1, "args": {"Call stack": "data.py(7): __getitem__;"}}
                for i in range(max(names, 300))]
        with gzip.open(folder / "children" / f"vm_{pid}.1.pt.trace.json.gz", "wt", compresslevel=level) as out:
            json.dump({**head, "traceEvents": work}, out)
    return trace.each(make).write(folder / path.name)


def saving(path):
    """Steps 10 and 20 evaluate, and 20 saves behind that."""
    return evaluating(path, saves=200)


def generating(path):
    """Thirty steps that each take a token, of which three take a prompt of 40."""
    trace, at = advicetraces.Trace(), 1000
    for number in range(1, 31):
        tokens = 40 if number % 10 == 5 else 1
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, 2000 + 500 * tokens)
        trace.add("cpu_op", "aten::embedding", 1, at + 5, 90, **{"Input Dims": [[1000, 64], [1, tokens], [], [], []], "Input type": ["float", "long int", "Scalar", "Scalar", "Scalar"]})
        trace.add("cpu_op", "aten::mm", 1, at + 100, 1800 + 500 * tokens)
        at += 2000 + 500 * tokens
    return trace.write(path)


def by_hand(path):
    """No optimizer: parameters are written behind each second backward pass."""
    trace, engine = advicetraces.Trace(), "autograd::engine::evaluate_function: "
    for i in range(12):
        base = 1000 + 1000 * i + 50 * (i % 2)
        trace.add("cpu_op", "aten::mm", 1, base, 300, **{"Sequence number": 1, "Fwd thread id": 0})
        trace.add("cpu_op", engine + "MmBackward0", 1, base + 310, 400, **{"Sequence number": 1, "Fwd thread id": 1})
        trace.add("cpu_op", engine + "torch::autograd::AccumulateGrad", 1, base + 710, 10)
        if i % 2:
            trace.add("cpu_op", "aten::sub_", 1, base + 730, 20)
    return trace.write(path)


BUILT = {"by hand": by_hand, "workers": with_workers, "edges": edges, "names of modules": named_modules, "screens": trace_make, "evaluations": evaluating, "evaluations and a save": saving, "prompts": generating,
         "a host ahead": lambda path: ahead(path, 1000)}


@functools.cache
def trace_of(name):
    if name in STORED:
        return STORED[name]
    path = pathlib.Path(FOLDER.name) / (name.replace(" ", "_") + ".pt.trace.json")
    return BUILT[name](path) if name in BUILT else MADE[name]().write(path)


NAMES = [*STORED, *BUILT, *MADE]
every = pytest.mark.parametrize("name", NAMES)


@functools.cache
def asked(name, command, *flags):
    said = harness.cli(command, *[trace_of(name)] * (2 if command == "diff" else 1), "--json", *flags)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def report(name, *flags):
    return asked(name, "report", "-n", "0", *flags)


@functools.cache
def tabs(name):
    return {tab["tab"]: tab["rows"] for tab in asked(name, "view")["tabs"]}


@functools.cache
def page(name):
    path = pathlib.Path(FOLDER.name) / (name.replace(" ", "_") + ".html")
    said = harness.cli("html", trace_of(name), "-o", path)
    assert said.returncode == 0, said.stderr
    return next(pagedata.traces(path))


def near(value):
    """One digit of the last that is printed."""
    return pytest.approx(value, rel=1e-5, abs=2e-6)


def steps_of(name):
    return {row["step"]: row["ms"] for row in asked(name, "report", "--by", "step")["rows"]}


@every
def test_steps_have_one_time_everywhere(name):
    said, by_step, advice, (head, _, _) = report(name)["steps"], steps_of(name), asked(name, "advise"), page(name)
    assert said["count"] == len(by_step) == advice["steps"] == len(head["steps"])
    assert {row["step"]: near(row["time_ms"]) for row in tabs(name)["Steps"] if "step" in row} == by_step
    assert {number: near((end - start) / 1e6) for number, start, end, *_ in head["steps"]} == by_step
    if not by_step:
        return
    assert near(said["mean_ms"]) == sum(by_step.values()) / len(by_step) and (said["first"], said["last"]) == (min(by_step), max(by_step))
    assert (said["least_ms"], said["most_ms"]) == (near(min(by_step.values())), near(max(by_step.values())))
    if advice["ahead"] is None:
        assert advice["step_ms"] == near(said["mean_ms"]) and advice["step_median_ms"] == near(said["median_ms"])
        assert head["advice"]["step"] / 1e6 == near(said["mean_ms"])
    else:
        assert said["on_gpu_mean_ms"] == near(advice["step_ms"]) and advice["step_ms"] > 1.5 * said["mean_ms"]
        assert re.search(r"^         The host runs ahead of the GPU, where a step takes [\d.]+ ms \(mean\)$", harness.cli("report", trace_of(name)).stdout, re.M)
    compared = asked(name, "diff")
    assert compared["a"] == compared["b"] and compared["a"]["samples_are"] == "steps" and compared["a"]["samples"] == said["count"]
    if advice["ahead"] is None:
        assert compared["step"]["a_ms"] == compared["step"]["b_ms"] == near(said["median_ms"])
    assert all(row["change_ms"] == 0 for row in [compared["step"], *compared["parts"]])


PARTS = ("compute", "communication", "copies", "data_loading", "idle")
SHOWN = {"comm_ms": "communication", "copies_ms": "copies", "loading_ms": "data_loading"}


@every
def test_parts_of_a_step_are_one_everywhere(name):
    rows, advice, (head, _, _) = asked(name, "report", "--by", "step")["rows"], asked(name, "advise"), page(name)
    if not rows:
        return
    has_gpu = asked(name, "report", "--by", "step")["gpu"]
    assert [[near(ns / 1e6) for ns in parts] for _, _, _, *parts in head["steps"]] == [[row["parts_ms"][part] for part in PARTS] for row in rows]
    shown = {**SHOWN, "compute_ms" if has_gpu else "ops_ms": "compute", "idle_ms" if has_gpu else "no_op_ms": "idle"}
    for tab, row in zip([row for row in tabs(name)["Steps"] if "step" in row], rows):
        assert {part: near(tab[key]) for key, part in shown.items() if key in tab} == {part: row["parts_ms"][part] for key, part in shown.items() if key in tab}
    if advice["ahead"] is None:
        assert {part: near(sum(row["parts_ms"][part] for row in rows) / len(rows)) for part in PARTS} == advice["parts_ms"]
    whole = report(name)
    if not has_gpu and whole["rows_of"] == "steps" or sum(steps_of(name).values()) == near(whole["shares_of_ms"]):
        if not has_gpu:
            assert near(whole["ops_ms"] / len(rows)) == advice["parts_ms"]["compute"] and near(whole["no_op_ms"] / len(rows)) == advice["parts_ms"]["idle"]
            assert near(whole["data_loading_ms"] / len(rows)) == advice["parts_ms"]["data_loading"]


@every
def test_forward_backward_and_the_others_are_one_everywhere(name):
    said, (head, columns, _) = report(name), page(name)
    mean = [sum(ns) / len(head["step_parts"]) / 1e6 for ns in zip(*head["step_parts"])]
    names = [head["part_names"][part].replace(" ", "_") for part in head["part_order"]]
    assert {name: near(ms) for name, ms in zip(names, mean)} == said.get("parts_ms_a_step", {})
    for (_, start, end, *_), parts in zip(head["steps"], head["step_parts"]):
        assert sum(parts) == end - start
    assert len(columns["part"]) == len(columns["kind"]) and max(columns["part"], default=0) < len(head["part_names"])


def figures(row):
    return row["self_ms"], row["total_ms"], row["count"], row.get("gpu_self_ms", 0)


def ops_of(rows):
    """What no operator covers is a row of the report alone."""
    return [row for row in rows if not row["name"].startswith("outside any op")]


def named(rows):
    return {f"nn.Module: {row['path']}" if "path" in row else row["name"] or "(no name)": figures(row) for row in ops_of(rows)}


LONGEST = 500  # the page cuts names later


def in_order(rows):
    return [((f"nn.Module: {row['path']}" if "path" in row else row["name"])[:LONGEST], *figures(row)) for row in rows]


def paged(texts, rows):
    return [(texts[text][:LONGEST], near(own / 1e6), near(total / 1e6), count, near(gpu / 1e6)) for text, _, own, total, count, gpu, *_ in rows]


def step_rows(name, kind):
    """(number, rows) of each step in the page."""
    head, columns, _ = page(name)
    figures = (pagedata.wide(columns, f"row.{key}") for key, _ in head["row_figures"])
    rows = list(zip(columns["rowName"], columns["rowLine"], *figures))
    begins = head[f"step_{kind}"]
    for i, (number, *_) in enumerate(head["steps"]):
        yield number, rows[begins[i]:begins[i + 1]]


@every
def test_operators_have_one_self_and_total_time_everywhere(name):
    head, _, texts = page(name)
    assert paged(texts, head["ops"]) == in_order(ops_of(report(name, "--step", "all")["rows"]))
    in_view = {row["name"]: (near(row["self_ms"]), near(row["total_ms"]), row["calls"], near(row.get("gpu_ms", 0)))
               for row in tabs(name)["Ops"] if not row["level"] and not row["name"].startswith("outside any op")}
    assert in_view == named(report(name)["rows"])
    for number, rows in first_and_last(step_rows(name, "ops")):
        said = ops_of(report(name, "--step", str(number))["rows"])
        assert paged(texts, rows) == in_order(said), number
        backward = ("", "backward of ")
        assert [backward[line & 1] + texts[(line >> 1) - 1] if line >> 1 else None for _, line, *_ in rows] == [
            backward[row.get("line_backward", False)] + row["line"] if "line" in row else None for row in said], number


def first_and_last(steps):
    steps = list(steps)
    return steps if len(steps) < 5 else [*steps[:2], *steps[-2:]]


def kernels(name, *flags):
    """(name, time, times, the longest); the report says where there are none."""
    said = harness.cli("report", trace_of(name), "--by", "kernel", "--json", "-n", "0", *flags)
    if said.returncode:
        assert "no work of a GPU" in said.stderr, said.stderr
        return []
    return [(row["name"][:LONGEST], row["gpu_self_ms"], row["count"], row["gpu_longest_ms"]) for row in json.loads(said.stdout)["rows"]]


@every
def test_kernels_are_the_same_everywhere(name):
    assert [(row["name"][:LONGEST], near(row["time_ms"]), row["times"], near(row["longest_ms"])) for row in tabs(name)["Kernels"]] == kernels(name)
    head, _, texts = page(name)
    def on_page(rows):
        return [(texts[text][:LONGEST], near(gpu / 1e6), count, near(most / 1e6)) for text, _, _, _, count, gpu, most, *_ in rows]
    assert on_page(head["kernels"]) == kernels(name, "--step", "all")
    for number, rows in first_and_last(step_rows(name, "kernels")):
        assert on_page(rows) == kernels(name, "--step", str(number)), number
    if not kernels(name):
        return
    steps, compared = report(name)["steps"], asked(name, "diff", "--all")
    if steps["count"] and compared["a"]["samples"] == steps["count"]:
        of_steps = kernels(name, "--step", f"{steps['first']}-{steps['last']}")
        assert sum(row["a_count"] for row in compared["kernels"]) * steps["count"] == pytest.approx(sum(count for _, _, count, _ in of_steps), rel=1e-4)
    stacks = harness.cli("stacks", trace_of(name), "--metric", "gpu", "--step", "all")
    if stacks.returncode == 0:
        told = sum(int(line.rsplit(" ", 1)[1]) for line in stacks.stdout.splitlines())
        assert told == pytest.approx(1e3 * sum(ms for _, ms, _, _ in kernels(name, "--step", "all")), rel=0.01, abs=100)


@every
def test_modules_are_the_same_everywhere(name):
    def module_rows(*flags):
        said = harness.cli("report", trace_of(name), "--by", "module", "--json", "-n", "0", *flags)
        return {(row.get("path") or row["name"]): row["self_ms"] for row in json.loads(said.stdout)["rows"]} if said.returncode == 0 else None

    def on_page(rows):
        found = {}
        for text, _, own, *_ in rows:
            found[texts[text]] = found.get(texts[text], 0) + own / 1e6
        return {key: near(ms) for key, ms in found.items()}

    head, _, texts = page(name)
    whole = module_rows("--step", "all")
    if whole is None:
        assert set(on_page(head["modules"])) <= {""}
        return
    assert on_page(head["modules"]) == whole
    for number, rows in first_and_last(step_rows(name, "modules")):
        assert on_page(rows) == module_rows("--step", str(number))


@every
def test_findings_are_the_same_everywhere(name):
    advice, (head, _, _) = asked(name, "advise"), page(name)
    said = [(finding["what"], finding["severity"], finding["step_ms"], finding["share"]) for finding in advice["findings"]]
    words = {True: "critical", False: "warning"}
    assert [(f["what"], words[f["critical"]], near(f["cost"] / 1e6), near(f["share"])) for f in head["advice"]["findings"]] == said
    assert [f["change"] for f in head["advice"]["findings"]] == [f["change"] for f in advice["findings"]]
    rows = [row for row in tabs(name)["Findings"] if not row["level"] and row["name"].startswith(("CRITICAL", "WARNING"))]
    assert [(row["name"].split(": ", 1)[1], row["name"].split(":")[0].lower(), near(row["a_step_ms"]), near(row["share"])) for row in rows] == said
    assert (advice["verdict"] == "healthy") <= head["advice"]["healthy"] and advice["missing"] == head["advice"]["missing"]


@every
def test_evaluations_and_prompts_are_told_the_same_everywhere(name):
    """The report has them without what to type."""
    advice, (head, _, _), said = asked(name, "advise"), page(name), harness.cli("report", trace_of(name)).stdout
    notes = dict(zip(head["advice"]["note_titles"], head["advice"]["notes"]))
    in_view = " ".join(row["name"].strip() for row in tabs(name)["Findings"])  # on lines of a screen
    for key, title in (("evaluated", "Passes without backward"), ("prompts", "Prompts")):
        assert notes.get(title) == advice[key]
        assert f"NOTE {advice[key]}" in in_view if advice[key] else f" {title.lower()} during the training" not in in_view
        core = re.sub(r"\. To time them: .*", "", advice[key] or "")
        assert f"         {core}\n" in said if core else f" {title.lower()} during the training" not in said, said
    if name in ("evaluations", "evaluations and a save", "prompts"):  # made for it
        assert advice["prompts" if name == "prompts" else "evaluated"]


@every
def test_rows_by_function_and_by_line_add_up_to_those_by_op(name):
    def sums(by):
        rows = harness.cli("report", trace_of(name), "--by", by, "--json", "-n", "0", "--step", "all")
        if rows.returncode:
            assert re.search(r"no (function of Python|line of the program) in it", rows.stderr), rows.stderr
            return None
        return tuple(near(sum(row.get(key, 0) for row in json.loads(rows.stdout)["rows"])) for key in ("self_ms", "gpu_self_ms"))

    for by in ("function", "line", "library"):
        assert sums(by) in (None, sums("op")), by


@every
def test_memory_has_one_peak_everywhere(name):
    said = harness.cli("memory", trace_of(name), "--json")
    head, columns, _ = page(name)
    in_view = {row["name"].split(": the peak")[0]: row["bytes_bytes"] for row in tabs(name)["Memory"] if ": the peak" in row["name"]}
    if said.returncode:
        assert not in_view and "memory" not in head
        return
    wanted = {device["device"]: device["peak"]["total"] for device in json.loads(said.stdout)["devices"]}
    moments = dict(re.findall(r"^(.+?): peak .* at ([\d.]+ \w+) after", harness.cli("memory", trace_of(name), "--step", "all").stdout, re.M))
    shown = dict(row["name"].split(": the peak, at ") for row in tabs(name)["Memory"] if ": the peak, at " in row["name"])
    for device, at in shown.items():  # after the profiler's start
        shown, said = (float(text.split()[0]) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[text.split()[1]] for text in (at, moments[device]))
        assert shown == pytest.approx(said, rel=6e-3), (device, at)
    assert in_view == wanted and {device[0]: peak_of(columns, device) for device in head["memory"]["devices"]} == wanted


def peak_of(columns, device):
    """Of the blocks in the page; at one moment frees come first."""
    _, first, count, now, *_ = device
    after, life, size = (pagedata.wide(columns, f"block{key}")[first:first + count] for key in ("After", "Life", "Bytes"))
    at, moments = 0, []
    for later, lives, held in zip(after, life, size):
        at += later
        moments.append((at, held))
        if lives >> 32 != 0xFFFFFFFF:
            moments.append((at + lives, -held))
    most = now
    for _, held in sorted(moments):
        now += held
        most = max(most, now)
    return most


def test_workers_that_fill_the_cores_need_no_more_whoever_says_it():
    change = asked("workers", "advise")["findings"][0]["change"]
    assert change.startswith("Make an item cheaper, first at data.py:7 __getitem__: ") and "more workers (" not in change
    assert page("workers")[0]["advice"]["findings"][0]["change"] == change


def test_traces_of_workers_are_read_by_a_budget_of_their_own(tmp_path):
    """The training's trace has 2 KB, those of its workers take more memory than a file of 2 KB may."""
    trace = with_workers(tmp_path / "large.pt.trace.json", names=120_000)
    for command in ("advise", "html"):
        said = harness.cli(command, trace, *(["--json"] if command == "advise" else ["-o", tmp_path / "page.html"]))
        assert said.returncode == 0 and "too much for" not in said.stderr, said.stderr
    assert json.loads(harness.cli("advise", "--json", trace).stdout)["findings"][0]["change"].startswith("Make an item cheaper")


def test_who_waits_for_a_core_is_not_healthy_anywhere(tmp_path):
    """Half of the time that it wants one: no green card stands above that, and no "healthy"."""
    facts = {"version": "1", "cores": "2", "busy_threads": "1", "python_gc": "1"}
    for name, more in (("calm", {}), ("crowded", {"core_had_us": 2000, "core_waited_us": 2200})):
        trace = advicetraces.Trace(kprof={**facts, **more})
        trace.each(lambda base, trace=trace: trace.add("cpu_op", "aten::mm", 1, base, 980))
        path = trace.write(tmp_path / f"{name}.pt.trace.json")
        assert harness.cli("html", path, "-o", tmp_path / "page.html").returncode == 0
        (head, _, _), advice = next(pagedata.traces(tmp_path / "page.html")), json.loads(harness.cli("advise", "--json", path).stdout)
        findings = next(tab for tab in json.loads(harness.cli("view", "--json", path).stdout)["tabs"] if tab["tab"] == "Findings")
        assert head["advice"]["healthy"] == (advice["verdict"] == "healthy") == ("Healthy" in json.dumps(findings)) == (name == "calm")
        assert head["advice"]["crowded"] == advice["crowded"] and (advice["crowded"] is None) == (name == "calm")
        assert ("no CPU core for 52 % of the time" in harness.cli("report", path).stdout) == (name == "crowded")


def core_waiter(path, loads_us):
    """Half of the time that it wants a core it has none, and of each step of 20 ms it loads so much."""
    facts = {"version": "1", "cores": "2", "busy_threads": "1", "python_gc": "1", "core_had_us": 40_000, "core_waited_us": 40_000}
    trace = advicetraces.Trace(step=20_000, kprof=facts)

    def step(base):
        trace.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, base, loads_us)
        trace.add("cpu_op", "aten::mm", 1, base + loads_us, 20_000 - loads_us)

    return trace.each(step).write(path)


@pytest.mark.parametrize("loads_us, severity", [(12_000, "critical"), (2000, "warning")])
def test_waits_for_a_core_stand_first_above_all_but_what_is_critical(loads_us, severity, tmp_path):
    trace = core_waiter(tmp_path / "a.pt.trace.json", loads_us)
    said, advice = harness.cli("advise", trace).stdout.splitlines(), json.loads(harness.cli("advise", "--json", trace).stdout)
    assert harness.cli("html", trace, "-o", tmp_path / "page.html").returncode == 0
    (head, _, _), finding = next(pagedata.traces(tmp_path / "page.html")), advice["findings"][0]
    assert finding["severity"] == severity and advice["crowded"]
    assert head["advice"]["crowded_first"] == (severity == "warning")
    first, _, rest = advice["crowded"].partition(". ")
    assert (first if severity == "warning" else finding["what"]) in said[0], said
    assert sum(rest in line for line in said) == 1 and any(finding["what"] in line for line in said[1:]), said
