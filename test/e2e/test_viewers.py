# SPDX-License-Identifier: Apache-2.0
"""The viewers people use, real ones, load our file and say of it what they say of Kineto's file of the same run.

One run gives both files: a program that profiles itself, under libkprof. Their times differ by the few microseconds
that two clocks read apart, so numbers are compared twice: counts and structure of the file as it is, and every number of
a copy of our file that has Kineto's times event by event ("dated").

Memory, modules and call stacks ("full") take two runs, since a thread has one profile function only; there all is "dated".
"""
import collections
import difflib
import json
import re
import subprocess

import pytest

import facts
import harness
import test_everything
import viewing
from viewing import only_file


def dated(ours, theirs):
    """Our trace with the times of Kineto's: the nth event of a thread there is the nth event of it here."""
    def host(trace):
        return facts.by_thread([e for e in facts.spans(trace) if e.get("cat") in ("cpu_op", "user_annotation")])

    mine, other = host(ours), host(theirs)
    assert set(mine) == set(other)
    moved = {}
    for thread, line in mine.items():
        reference = other[thread]
        assert [e["name"] for e in line] == [e["name"] for e in reference]
        for event, source in zip(line, reference):
            moved[thread, facts.begin(event)] = source["ts"]
            event["ts"], event["dur"] = source["ts"], source["dur"]
    fixed = {e["name"]: e for e in theirs["traceEvents"] if (e.get("cat") == "Trace" or e.get("ph") == "i") and e["name"] != "[memory]"}
    for event in ours["traceEvents"]:
        if event.get("ph") in "sf":
            event["ts"] = moved[(event["pid"], event["tid"]), facts.begin(event)]
        elif event["name"] in fixed:
            event.update({key: fixed[event["name"]][key] for key in ("ts", "dur") if key in event})
    ours["baseTimeNanoseconds"] = theirs["baseTimeNanoseconds"]
    return ours


def settled(ours, theirs):
    """Our trace of another process as if it were of theirs: its process and thread numbers, its calls of Python. Gives their ids of the calls."""
    numbers = {}
    for mine, other in zip(facts.steps(ours), facts.steps(theirs)):
        numbers.update({mine["pid"]: other["pid"], mine["tid"]: other["tid"]})
    for event in ours["traceEvents"]:
        event.update({key: numbers.get(event[key], event[key]) for key in ("pid", "tid") if key in event})
    # Parts of a call that a range crosses: whether one has anything of weight in it, a busy machine decides.
    ours["traceEvents"] = [e for e in ours["traceEvents"] if e.get("args", {}).get("further part") != "yes"]
    left_out = [test_everything.is_left_out(trace) for trace in (ours, theirs)]
    mine, other = ([e for e in test_everything.calls_in(trace) if not test(e)] for trace, test in zip((ours, theirs), left_out))
    for line in (mine, other):
        line.sort(key=lambda e: (facts.begin(e), -facts.ns(e["dur"])))
    names = [[without_addresses(e["name"]) for e in line] for line in (mine, other)]
    early = next(n for n in range(len(mine)) if names[0][n:] == names[1][:len(mine) - n])  # what is left of the call that stepped
    assert early < 10 and len(mine) > 500, "\n".join(difflib.unified_diff(names[1], names[0], "kineto", "ours", lineterm="", n=2))
    for event, source in zip(mine[early:], other):
        event.update(ts=source["ts"], dur=source["dur"])
    kept = {e["args"]["Python id"] for e in mine[early:]}
    ours["traceEvents"] = [e for e in ours["traceEvents"] if e.get("cat") != "python_function" or e["args"]["Python id"] in kept]
    for event in mine:
        if event["args"].get("Python parent id") not in kept:
            event["args"].pop("Python parent id", None)
    blocks = [sorted((e for e in trace["traceEvents"] if e["name"] == "[memory]"), key=facts.begin) for trace in (ours, theirs)]
    assert [[(e["args"]["Bytes"], e["args"]["Total Allocated"]) for e in line] for line in blocks[:1]] == \
        [[(e["args"]["Bytes"], e["args"]["Total Allocated"]) for e in line] for line in blocks[1:]] and blocks[0]
    for event, source in zip(*blocks):
        event["ts"] = source["ts"]
    return {source["args"]["Python id"] for _, source in zip(mine[early:], other)}


def without_addresses(text):
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """Kineto's trace with everything in it, ours of another run with its times, and the ids of Kineto's calls that ours has, too."""
    top = tmp_path_factory.mktemp("full")
    harness.run_plain("self_profiled.py", top, top / "kineto.json", "full").ok()  # a fork has frames of its own below the program
    run = harness.run_kprof("self_profiled.py", top / "ours", "-", "full", KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK=1,
                            KPROF_STEP="optimizer").ok()
    ours, theirs = facts.load(run.trace), facts.load(top / "kineto.json")
    assert not facts.differences(facts.facts(theirs), facts.facts(ours))
    paired = settled(ours, theirs)
    return theirs, dated(ours, theirs), paired


def in_nanoseconds(trace):
    """The same with a nanosecond in the place of each microsecond: HTA cuts what is shorter, and gives up at calls of no length."""
    first = facts.begin(facts.steps(trace)[0])
    moved = [dict(e, **({"ts": facts.ns(e["ts"]) - first + 10**9} if "ts" in e else {}), **({"dur": facts.ns(e["dur"])} if "dur" in e else {}))
             for e in trace["traceEvents"]]
    return dict(trace, traceEvents=moved)


@pytest.fixture(scope="session")
def fine(full, tmp_path_factory):
    """kineto/ and dated/ for HTA: nanoseconds, and of Kineto's calls those that have one of ours beside them."""
    top, (theirs, ours, paired) = tmp_path_factory.mktemp("fine"), full
    kept = [e for e in theirs["traceEvents"] if e.get("cat") != "python_function" or e["args"]["Python id"] in paired]
    for name, trace in (("kineto", dict(theirs, traceEvents=kept)), ("dated", ours)):
        (top / name).mkdir()
        (top / name / "host_1.1000.pt.trace.json").write_text(json.dumps(in_nanoseconds(trace), indent=1))
    return top


@pytest.fixture(scope="session")
def folders(full, tmp_path_factory):
    """Folder with kineto/, ours/, dated/ and two of everything, a trace in each, named as torch's handler names them."""
    top = tmp_path_factory.mktemp("viewers")
    for name in ("kineto", "ours", "dated", "kineto_full", "dated_full"):
        (top / name).mkdir()
    for name, trace in zip(("kineto_full", "dated_full"), full):
        (top / name / "host_1.1000.pt.trace.json").write_text(json.dumps(trace, indent=1))
    kineto = top / "kineto" / "host_1.1000.pt.trace.json"
    run = harness.run_kprof("self_profiled.py", top / "ours", kineto, KPROF_STEP="optimizer").ok()
    both = facts.load(run.trace), facts.load(kineto)
    assert not facts.differences(facts.facts(both[1]), facts.facts(both[0]))
    (top / "dated" / "host_1.1000.pt.trace.json").write_text(json.dumps(dated(*both), indent=1))
    run.trace.rename(top / "ours" / "host_1.1000.pt.trace.json.gz")
    return top


def test_torchs_own_validator_finds_nothing(folders):
    for name in ("kineto", "ours"):
        assert viewing.torchs_verdict(only_file(folders / name)) == "True []", name


# --- TensorBoard ---

@pytest.fixture(scope="session")
def board(folders):
    """board(route, **query): what the plugin of a running TensorBoard answers."""
    with viewing.tensorboard(folders, 5) as ask:
        yield ask


def views_of(board, run):
    """Every CPU view's data of one run."""
    where = dict(run=run, worker="host_1", span="1")
    said = {"views": board("views", run=run), "workers": board("workers", run=run, view="Overview"), "spans": board("spans", run=run, worker="host_1")}
    said["overview"] = board("overview", view="Overview", **where)
    for group in ("Operation", "OperationAndInputShape"):
        said[f"pie {group}"] = board("operation", view="Operator", group_by=group, **where)
        said[f"table {group}"] = board("operation/table", view="Operator", group_by=group, **where)
    said["tree"] = board("tree", view="Module", **where)
    said["trace"] = board("trace", view="Trace", **where)
    return said


def test_tensorboard_shows_the_same_views(board):
    kineto, ours = views_of(board, "kineto"), views_of(board, "ours")
    assert "Overview" in kineto["views"] and "Operator" in kineto["views"] and "Trace" in kineto["views"]
    for what in ("views", "workers", "spans"):
        assert ours[what] == kineto[what]


def test_tensorboard_counts_the_same_calls(board):
    kineto, ours = views_of(board, "kineto"), views_of(board, "ours")
    for group in ("Operation", "OperationAndInputShape"):
        rows = [sorted((row["name"], row["calls"], row.get("input_shape")) for row in said[f"table {group}"]["data"]) for said in (kineto, ours)]
        assert rows[0] and rows[0] == rows[1]


def shape_of(node):
    return [node["name"], node.get("type"), [shape_of(child) for child in node.get("children", [])]]


def test_tensorboard_builds_the_same_tree(board):
    assert shape_of(board("tree", run="ours", worker="host_1", span="1", view="Module")) == \
        shape_of(board("tree", run="kineto", worker="host_1", span="1", view="Module"))


def test_tensorboard_serves_our_trace_as_it_is(board, folders):
    assert views_of(board, "ours")["trace"] == facts.load(only_file(folders / "ours"))


def test_tensorboard_computes_the_same_numbers(board):
    """With Kineto's times in our file every number of every view is Kineto's."""
    kineto, same = views_of(board, "kineto"), views_of(board, "dated")
    for what in kineto:
        if what != "trace":
            assert same[what] == kineto[what], what


def full_views_of(board, run):
    """The views of memory, modules and call stacks of one run."""
    where = dict(run=run, worker="host_1", span="1")
    said = views_of(board, run)
    del said["trace"]
    said["memory"] = board("memory", view="Memory", memory_metric="B", **where)
    said["memory curve"] = board("memory_curve", view="Memory", memory_metric="KB", **where)
    said["memory events"] = board("memory_events", view="Memory", memory_metric="B", **where)
    said["modules"] = board("module", view="Module", **where)
    for row in said["table Operation"]["data"]:
        said["stack", row["name"]] = board("operation/stack", view="Operator", group_by="Operation", op_name=row["name"], **where)
    return said


def test_tensorboard_shows_memory_modules_and_call_stacks(board):
    kineto, same = full_views_of(board, "kineto_full"), full_views_of(board, "dated_full")
    assert {"Memory", "Module"} <= set(kineto["views"])
    assert kineto["memory"]["rows"] and kineto["memory events"]["rows"] and kineto["modules"]["data"]
    assert sum("main;" in json.dumps(said) for what, said in kineto.items() if what[0] == "stack") > 10
    assert same.keys() == kineto.keys()
    for what in kineto:
        assert without_addresses(json.dumps(same[what])) == without_addresses(json.dumps(kineto[what])), what


def test_tensorboard_has_nothing_to_complain_about(board):
    board("runs")
    assert not re.search(r"error|exception|intersect", board.log(), re.I), board.log()


# --- HolisticTraceAnalysis ---

@pytest.fixture(scope="session")
def hta(folders):
    """hta(folder, other): what HTA says of the trace in it, the other one compared to."""
    python = viewing.venv("hta")
    said = {}

    def ask(name, other, top=folders):
        if (top, name, other) not in said:
            done = subprocess.run([python, harness.HERE / "viewers" / "hta_ask.py", top / name, top / other,
                                   *(["stacks"] if top != folders else [])], capture_output=True, text=True, env=harness.clean_environment(), timeout=harness.LONG)
            assert done.returncode == 0, done.stderr[-3000:]
            said[top, name, other] = json.loads(done.stdout)
        return said[top, name, other]

    return ask


def test_hta_reads_the_same_events(hta):
    kineto, ours = hta("kineto", "kineto"), hta("ours", "kineto")
    for what in ("ranks", "steps", "iterations", "format"):
        assert ours[what] == kineto[what], what
    assert kineto["steps"] and kineto["format"][0] is True

    def names(said):
        return collections.Counter((row[0], row[1]) for row in said["rows"])

    assert names(ours) == names(kineto)


def test_hta_finds_no_difference_between_the_two(hta):
    said = hta("ours", "kineto")["ops difference"]
    assert said["unchanged"] and not any(said[kind] for kind in ("added", "deleted", "increased", "decreased"))
    assert all(row["diff_counts"] == 0 for row in hta("ours", "kineto")["difference"])


def test_hta_computes_the_same_numbers(hta):
    """With Kineto's times in our file every number is Kineto's."""
    kineto, same = hta("kineto", "kineto"), hta("dated", "kineto")
    for what in kineto:
        assert same[what] == kineto[what], what


def test_hta_builds_the_same_call_stacks(hta, fine):
    """Of ops and calls of Python together: each event with its depth, its height and the names of those it is in."""
    rows = [collections.Counter((tuple(map(without_addresses, path)), *rest) for path, *rest in hta(name, "kineto", fine)["call stacks"])
            for name in ("kineto", "dated")]
    assert sum(rows[0].values()) > 1500 and any(len(path) > 15 for path, *_ in rows[0])
    assert rows[0] == rows[1], ((rows[0] - rows[1]).most_common(5), (rows[1] - rows[0]).most_common(5))


def test_hta_finds_the_ranks_of_a_folder(folders, tmp_path):
    """Two files of two ranks in one folder, as torchrun leaves them."""
    for rank in (0, 1):
        script = tmp_path / "tiny.py"
        script.write_text("import torch\nm = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters(), lr=0.1)\n"
                          "for _ in range(6): m(torch.ones(1, 2)).sum().backward(); o.step()\n")
        harness.run_kprof(script, tmp_path / "ranks", RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank, LAZY_DYNAMO=1).ok()
    said = subprocess.run([viewing.venv("hta"), harness.HERE / "viewers" / "hta_ask.py", tmp_path / "ranks", tmp_path / "ranks"], capture_output=True,
                          text=True, env=harness.clean_environment(), timeout=harness.LONG)
    assert said.returncode == 0, said.stderr[-3000:]
    assert json.loads(said.stdout)["ranks"] == [0, 1]


# --- Perfetto ---

@pytest.fixture(scope="session")
def perfetto():
    """perfetto(trace): what its engine counted. perfetto(*traces, rows=True): what it holds of each."""
    def ask(*traces, rows=False):
        said = viewing.browser.ask("perfetto_ask", rows, *traces)
        assert len(said) == len(traces) and not [one for one in said if "failure" in one], [one for one in said if "failure" in one]
        return said if rows else said[0]

    return ask


def test_perfetto_drops_nothing(perfetto, folders):
    path = only_file(folders / "ours")
    spans = facts.spans(facts.load(path))
    said = perfetto(path)
    assert said["trouble"] == {}
    expected = collections.Counter(e["name"] for e in spans)
    instants = said["slices"] - sum(said["names"].get(name, 0) for name in expected)
    assert {name: said["names"].get(name) for name in expected} == dict(expected)
    assert instants <= 2 and said["steps"] == 3
    assert said["flows"] == sum(e.get("ph") == "s" for e in facts.load(path)["traceEvents"])


def test_perfetto_counts_in_resnet18_what_the_file_holds(perfetto, ours):
    path = ours("resnet18.py").trace
    said = perfetto(path)
    expected = collections.Counter(e["name"] for e in facts.spans(facts.load(path)))
    assert said["trouble"] == {} and {name: said["names"].get(name) for name in expected} == dict(expected)
    assert said["flows"] == sum(e.get("ph") == "s" for e in facts.load(path)["traceEvents"])
