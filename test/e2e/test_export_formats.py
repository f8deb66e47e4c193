# SPDX-License-Identifier: Apache-2.0
"""kprof export --format: the same slices, arrows and arguments as the trace, read by a small reader of protobuf and by Perfetto."""
import collections
import decimal
import gzip
import json
import shutil

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


def test_the_real_perfetto_takes_it(ours, tmp_path, perfetto):  # noqa: F811
    out = export(ours, "perfetto", tmp_path / "out.pftrace")
    said, of_json = perfetto(shutil.copy(out, tmp_path / "pftrace.json")), perfetto(ours)  # the server wants a name in json
    wanted = collections.Counter(e["name"] for e in load(ours) if e["ph"] == "X")
    assert said["trouble"] == {} and {name: said["names"].get(name) for name in wanted} == dict(wanted)
    assert said["flows"] == of_json["flows"] > 0 and said["steps"] == of_json["steps"] == 3
    # of JSON it drops slices that overlap without nesting; here they have a track of their own
    assert said["slices"] == of_json["slices"] + of_json["trouble"].get("slice_drop_overlapping_complete_event", 0)


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


def test_what_it_cannot_write_is_one_line(ours, tmp_path):
    torn = tmp_path / "torn.pt.trace.json"
    torn.write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for args, code in (([ours, "--format", "parquet"], 2), ([torn, "--format", "perfetto"], 1), ([torn, "--format", "ndjson"], 1)):
        said = harness.cli("export", *args, "-o", tmp_path / "no")
        assert said.returncode == code and said.stderr.count("\n") <= 2 and said.stderr.startswith("kprof export: "), said
        assert not list(tmp_path.glob("no*"))


@pytest.mark.parametrize("path", KINETO, ids=lambda path: path.name)
def test_speedscope_has_every_slice_and_frames_nest(path, tmp_path):
    file = json.loads(export(path, "speedscope", tmp_path / "out.json").read_bytes(), parse_float=decimal.Decimal, strict=False)
    frames, found = [frame["name"] for frame in file["shared"]["frames"]], collections.Counter()
    for profile in file["profiles"]:
        open_frames, at = [], None
        assert (profile["type"], profile["unit"]) == ("evented", "microseconds")
        for event in profile["events"]:
            assert at is None or event["at"] >= at
            at = event["at"]
            if event["type"] == "O":
                open_frames.append(event["frame"])
                found[frames[event["frame"]], at] += 1
            else:
                assert open_frames.pop() == event["frame"]
        assert open_frames == []
    wanted = collections.Counter((e["name"], decimal.Decimal(str(e["ts"]))) for e in load(path) if e["ph"] == "X")
    assert found == wanted
