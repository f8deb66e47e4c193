# SPDX-License-Identifier: Apache-2.0
"""Torch's execution trace beside each window: equal to that of torch.profiler, whole whatever the program does."""
import json
import os
import re

import pytest

import facts
import harness

ON = {"KPROF_EXECUTION_TRACE": 1, "OMP_NUM_THREADS": 1}


# torch's C++ reads it; of integer tensors the least and the most are in the file
RANGES = {"ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE": 1}


def files(folder):
    return sorted(folder.glob("*.et.json"))


def load(path):
    with open(path) as file:
        return json.load(file)["nodes"]


def is_tensor(value):
    return len(value) == 6 and isinstance(value[5], str) and all(isinstance(item, int) for item in value[:5])


def without_ids(value):
    """Numbers of tensors and storages follow addresses: they differ between two runs of torch's own."""
    if isinstance(value, dict):
        return {key: without_ids(item) for key, item in value.items()}
    if isinstance(value, list):
        return value[2:] if is_tensor(value) else [without_ids(item) for item in value]
    return value


def compared(nodes):
    """Each node in the order in which it began: name, parent's name, inputs, outputs, attributes; ids aside.

    What gloo's threads run stands behind all others, without parent and thread: it begins before or after the op that
    asked for it has ended, on whichever thread is free, with torch alone, too."""
    names = {node["id"]: node["name"] for node in nodes}
    threads, told = {}, []
    for node in sorted(nodes, key=lambda node: (node["name"].startswith("gloo:"), node["id"])):
        attributes = {item["name"]: item["value"] for item in node["attrs"] if item["name"] != "rf_id"}
        for key in ("tid", "fw_tid"):
            attributes[key] = threads.setdefault(attributes[key], len(threads))
        if attributes.get("tensor_range"):  # that of new memory is what lay there: which inputs have one
            attributes["tensor_range"] = sorted(json.loads(attributes["tensor_range"]))
        attributes["fw_parent"] = names.get(attributes["fw_parent"])
        parent = names[node["ctrl_deps"]]
        if node["name"].startswith("gloo:"):
            parent = attributes["tid"] = None
        told.append((node["name"], parent, without_ids(node["inputs"]), without_ids(node["outputs"]), attributes))
    return told


def steps(nodes):
    return [node["name"] for node in sorted(nodes, key=lambda node: node["id"]) if node["name"].startswith("ProfilerStep#")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    return harness.run_kprof("transformer.py", folder, schedule="wait=1,warmup=1,active=2,repeat=1", **ON, **RANGES).ok()


def test_it_is_torch_profilers_node_by_node(recorded, tmp_path):
    path = tmp_path / "torch.json"
    harness.Oracle("transformer.py", tmp_path, schedule="1,1,2,1", execution_trace=path, OMP_NUM_THREADS=1, **RANGES)
    (ours,) = files(recorded.folder)
    assert any(item["name"] == "tensor_range" and item["value"] for node in load(ours) for item in node["attrs"])
    assert compared(load(ours)) == compared(load(path))
    assert steps(load(ours)) == ["ProfilerStep#2", "ProfilerStep#3"]


def test_the_trace_beside_it_has_the_same_ids(recorded):
    (ours,) = files(recorded.folder)
    of_node = {item["value"]: node["name"] for node in load(ours) for item in node["attrs"] if item["name"] == "rf_id"}
    ops = [event for event in facts.load(recorded.trace)["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    joined = {event["args"]["Record function id"]: event["name"] for event in ops if event["args"].get("Record function id")}
    assert len(joined) > 1000
    assert all(of_node[number] == name for number, name in joined.items())


def test_windows_that_touch_have_a_file_each(tmp_path):
    run = harness.run_kprof("transformer.py", tmp_path, schedule="wait=0,warmup=0,active=2,repeat=3",
                             ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1, **ON).ok()
    assert [steps(load(path)) for path in files(tmp_path)] == [[f"ProfilerStep#{n}", f"ProfilerStep#{n + 1}"] for n in (0, 2, 4)]
    assert len(run.traces) == 3
    for path in files(tmp_path):
        assert sum(node["name"].startswith("Optimizer.step#") for node in load(path)) == 2
        assert (tmp_path / (path.name[:-len(".json")] + "_resources")).is_dir()  # where torch looks for it
        assert os.stat(path).st_mode & 0o777 == os.stat(run.traces[0]).st_mode & 0o777


def test_it_goes_on_while_ops_are_switched_off(tmp_path):
    """toggle_collection_dynamic leaves the observer alone."""
    script, theirs = harness.script_command("toggled.py"), tmp_path / "torch.et.json"
    alone = harness.clean_environment(CUDA_VISIBLE_DEVICES="")
    harness.Run([*script, "torch", tmp_path / "torch.json", theirs], tmp_path, alone, timeout=harness.LONG, warm_start=True).ok()
    env = {**alone, "LD_PRELOAD": str(harness.LIBRARY), "KPROF_DIR": str(tmp_path / "ours"), "KPROF_SCHEDULE": "none", "KPROF_EXECUTION_TRACE": "1"}
    harness.Run([*script, "kprof"], tmp_path / "ours", env, timeout=harness.LONG).ok()
    (ours,) = files(tmp_path / "ours")
    assert {"no cpu", "cpu again"} <= {node["name"] for node in load(ours)}
    assert compared(load(ours)) == compared(load(theirs))


def test_its_name_has_the_rank_and_the_phase_of_the_trace(tmp_path):
    def beginnings(paths):
        return sorted(path.name.split(".")[0] for path in paths)

    run = harness.run_kprof("phases.py", tmp_path, schedule=None, shapes=False, RANK=1, WORLD_SIZE=2,
                            KPROF_PHASES="train=wait=1,warmup=1,active=2,repeat=1;validate=active=1,repeat=2", **ON).ok()
    assert beginnings(files(tmp_path)) == beginnings(run.traces) and len(run.traces) == 3
    assert [re.sub(r".*_r1_\d+_", "", name) for name in beginnings(run.traces)] == ["train", "validate", "validate"]


def test_a_window_that_exit_cuts_short_is_whole(tmp_path):
    harness.run_kprof("transformer.py", tmp_path, schedule="wait=2,warmup=1,active=9", **ON).ok()
    (path,) = files(tmp_path)
    assert steps(load(path)) == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]


def test_a_program_with_an_observer_of_its_own_keeps_it(tmp_path):
    alone, beside = tmp_path / "alone.json", tmp_path / "beside.json"
    harness.run_plain("execution_trace_own.py", tmp_path, alone, warm_start=True).ok()
    run = harness.run_kprof("execution_trace_own.py", tmp_path / "kprof", beside, schedule="wait=2,warmup=1,active=1,repeat=0", **ON).ok()
    assert compared(load(beside)) == compared(load(alone))
    # windows of steps 3, 7: the program's observer is there from step 5 to 7, and step 6 warms up
    found = {name for path in files(run.folder) for name in steps(load(path))}
    assert found == {"ProfilerStep#3"}
    assert any("observer" in line for line in run.said), run.err


def test_forked_children_leave_the_file_to_their_parent(tmp_path):
    run = harness.run_kprof("execution_trace_forks.py", tmp_path, schedule="wait=1,warmup=1,active=4,repeat=1", **ON).ok()
    (path,) = files(tmp_path)
    nodes = load(path)
    assert steps(nodes) == [f"ProfilerStep#{n}" for n in range(2, 6)]
    assert not any(node["name"] == "aten::add_" and node["inputs"]["shapes"][:1] == [[2, 2]] for node in nodes)
    assert len(run.traces) == 1


@pytest.mark.parametrize("schedule, windows", [("wait=1,warmup=1,active=2,repeat=2", 2), ("wait=1,active=2,repeat=1", 1)])
def test_process_groups_are_in_it(tmp_path, schedule, windows):
    numbers = {"warmup": "0", **dict(part.split("=") for part in schedule.split(","))}
    path = tmp_path / "torch.json"
    harness.Oracle("groups.py", tmp_path, schedule=",".join(numbers[key] for key in ("wait", "warmup", "active")) + ",1", execution_trace=path,
                   OMP_NUM_THREADS=1)
    run = harness.run_kprof("groups.py", tmp_path / "ours", schedule=schedule, **ON).ok()
    ours = [load(file) for file in files(run.folder)]
    assert len(ours) == windows and compared(ours[0]) == compared(load(path))
    for nodes in ours:
        node, = [node for node in nodes if node["name"] == "## process_group:init ##"]
        groups = json.loads(node["inputs"]["values"][0])
        assert [group["pg_desc"] for group in groups] == ["default_pg", 'a "group" of its own'], groups
    assert not any("process_group" in event.get("name", "") for event in facts.load(run.traces[0])["traceEvents"])
