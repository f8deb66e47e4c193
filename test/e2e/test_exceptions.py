# SPDX-License-Identifier: Apache-2.0
"""How a Python program ended, as `kprof why` says it: what an exception came from, and who called sys.exit()."""
import gzip
import json
import re
import subprocess

import pytest

import harness
from test_steps import KNOWN, PYTHONS

BEGINS = "import multiprocessing, sys, traceback\nif __name__ == '__main__':\n    for _ in range(4): op(b'aten::linear')\n"
LINES = BEGINS.count("\n") + 2  # of what minitorch and BEGINS put before
ENDS = {  # script: (what ends it, and its line; what that came from)
    "def load(): return {}['lr']\ntry: load()\nexcept KeyError as e: raise ValueError('bad') from e": ('ValueError "bad"', "3 <module>", 'KeyError "lr" at {}:1 load'),
    "def load(): return {}['lr']\ntry: load()\nexcept KeyError: raise ValueError('bad') from None": ('ValueError "bad"', "3 <module>", None),
    "def load(): return {}['lr']\ntry: load()\nexcept KeyError: [].pop()": ('IndexError "pop from empty list"', "3 <module>", 'KeyError "lr" at {}:1 load'),
    "raise ValueError('Caught KeyError in worker 1.\\nOriginal Traceback (most recent call last):\\n  File \"data.py\", line 7, in get\\n    x\\nKeyError: 3\\n')":
        ('ValueError "Caught KeyError in worker 1."', "1 <module>", 'KeyError "3" at data.py:7 get'),
    "raise RuntimeError('[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: no memory')": ('RuntimeError "DefaultCPUAllocator: no memory"', "1 <module>", None),
    "raise RuntimeError('[/x/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:42526')": ('RuntimeError "Connection closed by peer [127.0.0.1]:42526"', "1 <module>", None),
    "raise ValueError('[1, 2] is no size')": ('ValueError "[1, 2] is no size"', "1 <module>", None),
    "def main(): sys.exit(3)\nmain()": ("exit status 3", "1 main", None),
    "def main(): sys.exit('loss is nan')\nfor i in range(99):\n    if i == 98: main()": ("exit status 1", "1 main", None),
    "def main():\n    try: {}['lr']\n    except KeyError: traceback.print_exc(); sys.exit(4)\nmain()": ('KeyError "lr"', "2 main", None),
    "import json\ntry: json.loads('{')\nexcept ValueError: sys.exit(4)": ('JSONDecodeError "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"', "2 <module>", None),
    "try: sys.exit(5)\nexcept SystemExit: pass\ntry: {}['lr']\nexcept KeyError: pass\nraise SystemExit(6)": ("exit status 6", "5 <module>", None),
    "try: sys.exit(5)\nexcept SystemExit as e: sys.exit(e.code)": ("exit status 5", "2 <module>", None),
    "sys.exit()": (None, None, None),
    "import threading\ntry: {}['lr']\nexcept KeyError:\n    t = threading.Thread(target=lambda: sys.exit(6)); t.start(); t.join()\nraise SystemExit(6)": ("exit status 6", "5 <module>", None),
    "import threading\ndef ends(): raise SystemExit(6)\nt = threading.Thread(target=ends); t.start(); t.join()": (None, None, None),
    "def main(): raise SystemExit(3)\nfor i in range(99):\n    if i == 98: main()": ("exit status 3", "1 main", None),
    "def main(): raise SystemExit('loss is nan')\nmain()": ("exit status 1", "1 main", None),
    "def main(): exit(3)\nmain()": ("exit status 3", "1 main", None),
    "def main(): quit('bye')\nmain()": ("exit status 1", "1 main", None),
    "class End(SystemExit): pass\ndef main(): raise End(7)\nmain()": ("exit status 7", "2 main", None),
    "class End(SystemExit):\n    def __init__(self): super().__init__(7)\nraise End": ("exit status 7", "2 __init__", None),
    "try: {}['lr']\nexcept KeyError as e: raise SystemExit(4) from e": ('KeyError "lr"', "1 <module>", None),
    "SystemExit(6)\nraise SystemExit(5)": ("exit status 5", "2 <module>", None),
    "try: sys.exit(5)\nexcept SystemExit as e: raise": ("exit status 5", "1 <module>", None),
    "raise SystemExit": (None, None, None),
    "import asyncio\nasync def main(): raise SystemExit(4)\nasyncio.run(main())": ("exit status 4", "2 main", None),
    "import argparse\ndef main(): argparse.ArgumentParser().parse_args(['--x'])\nmain()": ("exit status 2", "2 main (in argparse.py:N exit)", None),
}
GROUP = "def a(): raise ValueError('empty')\ntry: a()\nexcept ValueError as e: raise ExceptionGroup('two', [e, KeyError()])"


def why(python, script, folder):
    """The first line of `kprof why`, behind "ended ", and the trace's facts of its end."""
    environment = harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_DIR=str(folder), KPROF_LOG="none")
    alone = subprocess.run([python, script], env=harness.clean_environment(), capture_output=True, text=True, timeout=harness.LONG)
    done = subprocess.run([python, script], env=environment, capture_output=True, text=True, timeout=harness.LONG)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    said = harness.cli("why", folder)
    assert said.returncode == 0, said.stderr
    trace, = folder.glob("*.pt.trace.json.gz")
    line = re.sub(r"(\(in \S+\.py):\d+", r"\1:N", said.stdout.splitlines()[0])
    return line.partition(" ended by ")[2], json.loads(gzip.decompress(trace.read_bytes()))["kprof"]


@pytest.mark.parametrize("version", KNOWN)
def test_why_says_what_an_exception_came_from_and_who_left(mini, tmp_path, version):
    if version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    groups = {GROUP: ('ExceptionGroup "two"', "3 <module>", 'ValueError "empty" at {}:1 a')} if version not in KNOWN[:3] else {}
    for number, (end, (by, place, root)) in enumerate({**ENDS, **groups}.items()):
        script = mini(BEGINS + "".join(f"    {line}\n" for line in end.splitlines()), f"m{number}.py")
        at = lambda text: text and f"{script.name}:{int(text.split()[0]) + LINES} {text.partition(' ')[2]}"
        said, facts = why(PYTHONS[version], script, tmp_path / f"out{number}")
        came = root and (root if "{}" not in root else f"{root.split('{}')[0]}{at(root.split('{}:')[1])}")
        assert said == (by and f"{by}{f' at {at(place)}' if place else ''}{f' (caused by {came})' if came else ''}{' before its first step' if 'exit status' in by else ''}" or "itself"), (end, said)
        assert facts.get("exception_root") == came, end


LIBRARY = "import sys\ndef run(how):\n    if how == 'raise': raise SystemExit(3)\n    sys.exit(3)\n"
PROGRAM = "import sys; sys.path.insert(0, {!r})\nfor _ in range(4): op(b'aten::linear')\nimport lib\ndef main(): lib.run({!r})\nmain()"


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_library_that_ends_the_program_stands_behind_the_program_s_own_line(how, mini, tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "lib.py").write_text(LIBRARY)
    said, facts = why(harness.PYTHON, mini(PROGRAM.format(str(folder), how)), tmp_path / "out")
    assert said == "exit status 3 at mini.py:6 main (in lib.py:N run) before its first step" and "exception" not in facts


def test_a_process_of_multiprocessing_says_what_ended_it(mini, tmp_path):
    """It prints the exception, and leaves with status 1: by itself no exception ends it."""
    script = mini("""
import multiprocessing, sys
def work():
    for _ in range(4): op(b"aten::linear")
    raise ValueError("shard 3")
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start(); process.join()
    sys.exit(process.exitcode)
""")
    said, facts = why(harness.PYTHON, script, tmp_path / "out")
    assert said == "ValueError \"shard 3\" at mini.py:7 work" and facts["exit_status"].startswith("1")
