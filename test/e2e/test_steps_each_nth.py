# SPDX-License-Identifier: Apache-2.0
"""Steps that are slow, or have a part of what is asked for, each Nth; and slow at their begin, behind the optimizer of the step before."""
import base64
import json
import re
import zlib

import pytest

import advicetraces
import harness

WORK = "train.py(30): save"


def trained(path, slow, at_begin=True, source="optimizer", marked=True, steps=41, first=10):
    """Steps of 20 ms: an op without gradients, a forward op, its backward, the optimizer. The slow ones have 60 ms more: before the forward op, or behind it."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    trace.head["kprof"] = {**advicetraces.CALM, "step_source": source}

    def op(name, ms, cat="cpu_op", **args):
        nonlocal at
        trace.add(cat, name, 1, at, ms * 1000 - 10, **args)
        at += ms * 1000

    for number in range(first, first + steps):
        began = at
        if number in slow and at_begin:
            op("aten::save", 60, **{"Call stack": WORK})
        op("aten::randn", 1, **{"Call stack": "train.py(7): main"})
        op("aten::conv2d", 8, **{"Sequence number": number, "Fwd thread id": 0, "Call stack": "train.py(8): main"})
        if number in slow and not at_begin:
            op("aten::save", 60, **{"Call stack": WORK})
        op("ConvolutionBackward0", 8, **{"Sequence number": number, "Fwd thread id": 1})
        op("Optimizer.step#SGD.step", 3, cat="user_annotation")
        if marked:
            trace.add("user_annotation", f"ProfilerStep#{number}", 1, began, at - began)
    return trace.write(path)


def slow_of(path):
    found = json.loads(harness.cli("advise", "--json", path).stdout)["findings"]
    return [finding["what"] for finding in found if finding["id"] == "slow-steps"]


def unpacked(page):
    for block in re.findall(r"[A-Za-z0-9+/=]{100,}", page):
        try:
            yield zlib.decompressobj().decompress(base64.b64decode(block))
        except (ValueError, zlib.error):
            continue


def test_steps_of_one_distance_are_told_as_each_nth(tmp_path):
    what, = slow_of(trained(tmp_path / "t.pt.trace.json", {18, 28, 38}, at_begin=False))
    assert what == "some steps last much longer than the others (steps 18, 28, 38, each 10th step): the extra time of these steps is ops"
    what, = slow_of(trained(tmp_path / "u.pt.trace.json", {18, 29, 38}, at_begin=False))
    assert "(steps 18, 29, 38):" in what


def test_report_and_page_tell_each_nth_step(tmp_path):
    trace = trained(tmp_path / "t.pt.trace.json", {18, 28, 38, 48}, at_begin=False)
    assert ", in 4 of 41 steps (18, 28, 38, 48, each 10th step), 22.6 % of all steps' time, within aten::save: 4 calls" in harness.cli("report", "--within", "aten::save", trace).stdout
    page = tmp_path / "p.html"
    harness.cli("html", trace, "-o", page)
    assert b"(steps 18, 28, 38, 48, each 10th step)" in b"".join(unpacked(page.read_text()))


@pytest.mark.parametrize("marked", [True, False])
def test_what_lies_behind_the_optimizer_is_told_to(tmp_path, marked):
    """A loop counts it into the step before."""
    first = 10 if marked else 0  # an optimizer's steps are counted from 0
    what, = slow_of(trained(tmp_path / "t.pt.trace.json", {18, 28, 38}, marked=marked, first=first))
    assert what.endswith("(steps 18, 28, 38, each 10th step): the extra time of these steps is ops, at their start, after the optimizer of the step before "
                         "(for step 18 that of step 17)")
    what, = slow_of(trained(tmp_path / "one.pt.trace.json", {18}, marked=marked, first=first))
    assert re.fullmatch(r"step 18 lasts 60\.0 ms .* ops, at its start, .* step 17", what)


@pytest.mark.parametrize("case", [{"at_begin": False}, {"source": "kprof_step"}])
def test_another_place_or_count_of_steps_is_not_behind_an_optimizer(tmp_path, case):
    what, = slow_of(trained(tmp_path / "t.pt.trace.json", {18, 28, 38}, **case))
    assert what.endswith("the extra time of these steps is ops")
