# SPDX-License-Identifier: Apache-2.0
"""Prints which end to end tests took most seconds of a core, of files with --junitxml (scripts/test leaves build/test/e2e/*.xml).

usage: core_seconds.py [-n COUNT] FILE...      a fixture's seconds are its first test's; a run that another file made is nobody's here
"""
import argparse
import collections
import pathlib
import xml.etree.ElementTree as tree

parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("      ")[0])
parser.add_argument("-n", type=int, default=60)
parser.add_argument("files", nargs="+", type=pathlib.Path)
options = parser.parse_args()
rows, files = [], collections.Counter()
for path in options.files:
    for case in tree.parse(path).iter("testcase"):
        core = max((float(one.get("value")) for one in case.iter("property") if one.get("name") == "core_seconds"), default=0)
        rows.append((core, float(case.get("time")), f"{path.stem}::{case.get('name')}"))
        files[path.stem] += core
for name, core in files.most_common():
    print(f"{core:8.1f} s of a core  {name}")
for core, wall, name in sorted(rows, reverse=True)[:options.n]:
    print(f"{core:8.1f} s of a core, {wall:7.1f} s  {name}")
