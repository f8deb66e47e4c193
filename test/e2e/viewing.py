# SPDX-License-Identifier: Apache-2.0
"""The viewers people use, started for a test: TensorBoard with its PyTorch plugin, HolisticTraceAnalysis."""
import atexit
import contextlib
import gzip
import json
import select
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import pytest

import harness


def venv(name):
    """The python of another set of requirements; made now when it is not there yet."""
    said = subprocess.run([harness.ROOT / "scripts" / "venv", name], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


JUDGE = """import json, sys, jsonschema
schema, *rows = json.load(sys.stdin)
judge = jsonschema.Draft202012Validator(schema)
judge.check_schema(schema)
print(json.dumps([[error.message[:300] for error in judge.iter_errors(row)] for row in rows]))"""


def judge(schema, rows):
    """The faults that JSON Schema finds in each row, by the package jsonschema."""
    done = subprocess.run([venv("jupyter"), "-c", JUDGE], input=json.dumps([schema, *rows]), capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


@contextlib.contextmanager
def tensorboard(folders, runs):
    """ask(route, **query): what the plugin of a TensorBoard over these folders answers, once it has found so many runs."""
    python = venv("tensorboard")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = open(folders / "tensorboard.log", "w+")
    server = subprocess.Popen([python, "-m", "tensorboard.main", "--logdir", folders, "--host", "127.0.0.1", "--port", str(port)],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=harness.clean_environment())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(route, **query):
        url = f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler/{route}?{urllib.parse.urlencode(query)}"
        with opener.open(url, timeout=harness.LONG) as reply:
            body = reply.read()
            return json.loads(gzip.decompress(body) if reply.headers.get("Content-Encoding") == "gzip" else body)

    def why():
        log.flush()
        log.seek(0)
        return log.read()[-3000:]

    ask.log = why
    try:
        limit = time.monotonic() + harness.LONG
        while True:
            assert server.poll() is None and time.monotonic() < limit, why()
            with contextlib.suppress(OSError, ValueError):
                found = ask("runs")
                if not found["loading"] and len(found["runs"]) == runs:
                    break
            time.sleep(0.5)
        yield ask
    finally:
        server.terminate()
        server.wait()
        log.close()


def only_file(folder):
    return next(folder.glob("*.pt.trace.json*"))


def torchs_verdict(trace):
    """What torch's own validator says of a trace; a good one gives "True []"."""
    said = harness.Run([harness.PYTHON, harness.HERE / "oracle" / "validate.py", trace], trace.parent, harness.clean_environment(), harness.LONG, warm_start=True)
    return said.out.strip() or said.err[-2000:]


class Browser:
    """The Chromium of a file of tests: it starts with the first question, and anew with the next one after a failure."""

    process = log = None

    def begin(self):
        if not (shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")) or not shutil.which("chromedriver"):
            pytest.skip("no Chromium with its driver here")
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([venv("perfetto"), harness.HERE / "viewers" / "asks.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        bufsize=0, env=harness.clean_environment())
        atexit.register(self.end)

    def end(self):
        """The process ends with its input, and the browser with it."""
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.process = None
        atexit.unregister(self.end)

    def ask(self, script, *arguments):
        """What asked() of a script in viewers/ or report/ returns."""
        if not self.process:
            self.begin()
        self.process.stdin.write(json.dumps([script, *map(plain, arguments)]).encode() + b"\n")
        line = self.process.stdout.readline() if select.select([self.process.stdout], [], [], harness.LONG)[0] else b""
        if not line:
            self.process.terminate()
            self.end()
            self.log.seek(0)
            raise AssertionError(f"{script} {arguments}: {self.log.read()[-3000:] or 'no answer'}")
        return json.loads(line)[0]


def plain(argument):
    return argument if isinstance(argument, (bool, str)) else str(argument)


browser = Browser()
