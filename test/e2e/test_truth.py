# SPDX-License-Identifier: Apache-2.0
"""The cases of test/truth that are quick: what kprof tells of sick and healthy programs, beside their own clocks (`make truth` runs all)."""
import pathlib
import sys

import pytest

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
import cases
import truth


@pytest.mark.parametrize("case", [case for case in cases.CASES if case.quick], ids=lambda case: case.name)
def test_what_is_told_is_true(case, tmp_path):
    rows, text, skipped = truth.judge(case, tmp_path / "run", harness.KPROF, harness.PYTHON, times=2.5)
    if skipped:
        pytest.skip(skipped)
    assert not [row for row in rows if row[-1]], f"{rows}\n{text}"


CASE = cases.Case("of a test", "collated.py", [], [])
WRONG, COST = [("slow-steps", None, 1.0, ["not told"])], [("data-loading", 3.0, 1.0, ["cost"])]
TEXT, WORDS, BOTH = ([(name, None, 1.0, wrong)] for name, wrong in (("text", ["says no /p50/"]), ("slow-steps", ["says no /each/"]), ("slow-steps", ["cost", "says no /each/"])))


@pytest.mark.parametrize("fills, rows, busy, is_skipped", [
    (False, WRONG, 0.66, True), (False, WRONG, 0.05, False), (False, COST, 0.66, True),
    (True, WRONG, 0.66, False), (True, COST, 0.66, True), (False, TEXT, 0.66, False), (False, [], 0.66, False), (False, WORDS, 0.66, False), (False, BOTH, 0.66, True)])
def test_a_wrong_case_without_a_core_is_skipped_with_its_reason(monkeypatch, tmp_path, fills, rows, busy, is_skipped):
    runs = []
    monkeypatch.setattr(truth, "once", lambda *args: runs.append(1) or (rows, "said", busy))
    case = cases.dataclasses.replace(CASE, fills=fills)
    skipped = truth.judge(case, tmp_path)[-1]
    assert bool(skipped) == is_skipped and len(runs) == (truth.TRIES if is_skipped else 1)
    assert not is_skipped or "had no core for 66 % of what it wanted" in skipped


def test_a_case_without_a_core_comes_again_at_the_end():
    first, second = (cases.dataclasses.replace(CASE, name=name) for name in ("first", "second"))
    asked = []

    def judge_one(case, tries):
        asked.append((case.name, tries))
        return [], "", "" if case is second else "had no core"

    judged = [(case.name, skipped) for case, _, _, skipped in truth.all_judged([first, second], judge_one)]
    assert asked == [("first", 1), ("second", 1), ("first", truth.TRIES - 1)]
    assert judged == [("second", ""), ("first", "had no core")]
    assert truth.told_of(first, [], "had no core") == ("skipped", 0)
    assert truth.closing({"right": [], "wrong": [], "skipped": ["first"]}, 0) == "all else is told right; 1 cases are skipped, as their programs had no core: first"


def test_a_figure_that_a_pattern_does_not_find_is_no_other_figure():
    finding = {"what": "no operator runs, 6.8 ms of it in native.py:29 def guard", "step_bytes": 0, "step_ms": 8.3}
    assert truth.figure(finding, cases.Told("no-op-runs", "native_ms", says=(r"([\d.]+) ms of it in native\.py:29",))) == 6.8
    assert truth.figure(finding, cases.Told("no-op-runs", "native_ms", says=(r"([\d.]+) ms of it in native\.py:28",))) is None
    assert truth.figure(finding, cases.Told("no-op-runs", "native_ms")) == 8.3


@pytest.mark.parametrize("text, key, figure", [("p50 700 us,", "p50_ms", 0.7), ("p50 1.25 ms,", "p50_ms", 1.25), ("p50 2.5 s,", "p50_ms", 2500), ("p50 12 s,", "seconds", 12)])
def test_a_figure_of_a_text_is_read_with_its_unit(text, key, figure):
    row = truth.text_row(cases.Told("text", key, says=(r"p50 ([\d.]+) (?:us|ms|s)\b",)), {key: figure}, text, 1)
    assert row[1] == pytest.approx(figure) and row[-1] == []
