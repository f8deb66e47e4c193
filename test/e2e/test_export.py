# SPDX-License-Identifier: Apache-2.0
"""The exporter against references that are not ours: Kineto's own traces told again, and names of random bytes."""
import collections
import gzip
import json
import random
import re
from decimal import Decimal

import pytest

import harness
from spoolwriter import Spool


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return json.load(f, parse_float=Decimal, parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))


def export(spool, folder):
    done = harness.cli("export", spool, "-o", folder)
    assert done.returncode == 0, done.stderr
    files = sorted(folder.glob("*.pt.trace.json.gz"))
    assert len(files) == 1, (files, done.stderr)
    return files[0]


def retell(trace, path):
    """A spool that says what Kineto's trace says. External ids, inputs and Kineto's order of the file are ours to choose."""
    base = trace["baseTimeNanoseconds"]
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    pid = events[0]["pid"]
    ns = lambda x: int(Decimal(x) * 1000)
    rt_tid = {t: n + 10 for n, t in enumerate(sorted({e["tid"] for e in events}))}
    rt_tid[pid] = 1  # torch's id of the main thread
    spool = Spool(pid, start_ns=base + 1000)
    events.sort(key=lambda e: (ns(e["ts"]), -ns(e["dur"])))
    first, last = min(ns(e["ts"]) for e in events), max(ns(e["ts"]) + ns(e["dur"]) for e in events)
    spool.clock(base + first)
    spool.cycle(1, base + first, 0)
    for e in events:
        start, dur, a = base + ns(e["ts"]), ns(e["dur"]), e["args"]
        step = re.fullmatch(r"ProfilerStep#(\d+)", e["name"])
        if step:
            spool.step(e["tid"], start, start + dur, int(step[1]))
            continue
        # an evaluate_function range carries no numbers of its own: the exporter must find them
        numbered = "Sequence number" in a and not e["name"].startswith("autograd::engine::evaluate_function")
        scope = 7 if e["cat"] == "user_annotation" else 1 if a.get("Fwd thread id") else 0
        thread = re.search(r"\((.*)\)$", names.get(e["tid"], "()"))[1].encode()[:16]
        spool.op(e["tid"], e["name"].encode(), start, dur, scope, rt_tid[e["tid"]], a["Sequence number"] if numbered else None,
                 a["Fwd thread id"] if numbered else 0, a.get("Record function id", 0), thread_name=thread)
    spool.clock(base + last)
    spool.cycle(1, base + first, base + last + 1, 3)
    spool.save(path)


def arrows(trace):
    """(forward name, backward name, sequence number) of each fwdbwd pair, found again by pid, tid and ts."""
    at = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            at[(e["pid"], e["tid"], e["ts"])].append(e)
    ends = collections.defaultdict(dict)
    for e in trace["traceEvents"]:
        if e.get("cat") == "fwdbwd":
            (event,) = at[(e["pid"], e["tid"], e["ts"])]
            ends[e["id"]][e["ph"]] = (event["name"], event["args"]["Sequence number"])
    return collections.Counter((p["s"], p["f"]) for p in ends.values())


def facts(trace):
    """All an event says but its inputs. Our steps are no RecordFunction, so they have no id of one."""
    keep = lambda e: ("Sequence number", "Fwd thread id") + (() if e["name"].startswith("ProfilerStep#") else ("Record function id",))
    return collections.Counter((e["cat"], e["name"], e["pid"], e["tid"], e["ts"], e["dur"], tuple((k, e["args"].get(k)) for k in keep(e)))
                               for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace")


@pytest.mark.parametrize("kind", ["plain", "shapes", "noschedule", "gloo"])
def test_kinetos_trace_told_again_comes_back_the_same(tmp_path, kind):
    paths = sorted((harness.ROOT / "test" / "data" / "traces").glob(f"{kind}*.pt.trace.json.gz"))
    assert len(paths) == (2 if kind == "gloo" else 1)
    for number, path in enumerate(paths):
        reference = load(path)
        retell(reference, tmp_path / f"{number}.kprof")
        written = export(tmp_path / f"{number}.kprof", tmp_path / str(number))
        ours = load(written)
        assert facts(ours) == facts(reference)
        order = [(e["tid"], e["ts"]) for e in ours["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
        assert [ts for _, ts in order] == sorted(ts for _, ts in order)  # by start, as Kineto has it
        assert arrows(ours) == arrows(reference)
        assert ours["baseTimeNanoseconds"] == reference["baseTimeNanoseconds"]
        assert [k for k in ours if k in reference and k not in ("trace_id", "record_shapes", "distributedInfo", "host_name")] == \
            ["schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"]
        thread_names = lambda t: {(e["tid"], e["args"]["name"]) for e in t["traceEvents"] if e["name"] == "thread_name"}
        used = {e["tid"] for e in ours["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"}
        assert thread_names(ours) <= thread_names(reference) and {t for t, _ in thread_names(ours)} == used


def test_names_of_random_bytes_give_valid_json(tmp_path):
    rng = random.Random(35)
    count, spool, names = 100_000, Spool(77, start_ns=10**18), []
    pieces = [b'"', b"\\", b"\n", b"\x01", b"\xff", b"\xed\xa0\x80", "ä".encode(), "€".encode(), "😀".encode(), b"aten::", b"</script>", b"\xc0\x80"]
    spool.clock(10**18)
    for i in range(count):
        if i % 2:
            data = rng.randbytes(rng.randrange(1, 40))
        else:
            data = b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 8)))
        data = data.replace(b"\0", b"\x7f") + b"#%d" % i  # an inner NUL would begin the overload
        names.append(data)
        spool.op(77, data, 10**18 + i * 100, 50)
    spool.clock(10**18 + count * 100)
    spool.cycle(1, 10**18, 10**18 + count * 100, 0)
    spool.save(tmp_path / "random.kprof")
    events = [e for e in load(export(tmp_path / "random.kprof", tmp_path / "out"))["traceEvents"] if e.get("cat") == "cpu_op"]
    assert len(events) == count
    replaced = 0
    for data, event in zip(names, events):
        try:
            assert event["name"] == data.decode()
        except UnicodeDecodeError:
            replaced += 1
            assert "\ufffd" in event["name"] and event["name"].endswith(data[data.rindex(b"#"):].decode())
    assert replaced > count // 3
