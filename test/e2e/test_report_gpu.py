# SPDX-License-Identifier: Apache-2.0
"""kprof report of traces with a GPU: each number beside one that this file counts in the JSON."""
import collections
import json

import pytest

import advicetraces
import gputraces
import harness


def told(command, *argv):
    done = harness.cli(command, *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(*argv):
    return json.loads(told("report", "--json", "-n", "0", *argv))


def spans(events):
    return [(e["ts"], e["ts"] + e["dur"]) for e in events]


def is_in(at, spans):
    return any(begin <= at < end for begin, end in spans)


# ---- reads of single values ----

def own_reads(events):
    """Reads that the program asks for in a step: in these files each has one aten::item."""
    steps = spans(e for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] == "user_annotation")
    torchs = collections.defaultdict(list)
    for e in events:
        if e["name"].startswith(("Optimizer.", "enumerate(DataLoader)#")) and e["cat"] == "user_annotation":
            torchs[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    names = collections.Counter(e["name"] for e in events)
    assert names["aten::item"] == names["aten::_local_scalar_dense"]
    return sum(is_in(e["ts"], steps) and not is_in(e["ts"], torchs[e["tid"]]) for e in events if e["name"] == "aten::item")


@pytest.mark.parametrize("name", ["h200_training", "h200_compiled", "neg_queue_a100", "diff_test_v100"])
def test_reads_of_single_values_are_those_in_the_file(name, real_gpu_trace):
    path = real_gpu_trace(name)
    count = own_reads(gputraces.slices(gputraces.load(path)))
    said = numbers(path)
    rounded = 1 if name == "neg_queue_a100" else 0  # whole microseconds: a read of the optimizer ends behind it
    assert said.get("value_reads", 0) == pytest.approx(count if said["steps"]["count"] else 0, abs=rounded)
    each = count / (said["steps"]["count"] or 1)
    assert ("reads    " in told("report", path)) == (each >= 8)


def reading(reads):
    def make(trace, base):
        for i in range(reads):
            trace.add("cpu_op", "aten::item", 1, base + 10 * i, 6, **{"Call stack": advicetraces.SICK})
            trace.add("cpu_op", "aten::_local_scalar_dense", 1, base + 10 * i + 1, 4, **{"Call stack": advicetraces.SICK})
        trace.work(advicetraces.GEMM, base + 900, 90, line=advicetraces.WELL)
    return make


def test_many_reads_are_a_line_and_advise_names_their_line(tmp_path):
    for reads, is_told in ((7, False), (29, True)):
        trace = advicetraces.Trace()
        path = trace.each(lambda base: reading(reads)(trace, base)).write(tmp_path / f"{reads}.pt.trace.json")
        assert numbers(path)["value_reads"] == reads * advicetraces.STEPS
        line = f"reads    {reads} reads of single values a step (.item() and the like): `kprof advise` has their lines\n"
        assert (line in told("report", path)) == is_told
        assert (f"seen: .item() and its like, {reads} a step, with the loop around them at train.py:12 sick (" in told("advise", path)) == is_told
