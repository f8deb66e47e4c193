# SPDX-License-Identifier: Apache-2.0
"""The simulated GPU for every test here; programs run once under torch.profiler and once under libkprof.

Both have the same part of torch: the compiler comes late (startup/lazy_dynamo.py), as no program here compiles."""
import functools
import importlib.util
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import facts
import simgpu


@functools.cache
def cuda_of_torch():
    """"13.2", or None for a torch without CUDA."""
    version = pathlib.Path(importlib.util.find_spec("torch").origin).with_name("version.py").read_text()
    found = re.search(r"^cuda\b.*?= *'([\d.]+)'", version, re.M)
    return found and found[1]


@pytest.fixture(scope="session", autouse=True)
def simulated():
    """Nothing here may pass because the simulator was not built."""
    assert (simgpu.FOLDER / "libcuda.so.1").exists(), f"no simulated GPU in {simgpu.FOLDER}: run make simgpu"
    if not (cuda_of_torch() or "").startswith("13"):
        pytest.skip(f"this torch has CUDA {cuda_of_torch()}: the tests on the simulated GPU want one built for 13")


@pytest.fixture(scope="session")
def kineto(recorded):
    """kineto(program, *args, schedule=..., SIMGPU_X=...): a run under torch.profiler with cuda, cached."""
    def run(program, *args, **options):
        return recorded(("kineto gpu", program, args, repr(sorted(options.items()))), lambda folder: simgpu.Oracle(program, folder, *args, **{"LAZY_DYNAMO": 1, **options}))

    return run


@pytest.fixture(scope="session")
def kprof(recorded):
    """kprof(program, *args, schedule=..., KPROF_X=...): a run under libkprof on the simulated GPU, cached, exit status checked."""
    def run(program, *args, **options):
        return recorded(("kprof gpu", program, args, repr(sorted(options.items()))),
                        lambda folder: simgpu.run(program, folder, *args, kprof=True, **{"LAZY_DYNAMO": 1, **options}).ok())

    return run


@pytest.fixture(scope="session")
def loaded(once):
    """loaded(run): its one trace, parsed once."""
    return lambda run: once(("loaded", run.trace), lambda _: facts.load(run.trace))
