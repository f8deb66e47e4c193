# SPDX-License-Identifier: Apache-2.0
"""The schedule machine against torch.profiler.schedule itself: every action of ten thousand random tuples."""
import ctypes
import os
import random
import subprocess
import warnings

import pytest

import harness

TUPLES = 10_000
STEPS = 64
FIELDS = ("skip_first", "wait", "warmup", "active", "repeat", "skip_first_wait")


class Schedule(ctypes.Structure):
    _fields_ = [("set", ctypes.c_bool), *((name, ctypes.c_uint64) for name in FIELDS)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """schedule/schedule.c alone as a library: the product exports none of its insides."""
    library = tmp_path_factory.mktemp("machine") / "libmachine.so"
    sources = [harness.ROOT / name for name in ("schedule/schedule.c", "schedule/schedule_text.c", "collector/base/text/distance.c", "collector/base/text/fmt.c")]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-I", harness.ROOT,
                    *sources, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def torch_actions(tuple_):
    schedule = pytest.importorskip("torch.profiler").schedule
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            action = schedule(**tuple_)
        except TypeError:  # before skip_first_wait
            assert tuple_.pop("skip_first_wait") == 0
            action = schedule(**tuple_)
    return [int(action(step).value) for step in range(STEPS)]


def knows_skip_first_wait():
    profiler = pytest.importorskip("torch.profiler")
    return "skip_first_wait" in profiler.schedule.__code__.co_varnames


def test_every_action_is_torch_profilers(machine):
    rng = random.Random(20261121)
    late = 3 if knows_skip_first_wait() else 1
    for _ in range(TUPLES):
        tuple_ = {"skip_first": rng.randrange(8), "wait": rng.randrange(8), "warmup": rng.randrange(5), "active": rng.randrange(1, 7),
                  "repeat": rng.randrange(5), "skip_first_wait": rng.randrange(late)}
        ours = Schedule(True, *(tuple_[name] for name in FIELDS))
        actions = [machine.kp_schedule_action(ctypes.byref(ours), ctypes.c_uint64(step)) for step in range(STEPS)]
        assert actions == torch_actions(dict(tuple_)), tuple_


def test_what_torch_refuses_is_refused(machine):
    schedule = pytest.importorskip("torch.profiler").schedule
    why = ctypes.create_string_buffer(200)
    for text, tuple_ in (("wait=1,warmup=1,active=0", {"wait": 1, "warmup": 1, "active": 0}),
                         ("wait=-1,warmup=1,active=1", {"wait": -1, "warmup": 1, "active": 1}),
                         ("wait=1,warmup=1,active=1,repeat=-1", {"wait": 1, "warmup": 1, "active": 1, "repeat": -1})):
        with pytest.raises(AssertionError):
            schedule(**tuple_)
        parsed = Schedule()
        assert machine.kp_schedule_parse(text.encode(), ctypes.byref(parsed), why, ctypes.c_ulong(200)) < 0
        assert why.value
    assert machine.kp_schedule_parse(b"wait=1,warmup=2,active=3", ctypes.byref(parsed), why, ctypes.c_ulong(200)) == 0
    assert (parsed.set, parsed.wait, parsed.warmup, parsed.active) == (True, 1, 2, 3)
