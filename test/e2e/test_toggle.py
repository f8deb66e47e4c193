# SPDX-License-Identifier: Apache-2.0
"""kprof_toggle keeps what torch.profiler's toggle_collection_dynamic keeps in the same program, on the CPU and on the simulated
GPU."""
import collections
import platform

import facts
import harness
import pytest

SIMGPU = harness.BUILD / platform.machine() / "simgpu"
LIBRARIES = ["libcudart.so.13", "libcupti.so.13", "libcuda.so.1"]
KINDS = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")


def kept(path):
    """How many events of each kind and name. torch.profiler's own range is not the program's."""
    rows = [e for e in facts.load(path)["traceEvents"] if e.get("ph") == "X" and e.get("cat") in KINDS]
    return collections.Counter((e["cat"], e["name"]) for e in rows)


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def pair(request, tmp_path_factory):
    """(what torch.profiler kept, what libkprof kept, has it a GPU)"""
    preload, env = [], {"CUDA_VISIBLE_DEVICES": ""}
    if request.param == "cuda":
        missing = [name for name in LIBRARIES if not (SIMGPU / name).exists()]
        if missing:
            pytest.skip(f"make simgpu builds {', '.join(missing)}")
        preload, env = [str(SIMGPU / name) for name in LIBRARIES[:2]], {"LD_LIBRARY_PATH": SIMGPU}
    folder = tmp_path_factory.mktemp(request.param)
    script = [harness.PYTHON, harness.SCRIPTS / "toggled.py"]
    theirs = harness.Run([*script, "torch", folder / "torch.json"], folder,
                         harness.clean_environment(LD_PRELOAD=" ".join(preload), **env), timeout=harness.LONG).ok()
    (folder / "kprof").mkdir()
    ours = harness.Run([*script, "kprof"], folder / "kprof",
                       harness.clean_environment(LD_PRELOAD=" ".join([str(harness.LIBRARY), *preload]), KPROF_DIR=folder / "kprof",
                                                 KPROF_SCHEDULE="none", **env), timeout=harness.LONG).ok()
    assert theirs and ours
    trace, = sorted((folder / "kprof").glob("*.pt.trace.json*"))
    reference = kept(folder / "torch.json")
    if request.param == "cuda" and not any(kind == "kernel" for kind, _ in reference):
        pytest.skip("this torch has no CUDA")
    return reference, kept(trace), request.param == "cuda"


def test_the_same_events_are_kept(pair):
    theirs, ours, _ = pair
    assert sum(theirs.values()) > 40
    same = sum((theirs & ours).values())
    assert same / max(sum(theirs.values()), sum(ours.values())) == 1.0, (theirs - ours, ours - theirs)


def test_what_was_off_is_not_there(pair):
    _, ours, has_gpu = pair
    ranges = {name for kind, name in ours if kind == "user_annotation"}
    assert {"all", "no cuda", "cuda again", "open when cpu goes off", "cpu again", "both again"} <= ranges
    assert not {"no cpu", "begun while cpu is off", "nothing"} & ranges
    assert ours["cpu_op", "aten::relu"] == 5  # of 7 parts
    if has_gpu:
        assert sum(n for (kind, name), n in ours.items() if kind == "kernel" and "softmax" in name.lower()) == 5
