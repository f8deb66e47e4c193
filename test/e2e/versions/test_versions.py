# SPDX-License-Identifier: Apache-2.0
"""Other releases of torch, each beside its own torch.profiler: op counts, nesting, shapes. `make e2e-versions` runs this.

Debian's build has no Kineto, so its counts are compared with those of the wheel of the same version. A version whose
requirements cannot be installed fails: nothing is claimed that did not run.
"""
import collections
import os
import subprocess

import pytest

import facts
import harness

if not os.environ.get("KPROF_TEST_VERSIONS"):
    pytest.skip("needs four more torch installations: make e2e-versions", allow_module_level=True)

VERSIONS = ["torch-2.15", "torch-2.11", "torch-2.6", "torch-2.1", "torch-1.13"]
ONLY = os.environ["KPROF_TEST_VERSIONS"].split(",")
if ONLY != ["1"]:
    VERSIONS = [version for version in VERSIONS if version in ONLY]
PROGRAMS = ["transformer.py", "lstm.py", "gan.py"]


@pytest.fixture(scope="session")
def python_of():
    """python_of(version): the python of that version's virtual environment, or of Debian's package."""
    found = {}

    def ask(version):
        if version == "debian":
            command = [harness.ROOT / "test" / "e2e" / "versions" / "debian_torch.sh"]
        else:
            command = [harness.ROOT / "scripts" / "venv", version]
        if version not in found:
            said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert said.returncode == 0, said.stderr
            found[version] = said.stdout.strip()
        return found[version]

    return ask


def options_of(program):
    return {"KPROF_STEP": "range:Optimizer.step#"} if program == "gan.py" else {}


@pytest.fixture(scope="session")
def pair(oracle, ours, python_of):
    def make(version, program):
        python = python_of(version)
        wheel = python_of("torch-1.13") if version == "debian" else python
        reference = oracle(program, python=wheel, nesting=True)
        candidate = ours(program, python=python, **options_of(program))
        return reference, candidate

    return make


# What the profilers of old releases leave out or put in; everything else must be equal.
NAMES_THE_STEP_BEFORE = ("torch-2.1", "torch-1.13")  # ProfilerStep#N there is the step that ended
NO_LISTS = ("torch-2.1", "torch-1.13")               # dims of TensorLists are []
NO_SCALAR_LISTS = ("torch-1.13",)                    # and the type of a list of scalars is ""
OWN_OPS = {"torch-1.13": {(None, "aten::empty"): 3, (None, "aten::zeros"): 2, ("aten::zeros", "aten::zero_"): 2, ("aten::zeros", "aten::empty"): 2}}


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
    """Every property of inputs that this release's own profiler writes: dims and types, values since 2.1, strides since 2.6."""
    reference, candidate = stated(version, program)
    written = [name for name in facts.INPUTS if reference[name]]
    assert {"Input Dims", "Input type"} <= set(written)
    assert not facts.differences(reference, candidate, written)


@pytest.mark.skipif(ONLY != ["1"] and "debian" not in ONLY, reason="not asked for")
@pytest.mark.parametrize("what", ["steps", "op counts", "nesting", "Input Dims", "Input type"])
@pytest.mark.parametrize("program", ["lstm.py", "gan.py"])  # without MKL the transformer's bmm is made of other ops
def test_debians_build_is_the_wheels(program, what, stated):
    reference, candidate = stated("debian", program)
    assert not facts.differences(reference, candidate, [what])
