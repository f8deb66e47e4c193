# SPDX-License-Identifier: Apache-2.0
"""kprof export --format: the same slices, arrows and arguments as the trace, read by a small reader of protobuf, by Perfetto and by sqlite3."""
import collections
import decimal
import gzip
import json
import re
import sqlite3

import pytest

import harness
from test_viewers import perfetto  # noqa: F401 (a fixture)

KINETO = sorted((harness.ROOT / "test/data/traces").rglob("*.json*"))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return harness.run_kprof("advice.py", tmp_path_factory.mktemp("run"), "healthy", schedule="wait=2,warmup=1,active=3,repeat=1", KPROF_WITH_STACK=1).ok().trace


def export(path, form, out):
    said = harness.cli("export", path, "--format", form, "-o", out)
    assert said.returncode == 0, said.stderr
    return out


def load(path):
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(text, parse_float=decimal.Decimal, strict=False)["traceEvents"]


def message(data):
    """Fields of a protobuf message: {number: [values]}; bytes stay bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            shift, at = shift + 7, at + 1
            if not data[at - 1] & 0x80:
                return value
    while at < len(data):
        key = varint()
        kind = key & 7
        assert kind in (0, 1, 2)
        if kind == 0:
            found[key >> 3].append(varint())
        else:
            size = 8 if kind == 1 else varint()
            found[key >> 3].append(bytes(data[at:at + size]))
            at += size
    assert at == len(data)
    return found


def slices_of(path):
    """(name, start, length) of every slice, from begins and ends in the order of the file on each track; and its flows."""
    names, stacks, done, flows = {}, collections.defaultdict(list), collections.Counter(), collections.Counter()
    for packet in message(path.read_bytes())[1]:
        packet = message(packet)
        for interned in packet[12]:
            for entry in message(interned)[2]:
                entry = message(entry)
                names[entry[1][0]] = entry[2][0].decode()
        for event in packet[11]:
            event, now = message(event), packet[8][0]
            stack = stacks[event[11][0]]
            flows.update({"begin": len(event[47]), "end": len(event[48])})
            if event[9] == [1]:
                assert not stack or stack[-1][1] <= now
                stack.append((names[event[10][0]], now))
            elif event[9] == [2]:
                name, begin = stack.pop()
                done[name, begin, now - begin] += 1
    assert not any(stacks.values())
    return done, flows


def expected(events):
    ns = lambda value: int((decimal.Decimal(value) * 1000).to_integral_value(decimal.ROUND_HALF_UP))  # noqa: E731
    return collections.Counter((e["name"], ns(e["ts"]), ns(e["dur"])) for e in events if e["ph"] == "X")


@pytest.mark.parametrize("path", [None, *KINETO], ids=lambda path: path.name if path else "ours")
def test_perfetto_has_the_same_slices(path, ours, tmp_path):
    path = path or ours
    events = load(path)
    out = export(path, "perfetto", tmp_path / "out.pftrace")
    done, flows = slices_of(out)
    assert done == expected(events) and done
    assert flows["begin"] == sum(e["ph"] == "s" for e in events) and flows["end"] == sum(e["ph"] == "f" for e in events)
    plain = len(gzip.decompress(path.read_bytes())) if path.suffix == ".gz" else path.stat().st_size
    assert out.stat().st_size < plain


def rows_of(said, prefix):
    """Slices as the UI's engine holds them, without what it adds itself, and without the thread: slices that overlap have a track of their own."""
    return collections.Counter((name, category, start, length, tuple(sorted((key.removeprefix(prefix), kind, value) for key, kind, value in args
                                                                          if not key.startswith("legacy_event."))))
                               for name, category, start, length, _, args in said["rows"])


VALUES = """{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "numbers", "pid": 8, "tid": 8, "ts": 10, "dur": 10.25, "args": {"a": -4, "b": -9223372036854775808, "c": 9223372036854775807,
 "e": 0.25, "f": -1.5e-3, "g": 0, "h": -0.5, "i": 12345678901}},
{"ph": "X", "cat": "cpu_op", "name": "others", "pid": 8, "tid": 9, "ts": 20, "dur": 1, "args": {"a": true, "b": false, "d": "", "e": "-4",
 "f": [[2, 3], [], [-1]], "g": {"x": 1, "y": [0.5, "z"]}, "h": "line\\nfeed \\u00e9 \\"quoted\\""}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 8, "tid": 8, "ts": 22, "s": "t", "args": {"Bytes": -4096, "Total Allocated": 18}}]}
"""


def one_file(paths, out):
    """One trace of all events of several whose processes differ: to open a file takes the UI 5 s of a core, whatever lies in it."""
    events, processes = [], []
    for number, path in enumerate(paths):
        more = load(path)
        events += [{**e, "id": e["id"] + 10**6 * number} if "id" in e else e for e in more]  # arrows stay between their own
        processes += {e["pid"] for e in more if isinstance(e["pid"], int)}
    assert len(processes) == len(set(processes))
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}, default=lambda number: f"@{number}@")
    out.write_text(re.sub(r'"@([-+.\dE]+)@"', r"\1", text))  # with the digits that it had
    assert load(out) == events
    return out


def test_the_real_perfetto_reads_the_same_from_both(ours, tmp_path, perfetto):  # noqa: F811
    """Slices, instants, arguments and arrows of the .pftrace are those of the JSON, in the engine of ui.perfetto.dev, and it complains of nothing."""
    for name, text in (("values.json", VALUES), ("gpu.json", GPU)):
        (tmp_path / name).write_text(text)
    others = [*(path for path in KINETO if path.name.split(".")[0] in ("full", "memory", "gloo_rank0")), tmp_path / "values.json", tmp_path / "gpu.json"]
    assert len(others) == 5
    paths = [ours, one_file(others, tmp_path / "others.json")]
    both = [one for path in paths for one in (export(path, "perfetto", tmp_path / f"{path.name}.pftrace"), path)]
    answers = perfetto(*both, rows=True)
    for path, said, of_json in zip(paths, answers[::2], answers[1::2], strict=True):
        events = load(path)
        wanted = collections.Counter({(name, str(start), str(length)): n for (name, start, length), n in expected(events).items()})
        slices, json_slices = rows_of(said, "debug."), rows_of(of_json, "args.")
        assert said["trouble"] == {}, path
        assert collections.Counter({key: n for key, n in collections.Counter((row[0], row[2], row[3]) for row in slices.elements()).items() if key in wanted}) == wanted, path
        # of JSON it drops slices that overlap without nesting; here they have a track of their own
        dropped = of_json["trouble"].get("slice_drop_overlapping_complete_event", 0)
        assert (json_slices - slices).total() == 0 and (slices - json_slices).total() == dropped, (path, json_slices - slices)
        assert collections.Counter(map(tuple, said["arrows"])) == collections.Counter(map(tuple, of_json["arrows"])), path
        assert said["counters"] == of_json["counters"] == 0 and said["slices"] == sum(e["ph"] in "Xi" for e in events), path
    assert answers[0]["steps"] == 3 and answers[0]["flows"] > 0
    assert answers[1]["trouble"] == {}  # of ours it drops none (docs/decisions/131)


@pytest.mark.parametrize("path", [None, *KINETO], ids=lambda path: path.name if path else "ours")
def test_ndjson_has_an_event_a_line(path, ours, tmp_path):
    path = path or ours
    lines = export(path, "ndjson", tmp_path / "out.ndjson").read_text().splitlines()
    assert [json.loads(line, parse_float=decimal.Decimal) for line in lines] == load(path)


def test_a_spool_is_taken_and_the_name_is_made(tmp_path):
    run = harness.run_kprof("advice.py", tmp_path, "healthy", schedule="wait=2,warmup=1,active=3,repeat=1", KPROF_EXPORT="none").ok()
    spool, = run.spools
    said = harness.cli("export", spool, "--format", "perfetto")
    assert said.returncode == 0, said.stderr
    done, _ = slices_of(spool.with_suffix(".pftrace"))
    assert sum(name.startswith("ProfilerStep#") for name, _, _ in done) == 3
    assert harness.cli("export", spool, "--format", "sqlite").returncode == 0
    slices = sqlite3.connect(spool.with_suffix(".sqlite")).execute("SELECT name, ts_ns, dur_ns FROM slices").fetchall()
    assert collections.Counter(slices) == done


def test_what_it_cannot_write_is_one_line(ours, tmp_path):
    torn = tmp_path / "torn.pt.trace.json"
    torn.write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for args, code in (([ours, "--format", "parquet"], 2), ([torn, "--format", "perfetto"], 1), ([torn, "--format", "ndjson"], 1)):
        said = harness.cli("export", *args, "-o", tmp_path / "no")
        assert said.returncode == code and said.stderr.count("\n") <= 2 and said.stderr.startswith("kprof export: "), said
        assert not list(tmp_path.glob("no*"))


@pytest.mark.parametrize("path", KINETO, ids=lambda path: path.name)
def test_speedscope_has_every_slice_with_its_whole_time_and_frames_nest(path, tmp_path):
    """A slice that ends behind the one it began in closes there and opens again."""
    times = collections.Counter()
    file = json.loads(export(path, "speedscope", tmp_path / "out.json").read_bytes(), parse_float=decimal.Decimal, strict=False)
    frames, found = [frame["name"] for frame in file["shared"]["frames"]], collections.Counter()
    for profile in file["profiles"]:
        open_frames, at = [], None
        assert (profile["type"], profile["unit"]) == ("evented", "microseconds")
        for event in profile["events"]:
            assert at is None or event["at"] >= at
            at = event["at"]
            if event["type"] == "O":
                open_frames.append((event["frame"], at))
                found[frames[event["frame"]], at] += 1
            else:
                frame, since = open_frames.pop()
                assert frame == event["frame"]
                times[frames[frame]] += at - since
        assert open_frames == []
    slices = [e for e in load(path) if e["ph"] == "X"]
    assert not collections.Counter((e["name"], decimal.Decimal(str(e["ts"]))) for e in slices) - found
    wanted = collections.Counter()
    for e in slices:
        wanted[e["name"]] += decimal.Decimal(str(e["dur"]))
    assert times == wanted


GPU = """{"schemaVersion": 1, "baseTimeNanoseconds": 1000, "deviceProperties": [{"id": 0}], "traceEvents": [
{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "py\\u00e9 \\"x\\""}},
{"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "ts": 0, "args": {"labels": "CPU"}},
{"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "ts": 0, "args": {"name": "main"}},
{"ph": "f", "id": 5, "pid": 0, "tid": 20, "ts": 40.500, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 20, "ts": 40.500, "dur": 9.001, "args": {"correlation": 5, "stream": 20}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 7, "tid": 7, "ts": 10, "dur": 50},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 21.002, "dur": 3, "args": {"correlation": 5, "External id": 9}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": "7", "ts": 20, "dur": 10.25, "args": {"external id": 9}},
{"ph": "s", "id": 5, "pid": 7, "tid": 7, "ts": 21.002, "cat": "ac2g", "name": "ac2g"},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 22, "s": "t", "args": {"Bytes": -4}},
{"ph": "X", "cat": "cpu_op", "name": "late", "pid": 7, "tid": 7, "ts": 29, "dur": 2},
{"ph": "X", "cat": "Trace", "name": "all", "pid": "Spans", "tid": "one", "ts": 5, "dur": 100}
], "traceName": "a/b.json"}
"""


def sqlite(path, out):
    database = sqlite3.connect(export(path, "sqlite", out))
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return database


@pytest.mark.parametrize("path", [None, *KINETO], ids=lambda path: path.name if path else "ours")
def test_sqlite_has_the_same_events(path, ours, tmp_path):
    path = path or ours
    events, database = load(path), sqlite(path, tmp_path / "out.sqlite")
    wanted = expected(events)
    assert collections.Counter(database.execute("SELECT name, ts_ns, dur_ns FROM slices").fetchall()) == wanted
    sums = collections.Counter()
    for (name, _, length), times in wanted.items():
        sums[name] += length * times
    assert dict(database.execute("SELECT name, sum(dur_ns) FROM slices GROUP BY name")) == dict(sums)
    phases = collections.Counter(e["ph"] for e in events if e["ph"] != "M")
    found = database.execute("SELECT phase, count(*) FROM events GROUP BY phase UNION ALL SELECT phase, count(*) FROM flows GROUP BY phase").fetchall()
    assert dict(found) == dict(phases)
    text = lambda value: json.dumps(value, default=str, sort_keys=True)  # noqa: E731
    args = database.execute("SELECT pid, tid, args FROM events").fetchall()
    assert collections.Counter((pid, tid, text(json.loads(a, parse_float=decimal.Decimal, strict=False)) if a else None) for pid, tid, a in args) == \
        collections.Counter((e["pid"], e["tid"], text(e["args"]) if "args" in e else None) for e in events if e["ph"] not in "Mstf")
    # a parent holds its child, on the same thread; no slice that holds it too begins later or ends earlier
    assert database.execute("""SELECT count(*) FROM events c JOIN events p ON p.id = c.parent WHERE p.phase <> 'X' OR p.id >= c.id OR p.pid <> c.pid OR
        p.tid <> c.tid OR p.ts_ns > c.ts_ns OR p.ts_ns + p.dur_ns < c.ts_ns + coalesce(c.dur_ns, 0)""").fetchone() == (0,)
    assert database.execute("SELECT count(parent) > 0 FROM events").fetchone() == (1,)
    for step, start, length, *_ in database.execute("SELECT * FROM steps").fetchall():
        assert wanted[f"ProfilerStep#{step}", start, length] == 1
        inside = sum(n for (_, ts, _), n in wanted.items() if start < ts < start + length)
        assert database.execute("SELECT count(*) FROM slices WHERE step = ? AND ts_ns > ?", (step, start)).fetchone() == (inside,)
    ends = collections.Counter((e["id"], e["cat"], e["name"]) for e in events if e["ph"] == "s")
    done = collections.Counter((e["id"], e["cat"], e["name"]) for e in events if e["ph"] == "f")
    assert database.execute("SELECT count(*) FROM arrows").fetchone() == (sum(ends[key] * done[key] for key in ends),)


def test_sqlite_joins_ops_calls_and_kernels(tmp_path):
    (tmp_path / "a.json").write_text(GPU)
    database = sqlite(tmp_path / "a.json", tmp_path / "out.sqlite")
    rows = dict(database.execute("SELECT s.name, p.name FROM slices s LEFT JOIN slices p ON p.id = s.parent"))
    assert rows == {"all": None, "ProfilerStep#3": None, "aten::mm": "ProfilerStep#3", "cudaLaunchKernel": "aten::mm", "late": "ProfilerStep#3", "gemm": None}
    assert database.execute("SELECT name, step, correlation, external_id FROM slices WHERE name IN ('all', 'aten::mm', 'cudaLaunchKernel', 'gemm') ORDER BY ts_ns").fetchall() == \
        [("all", None, None, None), ("aten::mm", 3, None, 9), ("cudaLaunchKernel", 3, 5, 9), ("gemm", 3, 5, None)]
    assert database.execute("SELECT a.name, b.name, to_ns - from_ns FROM arrows JOIN slices a ON a.id = from_event JOIN slices b ON b.id = to_event").fetchall() == \
        [("cudaLaunchKernel", "gemm", 19498)]
    assert database.execute("SELECT p.name, json_extract(e.args, '$.Bytes') FROM events e JOIN slices p ON p.id = e.parent WHERE phase = 'i'").fetchall() == \
        [("cudaLaunchKernel", -4)]
    assert database.execute("SELECT pid, name, labels FROM processes").fetchall() == [(7, 'pyé "x"', "CPU")]
    assert database.execute("SELECT * FROM threads").fetchall() == [(7, 7, "main", None)]
    assert dict(database.execute("SELECT key, value FROM meta")) == \
        {"schemaVersion": "1", "baseTimeNanoseconds": "1000", "deviceProperties": '[{"id": 0}]', "traceName": "a/b.json"}
    assert database.execute("SELECT pid, tid, ts_ns, dur_ns FROM slices WHERE name = 'all'").fetchall() == [("Spans", "one", 5000, 100000)]


def test_sqlite_questions_of_the_page_are_answered(tmp_path):
    (tmp_path / "a.json").write_text(GPU)
    database = sqlite(tmp_path / "a.json", tmp_path / "out.sqlite")
    page = (harness.ROOT / "docs/reference/sqlite.md").read_text().partition("## Questions")[2]
    answers = [database.execute(question).fetchall() for question in page.split(";") if question.strip()]
    assert answers == [[("gemm", 1, 9001)], [("aten::mm", "gemm", 19498)], [("aten::mm", 7250), ("late", 2000)]]


def test_sqlite_replaces_a_file_and_needs_one(ours, tmp_path):
    out = tmp_path / "out.sqlite"
    out.write_text("no database")
    sqlite(ours, out)
    torn = tmp_path / "torn.json"
    torn.write_text(GPU[:900])
    for args, words in (([ours, "-o", "-"], "needs a file"), ([ours, "-o", "/dev/null"], "needs a file"), ([torn, "-o", tmp_path / "no"], "torn.json")):
        said = harness.cli("export", "--format", "sqlite", *args)
        assert said.returncode == 1 and words in said.stderr and said.stderr.count("\n") == 1 and not said.stdout, said
    assert not list(tmp_path.glob("no*"))
