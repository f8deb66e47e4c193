# SPDX-License-Identifier: Apache-2.0
"""Runs files of tests one after another, each in a fork of a process that has pytest: to start it for each takes longer.

usage: lane.py FOLDER FILE... -- ARGUMENT_OF_PYTEST...
Lanes of one folder share the files: each takes the next one that none has taken (FOLDER/NAME.taken). NAME.log is what pytest
prints, NAME.xml its junit file, NAME.code its exit status, negative where a signal ended it.
"""
import os
import pathlib
import sys

import pytest

sys.path[0] = os.getcwd()  # as python -m pytest has it


def take(at):
    try:
        os.mkdir(f"{at}.taken")
    except FileExistsError:
        return False
    return True


def tested(file, at, words):
    with open(f"{at}.log", "wb", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    return pytest.main([file, *words, "--junitxml", f"{at}.xml"])


def main():
    folder, *files = sys.argv[1:sys.argv.index("--")]
    words = sys.argv[sys.argv.index("--") + 1:]
    for file in files:
        at = pathlib.Path(folder) / pathlib.Path(file).stem
        if not take(at):
            continue
        child = os.fork()
        if not child:
            sys.exit(tested(file, at, words))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        pathlib.Path(f"{at}.code").write_text(f"{code}\n")


main()
