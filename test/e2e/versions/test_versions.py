# SPDX-License-Identifier: Apache-2.0
"""Every release of torch, each beside its own torch.profiler: ops, shapes, memory, calls of Python, call stacks, steps. `make e2e-versions` runs this.

Each program runs once under torch.profiler and once under us with all of it on (and once with KPROF_WITH_STACK=ops). Debian's build has no Kineto,
so its counts are compared with those of the wheel of the same version. A version whose requirements cannot be installed fails: nothing is
claimed that did not run. KPROF_TEST_VERSIONS=torch-2.6,torch-2.1 runs these alone; KPROF_TEST_PYTHON=3.12 on that Python;
KPROF_TEST_PROGRAMS=transformer.py with that program.
"""
import collections
import itertools
import os
import re
import subprocess

import pytest

import facts
import harness
import test_execution_trace as execution_trace
from test_memory import reports
from test_stack import check_own_profiler, counted
from test_steps import PYTHONS

if not os.environ.get("KPROF_TEST_VERSIONS"):
    pytest.skip("needs many torch installations: make e2e-versions", allow_module_level=True)

VERSIONS = [f"torch-{n}" for n in "2.15 2.14 2.13 2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4 2.3 2.2 2.1 2.0 1.13".split()]
ONLY = os.environ["KPROF_TEST_VERSIONS"].split(",")
if ONLY != ["1"]:
    VERSIONS = [version for version in VERSIONS if version in ONLY]
PROGRAMS = os.environ.get("KPROF_TEST_PROGRAMS", "transformer.py,lstm.py,gan.py").split(",")
ON_PYTHON = os.environ.get("KPROF_TEST_PYTHON")
EVERYTHING = {"KPROF_PROFILE_MEMORY": 1, "KPROF_WITH_STACK": 1}


def number(version):
    """torch-2.6 -> (2, 6)"""
    return tuple(map(int, version.partition("-")[2].split(".")))


def before(*release):
    return {version for version in [*VERSIONS, "torch-1.13"] if number(version) < release}


# What the profilers of old releases leave out or put in; everything else must be equal.
NAMES_THE_STEP_BEFORE = before(2, 3)  # ProfilerStep#N there is the step that ended
NO_LISTS = before(2, 2)               # dims of TensorLists are []
NO_SCALAR_LISTS = before(2, 1)        # and the type of a list of scalars is ""
WHOLE_MICROSECONDS = before(2, 4)     # times too coarse to find by them what lies in what
OWN_OPS = {"torch-1.13": {(None, "aten::empty"): 3, (None, "aten::zeros"): 2, ("aten::zeros", "aten::zero_"): 2, ("aten::zeros", "aten::empty"): 2}}
OWN_BYTES = (264, 4)                  # blocks of these: a RecordFunction in a tensor, a float


@pytest.fixture(scope="session")
def python_of():
    """python_of(version): the python of that version's virtual environment, or of Debian's package."""
    found = {}

    def ask(version):
        if version == "debian":
            command = [harness.ROOT / "test" / "e2e" / "versions" / "debian_torch.sh"]
        else:
            command = [harness.ROOT / "scripts" / "venv", version]
        base = {"KPROF_BASE_PYTHON": str(PYTHONS[ON_PYTHON])} if ON_PYTHON else {}
        if version not in found:
            said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, **base})
            assert said.returncode == 0, said.stderr
            found[version] = said.stdout.strip()
            if ON_PYTHON and version != "debian":
                assert f"lib/python{ON_PYTHON}" in subprocess.run([found[version], "-c", "import torch; print(torch.__file__)"], capture_output=True, text=True).stdout
        return found[version]

    return ask


def options_of(program):
    return {"KPROF_STEP": "range:Optimizer.step#"} if program == "gan.py" else {}


@pytest.fixture(scope="session")
def pair(oracle, ours, python_of):
    def make(version, program):
        python = python_of(version)
        if version == "debian":
            return (oracle(program, python=python_of("torch-1.13"), nesting=True, memory=True, stack=True, frames=True, timeout=600),
                    ours(program, python=python, timeout=600, **options_of(program)))
        return (oracle(program, python=python, nesting=True, memory=True, stack=True, frames=True, timeout=600),
                ours(program, python=python, timeout=600, **EVERYTHING, **options_of(program)))

    return make


def reference_facts(version, run):
    """The oracle's facts without what its profiler does to itself."""
    said = facts.facts(facts.load(run.trace))
    said["nesting"] = collections.Counter(run.nesting) - collections.Counter(OWN_OPS.get(version, {}))
    own = collections.Counter()
    for (_, name), count in OWN_OPS.get(version, {}).items():
        own[name] += count
    said["op counts"] -= own
    if version in NAMES_THE_STEP_BEFORE:
        said["steps"] = collections.Counter(f"ProfilerStep#{int(name[13:]) + 1}" for name in said["steps"])
    for what in facts.INPUTS:
        said[what] = collections.Counter({key: n for key, n in said[what].items() if key[0] not in own})
    return said


def our_facts(version, run):
    """Our facts, in the words that the profiler of this release has."""
    trace = facts.load(run.trace)
    own = {name for _, name in OWN_OPS.get(version, {})}
    for event in facts.spans(trace):
        args = event.get("args", {})
        if version in NO_LISTS and "Input Dims" in args:
            args["Input Dims"] = [[] if dims and isinstance(dims[0], list) else dims for dims in args["Input Dims"]]
        if version in NO_SCALAR_LISTS and "Input type" in args:
            args["Input type"] = ["" if kind == "ScalarList" else kind for kind in args["Input type"]]
    said = facts.facts(trace)
    for what in facts.INPUTS:
        said[what] = collections.Counter({key: n for key, n in said[what].items() if key[0] not in own})
    return said


@pytest.fixture(scope="session")
def stated(pair, once):
    def make(version, program):
        def count(_):
            reference, candidate = pair(version, program)
            wheel = "torch-1.13" if version == "debian" else version
            return reference_facts(wheel, reference), our_facts(wheel, candidate)

        return once(("facts", version, program), count)

    return make


@pytest.mark.parametrize("version", VERSIONS)
def test_the_layout_is_proved_and_found_again_without_the_table(version, python_of):
    """test/oracle/torch_layout.c on the libtorch_cpu of this release."""
    where = subprocess.run([python_of(version), "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"], capture_output=True, text=True, check=True)
    library = os.path.join(os.path.dirname(where.stdout.strip()), "lib", "libtorch_cpu.so")
    said = subprocess.run([harness.BUILD / harness.ARCH / "test" / "oracle" / "torch_layout", library], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0 and said.stdout.count("\nok ") == 6, said.stdout + said.stderr
    print(said.stdout)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("what", ["steps", "op counts", "nesting", "fwd-bwd pairs"])
def test_states_the_same(what, version, program, stated):
    reference, candidate = stated(version, program)
    assert sum(reference[what].values()) >= 3
    assert not facts.differences(reference, candidate, [what])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_shapes(version, program, stated):
    """Every property of inputs that this release's own profiler writes: dims and types, values since 2.1, strides since 2.4."""
    reference, candidate = stated(version, program)
    written = [name for name in facts.INPUTS if reference[name]]
    assert {"Input Dims", "Input type"} <= set(written)
    assert not facts.differences(reference, candidate, written)


def blocks(version, run):
    """Events of memory in order: what, bytes, device, reserved; total and op around it where this release's times and profiler let them be told."""
    if version in WHOLE_MICROSECONDS:
        return [row[:5] for row in reports(run.trace)]
    rows = []
    for given, group in itertools.groupby(reports(run.trace), lambda row: row[7] is None and row[1] < 0):
        group = list(group)
        if given:  # autocast gives back its copies in the order of a table of addresses: what is given back in a row, and what is left then
            group = [row[:6] + (group[-1][6], row[7]) for row in sorted(group, key=lambda row: row[:5])]
        rows += [row[:5] + row[6:8] for row in group]
    return rows


@pytest.mark.parametrize("program", [*PROGRAMS, "memory.py"])
@pytest.mark.parametrize("version", VERSIONS)
def test_memory(version, program, pair):
    reference, candidate = pair(version, program)
    theirs, mine = blocks(version, reference), blocks(version, candidate)
    assert len(mine) > 100
    if version in WHOLE_MICROSECONDS:  # what came within one microsecond has lost its order
        left, more = collections.Counter(theirs) - collections.Counter(mine), collections.Counter(mine) - collections.Counter(theirs)
        own = {key: n for key, n in left.items() if version in OWN_OPS and abs(key[1]) in OWN_BYTES and n <= 3}
        assert left == own and not more, (left.most_common(4), more.most_common(4))
    else:
        assert mine == theirs


def short(path):
    """A file of a package, else the file's name: the two cut the paths of the program itself differently."""
    tail = path.rpartition("site-packages/")[2]
    return tail if tail.startswith("torch/") else tail.rpartition("/")[2]


def without_imports(trace):
    """How Python looks for a module depends on its search path, where the oracle's own folder is, too."""
    by_id = {e["args"]["Python id"]: e for e in trace["traceEvents"] if e.get("cat") == "python_function"}
    left = set()
    for key in sorted(by_id):  # numbered in order of time: who called is there before
        parent = by_id[key]["args"].get("Python parent id")
        if by_id[key]["name"].startswith("<frozen importlib") or parent in left:
            left.add(key)
    return {"traceEvents": [e for e in trace["traceEvents"] if e.get("cat") != "python_function" or e["args"]["Python id"] not in left]}


def calls_of(run):
    """A C function's name tells of the first object that was seen with it, and that may have been one of torch.profiler's own."""
    found = collections.Counter()
    for name, count in counted(without_imports(facts.load(run.trace))).items():
        name = re.sub(r"^(<built-in method .*) of \S+ object>$", r"\1>", name)
        found[re.sub(r"^([^<(]+)(?=\(\d+\): )", lambda at: short(at[1]), name)] += count
    return found


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_calls_of_python(version, program, pair):
    """All but those of torch.profiler and of what drives it: docs/decisions/021."""
    reference, candidate = pair(version, program)
    theirs, mine = calls_of(reference), calls_of(candidate)
    assert sum(mine.values()) > 500
    assert mine == theirs, ((theirs - mine).most_common(8), (mine - theirs).most_common(8))


DRIVER = re.compile(r"kineto\.py$|runpy|torch/profiler/profiler\.py$")


def told_stacks(run):
    """Of each op of the oracle: the frames of the program, innermost first; that one without its line, where it is not told."""
    found = collections.Counter()
    for name, chain, count in run.frames:
        chain = [(short(file), line, function) for file, line, function in chain if not DRIVER.search(file)]
        found[name, tuple((file, line if i else 0, function.rpartition(".")[2]) for i, (file, line, function) in enumerate(chain))] += count
    return found


def our_stacks(trace):
    found = collections.Counter()
    for event in facts.host_events(trace):
        chain = [re.fullmatch(r"(.*)\((\d+)\): (.*)", frame).groups() for frame in event["args"].get("Call stack", "").split(";")[:-1]]
        found[event["name"], tuple((short(file), int(line) if i else 0, function.rpartition(".")[2]) for i, (file, line, function) in enumerate(chain))] += 1
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_call_stacks_of_ops(version, pair, ours, python_of):
    """KPROF_WITH_STACK=ops: the functions around each op and the lines they are at, as torch.profiler's tree has them."""
    reference, _ = pair(version, "transformer.py")
    run = ours("transformer.py", python=python_of(version), timeout=600, KPROF_WITH_STACK="ops")
    theirs, mine = told_stacks(reference), our_stacks(facts.load(run.trace))
    own = collections.Counter()
    for (_, name), count in OWN_OPS.get(version, {}).items():
        own[name] += count
    left, more = theirs - mine, mine - theirs
    names = collections.Counter()
    for (name, _), count in left.items():
        names[name] += count
    assert sum(mine.values()) > 1000
    assert names == own and not more, (left.most_common(4), more.most_common(4))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_execution_trace(version, python_of, tmp_path):
    """Node by node, where torch.profiler takes an observer of execution traces: numbers of tensors and storages aside."""
    python = python_of(version)
    takes = "import inspect, sys, torch.profiler as t; sys.exit('execution_trace_observer' not in inspect.signature(t.profile.__init__).parameters)"
    if subprocess.run([python, "-c", takes], check=False).returncode:
        pytest.skip(f"the torch.profiler of {version} takes no observer of execution traces")
    theirs = tmp_path / "torch.json"
    harness.Oracle("transformer.py", tmp_path, schedule="1,1,2,1", execution_trace=theirs, python=python, OMP_NUM_THREADS=1)
    run = harness.run_kprof("transformer.py", tmp_path / "ours", schedule="wait=1,warmup=1,active=2,repeat=1", python=python, **execution_trace.ON).ok()
    nodes, wanted = (execution_trace.load(path) for path in (execution_trace.files(run.folder)[0], theirs))
    assert len(nodes) > 1000 and execution_trace.compared(nodes) == execution_trace.compared(wanted)


@pytest.mark.skipif(ONLY != ["1"] and "debian" not in ONLY, reason="not asked for")
@pytest.mark.parametrize("what", ["steps", "op counts", "nesting", "Input Dims", "Input type"])
@pytest.mark.parametrize("program", ["lstm.py", "gan.py"])  # without MKL the transformer's bmm is made of other ops
def test_debians_build_is_the_wheels(program, what, stated):
    reference, candidate = stated("debian", program)
    assert not facts.differences(reference, candidate, [what])


@pytest.mark.parametrize("version", VERSIONS)
def test_torchs_own_profiler_with_stacks_tells_what_it_tells_without_us(version, python_of, tmp_path):
    check_own_profiler(tmp_path, python=python_of(version))
