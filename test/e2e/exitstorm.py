# SPDX-License-Identifier: Apache-2.0
"""Short programs, many at a time, so that they end while the library still begins: statuses and outputs beside those without it.

usage: exitstorm.py [--runs N] [--at-once N] [--only TEXT]      KPROF_PYTHON is the python with torch, as for all of e2e
A line for each case; exit 1 where a run with the library ended, or printed, otherwise than the program alone.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness

LIBRARY_OF_TORCH = "import ctypes, importlib.util, os; ctypes.CDLL(os.path.join(importlib.util.find_spec('torch').submodule_search_locations[0]," \
                   " 'lib', 'libtorch_cpu.so'))"
PROGRAMS = {
    "loads the library": LIBRARY_OF_TORCH,
    "imports": "import torch",
    "runs an op": "import torch; print(torch.ones(3).sum().item())",
    "exits in a thread's midst": "import threading, torch\n"
                                 "def ops():\n    while True: torch.ones(9) + 1\n"
                                 "threading.Thread(target=ops, daemon=True).start()",
    "leaves by _exit": "import os, torch; torch.ones(3); os._exit(3)",
    "raises": "import torch; torch.ones(3) + torch.ones(4)",
    "is killed": "import os, signal, torch; torch.ones(3); os.kill(os.getpid(), signal.SIGKILL)",
}
# How a program alone ends now and then (1 of 60 runs beside a load, 2 of 24 with sys.setswitchinterval(1e-6)): Python
# took the GIL from the thread between two calls, not inside one. No C++ is on its stack then, so that its end is silent.
AT_TIMES = {"exits in a thread's midst": [(0, "", "")]}
SETTINGS = {
    "recorded": {},
    "counted": {"KPROF_MALLOC": "count"},
    "heap": {"KPROF_MALLOC": "trace", "KPROF_WITH_STACK": "1"},
    "stacks and memory": {"KPROF_WITH_STACK": "native", "KPROF_PROFILE_MEMORY": "1"},
    "steps by time": {"KPROF_SCHEDULE": "wait=0,warmup=1,active=1", "KPROF_STEP": "time:50ms", "KPROF_WITH_STACK": "1"},
    "calls": {"KPROF_SYMBOLS": "pthread_create"},
    "control": {"KPROF_CONTROL": "1", "KPROF_MALLOC": "count"},
}


def ended(program, settings, above):
    folder = pathlib.Path(tempfile.mkdtemp(dir=above))
    if settings is not None:
        settings = {"LD_PRELOAD": harness.LIBRARY, "KPROF_DIR": folder / "kprof", "KPROF_LOG": "none", **settings}
    run = subprocess.run([harness.PYTHON, "-c", program], cwd=folder, env=harness.clean_environment(OMP_NUM_THREADS=1, **(settings or {})),
                         capture_output=True, text=True, timeout=600)
    shutil.rmtree(folder)
    return run.returncode, run.stdout, run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--at-once", type=int, default=6 * (os.cpu_count() or 1))
    parser.add_argument("--only", default="", help="cases with this text")
    options = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as above, concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:

        def endings(program, settings):
            return collections.Counter(pool.map(lambda _: ended(program, settings, above), range(options.runs)))

        for name, program in PROGRAMS.items():
            wanted = {f"{name}, {how}": settings for how, settings in SETTINGS.items() if options.only in f"{name}, {how}"}
            alone = endings(program, None) if wanted else {}
            for case, settings in wanted.items():
                known = [*alone, *AT_TIMES.get(name, [])]
                others = {end: count for end, count in endings(program, settings).items() if end not in known}
                worst += len(others)
                print(f"{case:45} {options.runs} runs, {sum(others.values())} ended otherwise {list(others)[:2] or ''}", flush=True)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
