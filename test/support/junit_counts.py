# SPDX-License-Identifier: Apache-2.0
"""Prints "passed failed skipped" of a junit file; a run that ended badly without saying so counts one failure.

A run whose pattern (-k) left no test to run ends with 5: nothing passed, and nothing failed.

usage: junit_counts.py FILE EXIT_STATUS_OF_PYTEST
"""
import sys
import xml.etree.ElementTree as tree

try:
    suites = list(tree.parse(sys.argv[1]).getroot().iter("testsuite"))
except (OSError, tree.ParseError):
    suites = []
number = {key: sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")}
bad = number["failures"] + number["errors"]
passed = number["tests"] - bad - number["skipped"]
if not bad and (sys.argv[2] not in ("0", "5") or (sys.argv[2] == "0" and not number["tests"])):
    bad = 1
print(max(passed, 0), bad, number["skipped"])
