# SPDX-License-Identifier: Apache-2.0
"""The Python module of the wheel (scripts/pip/kprof): kprof.h's functions, in a program under libkprof.so and in one that is not."""
import gzip
import json
import subprocess
import sys

import harness

MODULE = harness.ROOT / "scripts/pip"
CALLS = """
import json, kprof, time
said = [kprof.is_recording_possible(), kprof.step_num(), kprof.stop(), kprof.start(), kprof.metadata("who", "me"), kprof.metadata("sizes", [1, 2])]
with kprof.range("load"):
    time.sleep(0.01)
@kprof.range("work")
def work(n):
    return n + 1
said += [work(1), kprof.step(), kprof.step_num(), kprof.stop()]
print(json.dumps(said))
"""


def said(folder, **env):
    run = subprocess.run([sys.executable, "-c", CALLS], cwd=folder, env=harness.clean_environment(PYTHONPATH=MODULE, **env), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_without_the_library_every_function_does_nothing(tmp_path):
    import errno
    no = -errno.ENOSYS
    assert said(tmp_path) == [False, no, no, no, no, no, 2, no, no, no]


def test_under_the_library_it_steps_names_ranges_and_keeps_metadata(tmp_path):
    import errno
    library = harness.ROOT / "build/libkprof.so"
    got = said(tmp_path, LD_PRELOAD=library, KPROF_DIR=tmp_path / "out", KPROF_SCHEDULE="wait=1000,warmup=1,active=1")
    assert got == [True, 0, -errno.EALREADY, 0, 0, 0, 2, 0, 1, 0]
    trace, = (tmp_path / "out").glob("*.pt.trace.json.gz")
    read = json.loads(gzip.decompress(trace.read_bytes()))
    assert {"load", "work"} <= {event.get("name") for event in read["traceEvents"]}
    assert read["who"] == "me" and read["sizes"] == [1, 2]


def test_a_script_after_run_gets_this_python():
    code = "import kprof.__main__ as m, sys; print(m.command(['run', '--with-stack', 'ops', sys.argv[1], 'x']))"
    run = subprocess.run([sys.executable, "-c", code, __file__], env=harness.clean_environment(PYTHONPATH=MODULE), capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(["run", "--with-stack", "ops", "--", sys.executable, __file__, "x"])
