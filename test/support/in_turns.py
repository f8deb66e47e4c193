# SPDX-License-Identifier: Apache-2.0
"""Runs commands of a shell in turns, and prints the median and the least seconds of a core (user and system) that each took.

usage: in_turns.py ROUNDS COMMAND...      orphans are waited for, so that a browser's processes count
"""
import ctypes
import os
import resource
import statistics
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def core_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def took(command):
    began = core_seconds()
    subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return core_seconds() - began


ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
rounds, commands = int(sys.argv[1]), sys.argv[2:]
all_took = [[took(command) for command in commands] for _ in range(rounds)]
for command, each in zip(commands, zip(*all_took)):
    print(f"{statistics.median(each):8.3f} s of a core, least {min(each):.3f}  {command}")
