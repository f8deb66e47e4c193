# SPDX-License-Identifier: Apache-2.0
"""The simulated GPU itself: unmodified PyTorch trains on it, and torch.profiler decodes the records that it makes."""
import json
import re

import pytest

import facts
import gpufacts
import simgpu


@pytest.fixture(scope="module")
def training(kineto, tmp_path_factory):
    log = tmp_path_factory.mktemp("truth") / "truth.jsonl"
    return kineto("training.py", SIMGPU_LOG=log), log


def kernels(trace):
    return [event["name"] for event in gpufacts.of(trace, "kernel")]


@pytest.mark.parametrize("what", ["at::native::.*elementwise", "layer_norm", "softmax", "multi_tensor_apply", "sgemm|gemm_f32|nvjet_sst",
                                  "bf16|nvjet_tst", "fprop", "wgrad", "bn_fw|batch_norm"])
def test_torch_profiler_sees_the_kernels_of(what, training, loaded):
    assert any(re.search(what, name) for name in kernels(loaded(training[0]))), sorted(set(kernels(loaded(training[0]))))


def test_the_oracle_keeps_its_own_rules(training, loaded):
    assert not gpufacts.broken_rules(loaded(training[0]))
    looked, wrong = gpufacts.wrong_occupancy(loaded(training[0]))
    assert looked > 50 and not wrong


def test_torch_profiler_sees_what_the_simulator_says_it_did(training, loaded):
    """Every kernel of the profiled window is in the simulator's own log, with the same duration but for Kineto's fit of the clock."""
    truth = {}
    for line in training[1].read_text().splitlines():
        said = json.loads(line)
        if said.get("kind") == "kernel":
            truth[said["correlation"]] = said["end"] - said["start"]
    events = gpufacts.of(loaded(training[0]), "kernel")
    assert len(events) > 50
    pairs = [(truth[gpufacts.args(e)["correlation"]], facts.ns(e["dur"])) for e in events]
    assert not [(did, said) for did, said in pairs if abs(did - said) > 1 + did // 1000]


def test_copies_of_the_loader_come_from_pinned_memory(training, loaded):
    names = {event["name"] for event in gpufacts.of(loaded(training[0]), "gpu_memcpy")}
    assert {"Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"} <= names


def test_side_streams_are_streams_of_their_own(training, loaded):
    assert len({gpufacts.args(e)["stream"] for e in gpufacts.of(loaded(training[0]), "kernel")}) >= 2


def test_graphs_show_their_nodes_under_one_launch(kineto, loaded):
    trace = loaded(kineto("graphed.py"))
    launches = [e for e in gpufacts.of(trace, "cuda_runtime") if e["name"].startswith("cudaGraphLaunch")]
    nodes = [e for e in gpufacts.of(trace, "kernel") if gpufacts.args(e).get("graph id")]
    assert len(launches) == 3 and len(nodes) > 5 * len(launches)
    assert {gpufacts.args(e)["correlation"] for e in nodes} == {gpufacts.args(e)["correlation"] for e in launches}


def test_the_same_seed_gives_the_same_durations(tmp_path):
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        log = tmp_path / name / "truth.jsonl"
        simgpu.run("graphed.py", tmp_path / name, SIMGPU_LOG=log).ok()
        said = [json.loads(line) for line in log.read_text().splitlines()]
        runs.append([(s["name"], s["end"] - s["start"]) for s in said if s.get("kind") == "kernel"])
    assert runs[0] and runs[0] == runs[1]
