# SPDX-License-Identifier: Apache-2.0
"""%%kprof: records what a cell does, shows the report of its trace, and the page that kprof html makes of it."""
import glob
import html
import os
import re
import subprocess
import time

import kprof

WAIT = 60  # seconds at most for the trace of a cell
HOW = "start it with: kprof run --schedule none -- jupyter lab"
START = os.getcwd()  # when the extension was loaded: a relative KPROF_DIR and the links of the notebook begin there
FOLDER = os.path.join(START, os.environ.get("KPROF_DIR") or "kprof")


class CellFailed(Exception):
    """Ends "run all" behind a cell whose own error is shown above."""

    def _render_traceback_(self):
        return ["kprof: the cell failed; what it did until then is in the report"]


def _traces():
    """This process's finished traces."""
    worker = re.escape(os.environ.get("KPROF_WORKER_NAME") or "_%d" % os.getpid())
    own = re.compile(worker + r"\.[^/]*pt\.trace\.json(\.gz)?$")
    return {path for path in glob.glob(os.path.join(glob.escape(FOLDER), "*")) if own.search(path)}


def _new_trace(before):
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        new = _traces() - before
        if new:
            return max(new, key=os.path.getmtime)
        time.sleep(0.05)
    return None


def _command(*words):
    return subprocess.run([str(kprof._installed("kprof"))] + list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)


def _show_page(shell, trace):
    """Makes the page beside the trace. A notebook gets a link, and a frame if its server can reach the page; the link is small in the file."""
    page = trace.split(".pt.trace.json")[0] + ".html"
    made = _command("html", trace, "-o", page)
    if made.returncode:
        print(made.stdout)
        return
    print("page: %s" % page)
    if not hasattr(shell, "kernel"):
        return
    from IPython.display import HTML, display

    source = html.escape(os.path.relpath(page, START), quote=True)
    frame = "" if source.startswith("..") else '<iframe src="%s" width="100%%" height="600" style="border:1px solid #8888"></iframe>' % source
    display(HTML('<a href="%s" target="_blank">the page of this cell</a>%s' % (source, frame)))


def _show(shell, flags, trace):
    if not trace:
        print("kprof: no trace after %d s; later: kprof report %s" % (WAIT, FOLDER))
        return
    print(_command("report", *(flags + [trace])).stdout)
    print("trace: %s" % trace)
    _show_page(shell, trace)


def record(line, cell):
    """%%kprof [flags of kprof report]: runs the cell in a window of its own."""
    import IPython

    shell = IPython.get_ipython()
    before = _traces()
    rc = kprof.start()
    if rc:
        print("kprof: this kernel is not recorded (%s); %s" % (os.strerror(-rc), HOW))
    result = shell.run_cell(cell)
    if not rc:
        kprof.stop()
        _show(shell, line.split(), _new_trace(before))
    if not result.success:
        raise CellFailed()
