# SPDX-License-Identifier: Apache-2.0
"""The viewers people use, real ones, load our file and say of it what they say of Kineto's file of the same run.

One run gives both files: a program that profiles itself, under libkprof. Their times differ by the few microseconds
that two clocks read apart, so numbers are compared twice: counts and structure of the file as it is, and every number of
a copy of our file that has Kineto's times event by event ("dated").
"""
import contextlib
import gzip
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

import facts
import harness


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
    fixed = {e["name"]: e for e in theirs["traceEvents"] if e.get("cat") == "Trace" or e.get("ph") == "i"}
    for event in ours["traceEvents"]:
        if event.get("ph") in "sf":
            event["ts"] = moved[(event["pid"], event["tid"]), facts.begin(event)]
        elif event["name"] in fixed:
            event.update({key: fixed[event["name"]][key] for key in ("ts", "dur") if key in event})
    ours["baseTimeNanoseconds"] = theirs["baseTimeNanoseconds"]
    return ours


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folder with kineto/, ours/ and dated/, a trace in each, named as torch's handler names them."""
    top = tmp_path_factory.mktemp("viewers")
    for name in ("kineto", "ours", "dated"):
        (top / name).mkdir()
    kineto = top / "kineto" / "host_1.1000.pt.trace.json"
    run = harness.run_kprof("self_profiled.py", top / "ours", kineto).ok()
    both = facts.load(run.trace), facts.load(kineto)
    assert not facts.differences(facts.facts(both[1]), facts.facts(both[0]))
    (top / "dated" / "host_1.1000.pt.trace.json").write_text(json.dumps(dated(*both), indent=1))
    run.trace.rename(top / "ours" / "host_1.1000.pt.trace.json.gz")
    return top


def only_file(folder):
    return next(folder.glob("*.pt.trace.json*"))


def test_torchs_own_validator_finds_nothing(folders):
    ask = "import sys; from torch.profiler._trace_validator import validate_trace; print(*validate_trace(sys.argv[1]))"
    for name in ("kineto", "ours"):
        said = subprocess.run([harness.PYTHON, "-c", ask, only_file(folders / name)], capture_output=True, text=True, env=harness.clean_environment())
        assert said.stdout.split() == ["True", "[]"], f"{name}: {said.stdout}{said.stderr[-2000:]}"


def venv(name):
    """The python of another set of requirements; made now when it is not there yet."""
    said = subprocess.run([harness.ROOT / "scripts" / "venv", name], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


# --- TensorBoard ---

@pytest.fixture(scope="session")
def board(folders):
    """board(route, **query): what the plugin of a running TensorBoard answers."""
    python = venv("tensorboard")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = open(folders / "tensorboard.log", "w+")
    server = subprocess.Popen([python, "-m", "tensorboard.main", "--logdir", folders, "--host", "127.0.0.1", "--port", str(port)],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=harness.clean_environment())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(route, **query):
        url = f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler/{route}?{urllib.parse.urlencode(query)}"
        with opener.open(url, timeout=60) as reply:
            body = reply.read()
            return json.loads(gzip.decompress(body) if reply.headers.get("Content-Encoding") == "gzip" else body)

    def why():
        log.flush()
        log.seek(0)
        return log.read()[-3000:]

    ask.log = why
    try:
        limit = time.monotonic() + 120
        while True:
            assert server.poll() is None and time.monotonic() < limit, why()
            with contextlib.suppress(OSError, ValueError):
                runs = ask("runs")
                if not runs["loading"] and len(runs["runs"]) == 3:
                    break
            time.sleep(0.5)
        yield ask
    finally:
        server.terminate()
        server.wait()
        log.close()


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


def test_tensorboard_has_nothing_to_complain_about(board):
    board("runs")
    assert not re.search(r"error|exception|intersect", board.log(), re.I), board.log()


# --- HolisticTraceAnalysis ---

@pytest.fixture(scope="session")
def hta(folders):
    """hta(folder, other): what HTA says of the trace in it, the other one compared to."""
    python = venv("hta")
    said = {}

    def ask(name, other):
        if (name, other) not in said:
            done = subprocess.run([python, harness.HERE / "viewers" / "hta_ask.py", folders / name, folders / other], capture_output=True,
                                  text=True, env=harness.clean_environment(), timeout=300)
            assert done.returncode == 0, done.stderr[-3000:]
            said[name, other] = json.loads(done.stdout)
        return said[name, other]

    return ask


def test_hta_reads_the_same_events(hta):
    kineto, ours = hta("kineto", "kineto"), hta("ours", "kineto")
    for what in ("ranks", "steps", "iterations", "format"):
        assert ours[what] == kineto[what], what
    assert kineto["steps"] and kineto["format"][0] is True

    def names(said):
        return facts.collections.Counter((row[0], row[1]) for row in said["rows"])

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


def test_hta_finds_the_ranks_of_a_folder(folders, tmp_path):
    """Two files of two ranks in one folder, as torchrun leaves them."""
    for rank in (0, 1):
        script = tmp_path / "tiny.py"
        script.write_text("import torch\nm = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters(), lr=0.1)\n"
                          "for _ in range(6): m(torch.ones(1, 2)).sum().backward(); o.step()\n")
        harness.run_kprof(script, tmp_path / "ranks", RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank).ok()
    said = subprocess.run([venv("hta"), harness.HERE / "viewers" / "hta_ask.py", tmp_path / "ranks", tmp_path / "ranks"], capture_output=True,
                          text=True, env=harness.clean_environment(), timeout=300)
    assert said.returncode == 0, said.stderr[-3000:]
    assert json.loads(said.stdout)["ranks"] == [0, 1]


# --- Perfetto ---

@pytest.fixture(scope="session")
def perfetto():
    """perfetto(trace): what its engine counted."""
    if not (shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")) or not shutil.which("chromedriver"):
        pytest.skip("no Chromium with its driver here: the Perfetto UI cannot be asked")
    python = venv("perfetto")

    def ask(trace):
        done = subprocess.run([python, harness.HERE / "viewers" / "perfetto_ask.py", trace], capture_output=True, text=True,
                              env=harness.clean_environment(), timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        said = json.loads(done.stdout)
        assert "failure" not in said, said
        return said

    return ask


def test_perfetto_drops_nothing(perfetto, folders):
    path = only_file(folders / "ours")
    spans = facts.spans(facts.load(path))
    said = perfetto(path)
    assert said["trouble"] == {}
    expected = facts.collections.Counter(e["name"] for e in spans)
    instants = said["slices"] - sum(said["names"].get(name, 0) for name in expected)
    assert {name: said["names"].get(name) for name in expected} == dict(expected)
    assert instants <= 2 and said["steps"] == 3
    assert said["flows"] == sum(e.get("ph") == "s" for e in facts.load(path)["traceEvents"])


def test_perfetto_counts_in_resnet18_what_the_file_holds(perfetto, ours):
    path = ours("resnet18.py").trace
    said = perfetto(path)
    expected = facts.collections.Counter(e["name"] for e in facts.spans(facts.load(path)))
    assert said["trouble"] == {} and {name: said["names"].get(name) for name in expected} == dict(expected)
    assert said["flows"] == sum(e.get("ph") == "s" for e in facts.load(path)["traceEvents"])
