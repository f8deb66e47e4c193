# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for run.py: writes down each test as it begins and as it ends, so that a death or a hang leaves the name and all before it.

PEERS_LOG names the file, lines of JSON; PEERS_DONE one with the tests that are not run again; PEERS_SECONDS says how long after they are
collected no other begins. What a test came to is its outcome, with the type of what it raised and the categories of its warnings: all that
is the same in two runs.
"""
import json
import os
import time

import pytest

LOG, OWNER, SECONDS = os.environ["PEERS_LOG"], os.getpid(), float(os.environ["PEERS_SECONDS"])
seen = {}  # test -> what its phases came to
texts = {}


def say(**what):
    if os.getpid() != OWNER:  # a fork that comes back into pytest
        return
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.write(file, (json.dumps(what) + "\n").encode())
    os.close(file)


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(config, items):
    with open(os.environ["PEERS_DONE"]) as file:
        done = set(json.load(file))
    left = [item for item in items if item.nodeid in done]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.nodeid not in done]
    config.peers_until = time.monotonic() + SECONDS
    say(what="tests", tests=[item.nodeid for item in items])


def pytest_collectreport(report):
    if report.failed:
        say(what="end", test=report.nodeid, outcome="cannot be collected", text=str(report.longrepr)[-3000:])


def pytest_runtest_logstart(nodeid):
    seen[nodeid] = set()
    texts[nodeid] = ""
    say(what="begin", test=nodeid)


def outcome(report):
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        kind = (crash.message if crash else str(report.longrepr)).split("\n")[0].split(":")[0].strip()[:80]
        return "%s %s" % ("failed" if report.when == "call" else "error at " + report.when, kind)
    if report.skipped:
        return "skipped"
    return "passed" if report.when == "call" else None


def pytest_runtest_logreport(report):
    what = outcome(report)
    if what:
        seen.setdefault(report.nodeid, set()).add(what)
    if report.failed:
        texts[report.nodeid] = str(report.longrepr)[-3000:]


def pytest_warning_recorded(warning_message, when, nodeid):
    if when == "runtest" and nodeid in seen:
        seen[nodeid].add("warns " + warning_message.category.__name__)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own, which tells of warnings at its end
def pytest_runtest_protocol(item):
    result = yield
    say(what="end", test=item.nodeid, outcome=", ".join(sorted(seen.pop(item.nodeid, ()))), text=texts.pop(item.nodeid, ""))
    if time.monotonic() > item.config.peers_until:
        say(what="time")
        item.session.shouldstop = "the time is up"
    return result
