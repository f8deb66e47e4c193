# SPDX-License-Identifier: Apache-2.0
"""%%kprof: records what a cell does, and shows the report of its trace."""
import glob
import os
import subprocess
import time

import kprof

WAIT = 60  # seconds at most for the trace of a cell


def _traces():
    return set(glob.glob(os.path.join(os.environ.get("KPROF_DIR") or "kprof", "*.pt.trace.json*")))


def record(line, cell):
    """%%kprof [flags of kprof report]: runs the cell in a window of its own."""
    import IPython

    shell = IPython.get_ipython()
    before = _traces()
    rc = kprof.start()
    if rc:
        print("kprof: this kernel is not recorded (%s); start it with: kprof run --schedule wait=1000000000 -- jupyter lab" % os.strerror(-rc))
        shell.run_cell(cell)
        return
    try:
        shell.run_cell(cell)
    finally:
        kprof.stop()
    until = time.monotonic() + WAIT
    while not (_traces() - before) and time.monotonic() < until:
        time.sleep(0.05)
    new = sorted(_traces() - before)
    if not new:
        print("kprof: no trace after %d s" % WAIT)
        return
    done = subprocess.run([str(kprof._installed("kprof")), "report", *line.split(), new[-1]], capture_output=True, text=True)
    print(done.stdout + done.stderr + new[-1])
