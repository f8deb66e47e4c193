# SPDX-License-Identifier: Apache-2.0
"""Calls of one kind, 12 of them: calls.py KIND. Runs in any Python and needs no torch. Prints how many requests there were."""
import asyncio
import cProfile
import doctest
import functools
import gc
import importlib
import inspect
import os
import pickle
import pstats
import sys
import threading

import served

REQUESTS = 12


def step(n):
    """
    >>> step(1)
    2
    """
    return n + 1


class Server:
    def answer(self, n, again=True):
        if callable(n):
            return n()
        return self.answer(n, False) if again else n  # a call inside a call

    @staticmethod
    def fixed(n):
        return n

    @classmethod
    def made(cls, n):
        return n

    def __call__(self, n):
        return n


def fails(n):
    raise KeyError(n)


def items(n):
    for i in range(n):
        yield i


async def inner(n):
    await asyncio.sleep(0)
    return n


async def request(n):
    for _ in range(3):
        await inner(n)
    return n


def wrapped(fn):
    @functools.wraps(fn)
    def around(*args, **kwargs):
        return fn(*args, **kwargs)
    return around


@wrapped
def decorated(n):
    return n


def recursive(n):
    return n and recursive(n - 1)


async def requests_in_turn():
    for n in range(REQUESTS):
        await request(n)


async def requests_at_once():
    kept = [asyncio.ensure_future(request(n)) for n in range(REQUESTS)]
    await asyncio.gather(*kept)
    return kept


def in_threads():
    def work():
        for n in range(REQUESTS // 4):
            step(n)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def failing():
    for n in range(REQUESTS):
        try:
            fails(n)
        except KeyError as e:
            assert e.args == (n,)


def methods():
    server = Server()
    for n in range(REQUESTS):
        server.answer(n)


def reloaded():
    for n in range(REQUESTS):
        importlib.reload(served)
        assert served.serve_one(n) == n + 2


def deleted():
    for n in range(REQUESTS):
        step(n)
    del globals()["step"]
    gc.collect()
    for n in range(1000):  # in the memory of the one that is gone
        exec("def other(n): return n\nother(1)", {})


def generators_kept():
    kept = []
    for _ in range(REQUESTS):
        kept.append(items(5))
        assert sum(kept[-1]) == 10
    return kept


def generators_cut():
    for _ in range(REQUESTS):
        assert next(items(5)) == 0


# ---- what else a program does with its functions ----


def looked_at():
    assert str(inspect.signature(step)) == "(n)" and inspect.getsource(step).startswith("def step(n)")
    assert type(step) is type(steps) and pickle.loads(pickle.dumps(step)) is step
    assert functools.wraps(step)(lambda n: n).__wrapped__ is step
    assert doctest.testmod().failed == 0  # the first call
    for n in range(REQUESTS - 1):
        step(n)


def new_code():
    for n in range(REQUESTS):
        space = {}
        exec("def other(n): return n + %d" % n, space)
        step.__code__ = space["other"].__code__
        step.__defaults__ = (3,)
        assert step() == 3 + n


def steps():
    for n in range(REQUESTS):
        step(n)


def profiled():
    seen = []
    sys.setprofile(lambda frame, what, arg: seen.append(what) if frame.f_code is step.__code__ else None)
    steps()
    sys.setprofile(None)
    assert seen == ["call", "return"] * REQUESTS, seen


def cprofiled():
    profile = cProfile.Profile()
    profile.runcall(steps)
    assert [row[0] for (_, _, name), row in pstats.Stats(profile).stats.items() if name == "step"] == [REQUESTS]


def monitored():
    """All tools that a program may have are taken."""
    if not hasattr(sys, "monitoring"):
        return steps()
    seen = []
    for tool in range(6):
        sys.monitoring.use_tool_id(tool, "tool %d" % tool)
    sys.monitoring.register_callback(0, sys.monitoring.events.PY_START, lambda code, at: seen.append(code))
    sys.monitoring.set_local_events(0, step.__code__, sys.monitoring.events.PY_START)
    steps()
    assert seen == [step.__code__] * REQUESTS


def forks(n):
    child = os.fork()
    if child == 0:
        steps()
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8


def in_daemon():
    """A call that never ends."""
    held = threading.Event()
    threading.Thread(target=Server().answer, args=(held.wait,), daemon=True).start()
    steps()


def generators():
    for _ in range(REQUESTS):
        assert sum(items(5)) == 10


KINDS = {
    "step": lambda: [step(n) for n in range(REQUESTS)],
    "methods": methods,
    "static": lambda: [Server.fixed(n) for n in range(REQUESTS)],
    "class": lambda: [Server.made(n) for n in range(REQUESTS)],
    "instance": lambda: [Server()(n) for n in range(REQUESTS)],
    "failing": failing,
    "generators": generators,
    "in_turn": lambda: asyncio.run(requests_in_turn()),
    "at_once": lambda: asyncio.run(requests_at_once()),
    "decorated": lambda: [decorated(n) for n in range(REQUESTS)],
    "recursive": lambda: [recursive(9) for n in range(REQUESTS)],
    "threads": in_threads,
    "imported": lambda: [served.serve_one(n) for n in range(REQUESTS)],
    "from_c": lambda: list(map(step, range(REQUESTS))),
    "reloaded": reloaded,
    "generators_kept": generators_kept,
    "generators_cut": generators_cut,
    "looked_at": looked_at,
    "new_code": new_code,
    "profiled": profiled,
    "cprofiled": cprofiled,
    "monitored": monitored,
    "forks": lambda: [forks(n) for n in range(REQUESTS)],
    "in_daemon": in_daemon,
    "deleted": deleted,
    "exits": lambda: [steps(), print("iterations", REQUESTS), sys.exit(0)],
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
    print("iterations", REQUESTS)
