# SPDX-License-Identifier: Apache-2.0
"""Fixtures: what is built, runs under libkprof and under torch.profiler, each program run once a session."""
import fcntl
import gc
import hashlib
import os
import pathlib
import pickle
import resource
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
import warm
from minitorch import mini, torch_double  # noqa: F401 (fixtures)

gc.disable()  # a quarter of what it takes to read traces: they hold no cycle, and the process ends with its file
collect_ignore = [] if os.environ.get("KPROF_TEST_VERSIONS") else ["versions"]  # make e2e-versions


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out by scripts/test --fast")


def core_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + warm.core_seconds


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Seconds of a core that a test and the programs it waited for took, in the junit file (test/support/core_seconds.py)."""
    began = core_seconds()
    item.user_properties.append(("core_seconds", lambda: core_seconds() - began))
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.user_properties[:] = [(key, f"{value():.2f}" if callable(value) else value) for key, value in report.user_properties]


# Their programs train so that there are steps, or a time to tell: the compiler that an optimizer or torch.profiler imports comes late (startup/lazy_dynamo.py),
# and so does what few programs need of torch (startup/lazy_torch.py), and of Lightning, transformers and torchvision (startup/lazy_packages.py). What is
# compared with torch.profiler, or has to do with Python's frames, has all of torch: `ours` and `oracle` see to that. Where a file runs both by itself,
# both have the same part.
LAZY_DYNAMO = {f"test_{name}" for name in """advice_cpu_faults advice_findings advise backward_lines children ctl diff execution_trace export_formats export_list forks
               gpu_check gpu_cycles gpu_ranks gpu_tee heap heap_python jupyter kill modules native nvtx phases ranks recipes report_default run run_advise
               schedule slice stack stacks steps symbols tee toggle tutorials""".split()}


@pytest.fixture(scope="module", autouse=True)
def lazy_dynamo(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAZY_DYNAMO", "1" if request.module.__name__ in LAZY_DYNAMO else "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def build():
    """Nothing here may pass because nothing was built."""
    for product in (harness.LIBRARY, harness.KPROF):
        assert product.exists(), f"{product} is missing: run make"
    return harness.BUILD


@pytest.fixture(scope="session")
def real_gpu_trace():
    """real_gpu_trace(name): a trace that Kineto wrote on a real GPU: one of ours, or others' files, which none needs to have (test/data/README.md)."""
    def find(name):
        ours = sorted((harness.ROOT / "test" / "data" / "gpu" / name).glob("*.pt.trace.json.gz"))
        if ours:
            return ours[0]
        folder = os.environ.get("KPROF_GPU_TRACES")
        if not folder:
            pytest.skip("traces of real GPUs are optional: KPROF_GPU_TRACES names a folder of them (test/data/README.md)")
        found = sorted((pathlib.Path(folder) / name).glob("*.pt.trace.json*"))
        if not found:
            pytest.skip(f"KPROF_GPU_TRACES has no {name}")
        return found[0]

    return find


@pytest.fixture(scope="session")
def inductor(tmp_path_factory):
    """The folder of what torch.compile has compiled. scripts/test names one for all files of tests: to compile takes three times as long as the rest."""
    return os.environ.get("KPROF_TEST_INDUCTOR") or tmp_path_factory.mktemp("inductor")


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once(key, make): make(folder) is called the first time only."""
    made = {}

    def call(key, make):
        if key not in made:
            made[key] = make(tmp_path_factory.mktemp("run"))
        return made[key]

    return call


def made_by_any(shared, key, make):
    """What make(folder) makes, once for all files of tests: the first that asks makes it while the others wait."""
    place = pathlib.Path(shared) / hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = pathlib.Path(f"{place}.run")
        if not kept.exists():
            run = make(pathlib.Path(tempfile.mkdtemp(prefix=place.name, dir=place.parent)))
            kept.write_bytes(pickle.dumps(run))
        return pickle.loads(kept.read_bytes())


@pytest.fixture(scope="session")
def recorded(once):
    """recorded(key, make): as once; of our own scripts once for all files of tests, where scripts/test names a folder for that."""
    shared = os.environ.get("KPROF_TEST_RUNS")

    def call(key, make):
        common = shared and isinstance(key[1], str)
        return once(key, (lambda folder: made_by_any(shared, key, make)) if common else make)

    return call


@pytest.fixture(scope="session")
def oracle(recorded):
    """oracle(script, *args, tables=None, schedule=..., shapes=...): a run under torch.profiler, cached."""
    def run(script, *args, **options):
        return recorded(("kineto", script, args, repr(sorted(options.items()))), lambda folder: harness.Oracle(script, folder, *args, **{"LAZY_DYNAMO": 0, **options}))

    return run


@pytest.fixture(scope="session")
def ours(recorded):
    """ours(script, *args, schedule=..., KPROF_X=...): a run under libkprof, cached, exit status checked."""
    def run(script, *args, **options):
        return recorded(("kprof", script, args, repr(sorted(options.items()))), lambda folder: harness.run_kprof(script, folder, *args, **{"LAZY_DYNAMO": 0, **options}).ok())

    return run
