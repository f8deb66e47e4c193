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
    rows, text = truth.judge(case, tmp_path / "run", harness.KPROF, harness.PYTHON, times=2.5)
    assert not [row for row in rows if row[-1]], f"{rows}\n{text}"
