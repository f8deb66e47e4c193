# SPDX-License-Identifier: Apache-2.0
"""CUDA programs in C++, built by nvcc: every kernel, copy and fill that a program counted is in its trace."""
import json

import pytest

import facts
import gpufacts
import harness
import simgpu

NAMES = ("saxpy", "streams", "graph", "managed", "threads", "driver")


def sample(kind, name):
    path = harness.BUILD / "samples" / kind / name
    if not path.exists():
        pytest.skip(f"{path} was not built: make samples needs nvcc")
    return path


def counted(out):
    """{"kernels": N, ...} of the program's last line."""
    return {key: int(value) for key, value in (word.split("=") for word in out.splitlines()[-1].split()[1:])}


@pytest.mark.parametrize("kind", ["shared", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_the_simulator_counts_what_a_program_did(name, kind, tmp_path):
    log = tmp_path / "truth.jsonl"
    run = simgpu.run(sample(kind, name), tmp_path, plain=True, SIMGPU_LOG=log).ok()
    kinds = [json.loads(line).get("kind") for line in log.read_text().splitlines()]
    assert counted(run.out) == {"kernels": kinds.count("kernel"), "memcpys": kinds.count("memcpy"), "memsets": kinds.count("memset")}


@pytest.mark.parametrize("kind", ["shared", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_torch_is_traced(name, kind, tmp_path):
    run = simgpu.run(sample(kind, name), tmp_path, plain=True, kprof=True, schedule=None).ok()
    trace = facts.load(run.trace)
    found = [len(gpufacts.of(trace, category)) for category in gpufacts.GPU]
    assert found == list(counted(run.out).values())
    broken = gpufacts.broken_rules(trace)
    if name == "driver":  # of driver calls the trace shows launches only, as Kineto's do: copies and fills have no call there
        broken = [line for line in broken if "Mem" not in line and "arrow" not in line]
    assert not broken


def test_kernels_have_readable_names(tmp_path):
    run = simgpu.run(sample("none", "saxpy"), tmp_path, plain=True, kprof=True, schedule=None).ok()
    assert {event["name"] for event in gpufacts.of(facts.load(run.trace), "kernel")} == {"saxpy(int, float, float const*, float*)"}
