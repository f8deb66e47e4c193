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


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_op_counts(version, program, pair):
    reference, candidate = (facts.facts(facts.load(run.trace)) for run in pair(version, program))
    assert sum(reference["op counts"].values()) > 500
    assert not facts.differences(reference, candidate, ["steps", "op counts"])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_nesting(version, program, pair):
    reference, candidate = pair(version, program)
    expected = collections.Counter(reference.nesting)
    assert sum(expected.values()) > 500
    assert not facts.differences({"nesting": expected}, facts.facts(facts.load(candidate.trace)), ["nesting"])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_shapes(version, program, pair):
    """Every property of inputs that this version's own profiler writes (dims and types in 1.13, values since 2.1, strides later)."""
    reference, candidate = (facts.facts(facts.load(run.trace)) for run in pair(version, program))
    written = [name for name in facts.INPUTS if reference[name]]
    assert {"Input Dims", "Input type"} <= set(written)
    assert not facts.differences(reference, candidate, written)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_forward_and_backward(version, program, pair):
    reference, candidate = (facts.facts(facts.load(run.trace)) for run in pair(version, program))
    assert not facts.differences(reference, candidate, ["fwd-bwd pairs"])


def without_backend(counts):
    return collections.Counter({name: n for name, n in counts.items() if "mkldnn" not in name})


@pytest.mark.skipif(ONLY != ["1"] and "debian" not in ONLY, reason="not asked for")
@pytest.mark.parametrize("program", PROGRAMS)
def test_debians_build_counts_as_the_wheel_does(program, pair):
    reference, candidate = pair("debian", program)
    expected, said = facts.facts(facts.load(reference.trace)), facts.facts(facts.load(candidate.trace))
    # which kernels a build has differs: MKL-DNN ops are compared by what calls them
    assert not facts.differences(expected, said, ["steps"])
    unlike = without_backend(expected["op counts"]), without_backend(said["op counts"])
    assert facts.ratio(*unlike) == 1.0, facts.differences({"op counts": unlike[0]}, {"op counts": unlike[1]})
