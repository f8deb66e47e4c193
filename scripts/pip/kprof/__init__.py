# SPDX-License-Identifier: Apache-2.0
"""libkprof from Python: kprof.h's functions for a program that may run under libkprof.so, and where the library lies.

Every function may be called always: without libkprof.so in the process it does nothing, and what returns a number returns
-errno.ENOSYS. `import kprof` loads no library.

    import kprof
    kprof.step()                      # one step of the schedule
    with kprof.range("tokenize"):     # a range in the trace, as torch.profiler.record_function
        ...
    kprof.start(); ...; kprof.stop()  # a window by hand
"""
import contextlib
import ctypes
import errno
import functools
import json
import pathlib

__all__ = ["is_recording_possible", "library", "metadata", "phase", "range", "start", "step", "step_num", "stop", "toggle"]


@functools.lru_cache(maxsize=None)
def _function(name):
    """kprof.h's function in this process, or None. It takes no lock of Python's for long: the GIL stays."""
    try:
        return getattr(ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None


def _call(name, *arguments, result=ctypes.c_int):
    function = _function(name)
    if function is None:
        return -errno.ENOSYS
    function.restype = result
    return function(*arguments)


def is_recording_possible():
    """Whether libkprof.so is in this process."""
    return _function("kprof_step") is not None


def step():
    """Ends a step. From the first call on this is the only source of steps. 0 or -errno."""
    return _call("kprof_step")


def step_num():
    """The number of the current step, from 0, or -errno."""
    return _call("kprof_step_num", result=ctypes.c_longlong)


def start():
    """Begins a window, whatever the schedule says. 0 or -errno."""
    return _call("kprof_start")


def stop():
    """Ends the window that start() began; its trace is written meanwhile. 0 or -errno."""
    return _call("kprof_stop")


def keep():
    """Writes a trace of the last seconds (KPROF_RING), while the recording goes on. 0 or -errno."""
    return _call("kprof_keep")


def alive():
    """A long pause in which no step ends is meant: the time of KPROF_HANG starts again. 0 or -errno."""
    return _call("kprof_alive")


def phase(name=None):
    """Enters this phase of KPROF_PHASES; None ends it. 0 or -errno."""
    return _call("kprof_phase", name.encode() if name else None)


def toggle(activity, on):
    """Records "cpu" or "cuda" no more, or again, as torch.profiler's toggle_collection_dynamic. 0 or -errno."""
    return _call("kprof_toggle", activity.encode(), int(on))


@contextlib.contextmanager
def range(name):
    """A range of this thread in the trace: `with kprof.range("load"):`, or `@kprof.range("load")` before a function."""
    pushed = _call("kprof_range_push", name.encode()) == 0
    try:
        yield
    finally:
        if pushed:
            _call("kprof_range_pop")


def metadata(key, value):
    """Writes a key into the traces from now on. A value that is no str is written as JSON. 0 or -errno."""
    if isinstance(value, str):
        return _call("kprof_metadata", key.encode(), value.encode())
    return _call("kprof_metadata_json", key.encode(), json.dumps(value).encode())


def _installed(name):
    """A file of this package, by what pip noted when it installed it."""
    import importlib.metadata  # here, because a program that only calls step() has no use for it

    for file in importlib.metadata.files("kprof") or ():
        if file.name == name:
            return pathlib.Path(file.locate()).resolve()
    raise FileNotFoundError("the installed package kprof has no %s" % name)


def library():
    """The path of libkprof.so, for LD_PRELOAD."""
    return str(_installed("libkprof.so"))


def load_ipython_extension(shell):
    """%load_ext kprof: the cell magic %%kprof records a cell. The kernel runs under libkprof.so: `kprof run --schedule none -- jupyter lab`."""
    from kprof import cell

    shell.register_magic_function(cell.record, "cell", "kprof")
