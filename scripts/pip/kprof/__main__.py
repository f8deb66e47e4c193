# SPDX-License-Identifier: Apache-2.0
"""python -m kprof: the command kprof. `python -m kprof run train.py ...` runs a script with this Python."""
import os
import sys

import kprof

def command(words):
    """The words for the command: a script after `run` gets this interpreter before it."""
    if words[:1] != ["run"]:
        return words
    for at, word in enumerate(words[1:], 1):
        if word == "--":
            return words
        if word.endswith(".py") and os.path.isfile(word):
            return words[:at] + ["--", sys.executable] + words[at:]
    return words


def main():
    program = str(kprof._installed("kprof"))
    os.execv(program, [program] + command(sys.argv[1:]))


if __name__ == "__main__":
    main()
