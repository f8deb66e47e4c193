# SPDX-License-Identifier: Apache-2.0
"""The same unmodified CUDA program under torch.profiler and under libkprof states the same facts of the GPU, to the last one."""
import re
import subprocess
import sys

import pytest

import facts
import gpufacts
import harness

PROGRAMS = {"training.py": {}, "graphed.py": {}}
HOST = ["steps", "op counts", "categories", "ops by step", *facts.INPUTS, "nesting", "threads", "fwd-bwd pairs", "fwdbwd flows"]
GPU = ["kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "launched by", "op of the work", "op of the call", "kernel shapes", "bytes",
       "streams", "ac2g", "gpu ranges", "memory on the GPU"]


@pytest.fixture(scope="module")
def pair(kineto, kprof):
    return lambda program: (kineto(program, **PROGRAMS[program]), kprof(program, KPROF_PROFILE_MEMORY=1, **PROGRAMS[program]))


@pytest.fixture(scope="module")
def stated(pair, loaded, once):
    def make(program):
        traces = [loaded(run) for run in pair(program)]
        return once(("gpu facts", program), lambda _: [{**facts.facts(t), **gpufacts.gpu_facts(t)} for t in traces])

    return make


@pytest.mark.parametrize("name", HOST + GPU)
@pytest.mark.parametrize("program", PROGRAMS)
def test_states_the_same_of_the_gpu(program, name, stated):
    reference, candidate = stated(program)
    assert not facts.differences(reference, candidate, [name])


@pytest.mark.parametrize("name", GPU)
def test_the_reference_states_something(name, stated):
    """An empty property would compare equal to anything."""
    assert any(sum(stated(program)[0][name].values()) for program in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_our_file_keeps_the_rules(program, pair, loaded):
    assert not gpufacts.broken_rules(loaded(pair(program)[1]))


@pytest.mark.parametrize("program", PROGRAMS)
def test_occupancy_is_what_the_rules_give(program, pair, loaded):
    looked, wrong = gpufacts.wrong_occupancy(loaded(pair(program)[1]))
    assert looked == len(gpufacts.of(loaded(pair(program)[1]), "kernel")) and looked and not wrong


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_host_event_crosses_another_with_cuda_calls(program, pair, loaded):
    host = {"traceEvents": [e for e in loaded(pair(program)[1])["traceEvents"] if e.get("cat") not in (*gpufacts.GPU, "gpu_user_annotation", "cuda_sync", "overhead")]}
    assert not facts.crossings(host)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_comparison_agrees_on_the_gpu(program, pair):
    reference, candidate = pair(program)
    said = subprocess.run([sys.executable, harness.HERE / "oracle" / "compare.py", reference.trace, candidate.trace, "--json"], capture_output=True, text=True,
                          check=True)
    scores = facts.json.loads(said.stdout)
    wanted = {"kernel", "gpu_memcpy", "cuda_runtime", "op counts", "nesting", "memory events (bytes)"}
    if program == "training.py":  # the other one's backward pass lies in the graph
        wanted |= {"gpu_memset", "fwd-bwd pairs", "cuda_driver"}
    assert wanted <= set(scores)
    assert {name: score for name, score in scores.items() if score != 1.0} == {}


def second_check(tool, run, tmp_path):
    (tmp_path / "ours").mkdir(exist_ok=True)
    path = tmp_path / "ours" / "trace.json"
    path.write_bytes(facts.gzip.decompress(run.trace.read_bytes()))
    return subprocess.run([sys.executable, harness.HERE / "oracle" / tool, path], capture_output=True, text=True, check=True).stdout


def test_rules_derived_a_second_time_hold_in_our_file(pair, tmp_path):
    said = second_check("check_rules.py", pair("training.py")[1], tmp_path)
    right, all_ = map(int, re.search(r"innermost cpu_op: (\d+) of (\d+)", said).groups())
    assert right == all_ > 50, said
    assert "keys equal True missing [] extra []" in said, said
    pairs, equal = map(int, re.search(r"fwdbwd pairs (\d+) seq equal (\d+)", said).groups())
    assert pairs == equal > 100, said


def test_a_second_check_of_occupancy_finds_nothing(pair, tmp_path):
    said = second_check("check_occupancy.py", pair("training.py")[1], tmp_path)
    assert re.search(r"kernels [1-9]\d+ blocksPerSM mismatch 0 warpsPerSM mismatch 0 occupancy mismatch 0", said), said
