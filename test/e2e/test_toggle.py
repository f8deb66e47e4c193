# SPDX-License-Identifier: Apache-2.0
"""kprof_toggle keeps what torch.profiler's toggle_collection_dynamic keeps in the same program, on the CPU and on the simulated
GPU."""
import collections
import platform
import subprocess

import facts
import harness
import pytest

SIMGPU = harness.BUILD / platform.machine() / "simgpu"
LIBRARIES = ["libcudart.so.13", "libcupti.so.13", "libcuda.so.1"]
SLOW = "sigmoid=3000000;cos=3000000"  # ns: kernels of which some are queued when CUDA is switched
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
        preload, env = [str(SIMGPU / name) for name in LIBRARIES[:2]], {"LD_LIBRARY_PATH": SIMGPU, "SIMGPU_RULES": SLOW}
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


def test_work_that_is_queued_at_a_toggle_counts_by_its_launch(pair):
    """Not by the time at which the device comes to it."""
    _, ours, has_gpu = pair
    for op, is_on in (("sigmoid", True), ("cos", False), ("erf", True)):
        assert ours["cpu_op", f"aten::{op}"] == 10
        assert sum(n for (kind, name), n in ours.items() if kind == "kernel" and op in name) == (10 if is_on and has_gpu else 0)


@pytest.mark.parametrize("activity, cat", [("cpu", "cpu_op"), ("cuda", "kernel")])
def test_what_is_switched_while_the_window_warms_up_is_off_from_its_first_step(tmp_path, activity, cat):
    """Steps 1, 2 and 3 are recorded; the activity is off from step 0, which warms up, to the begin of step 2."""
    if any(not (SIMGPU / name).exists() for name in LIBRARIES):
        pytest.skip("make simgpu builds what this needs")
    preload = [str(harness.LIBRARY), *(str(SIMGPU / name) for name in LIBRARIES[:2])]
    env = harness.clean_environment(LD_PRELOAD=" ".join(preload), LD_LIBRARY_PATH=SIMGPU, KPROF_DIR=tmp_path, KPROF_STEP="api",
                                    KPROF_SCHEDULE="warmup=1,active=3,repeat=1")
    harness.Run(harness.script_command("toggled_warming.py", activity), tmp_path, env, timeout=harness.LONG).ok()
    trace, = tmp_path.glob("*.pt.trace.json*")
    data = facts.load(trace)
    ours = collections.Counter(word for e in data["traceEvents"] if e.get("cat") == cat for word in ("sigmoid", "cos", "erf") if word in e["name"])
    if activity == "cuda" and not any(e.get("cat") in ("cuda_runtime", "kernel") for e in data["traceEvents"]):
        pytest.skip("this torch has no CUDA")
    assert ours == {"erf": 2}, ours


@pytest.mark.parametrize("cupti", ["yield", "off"])  # off: hooks in its place
def test_a_command_switches_the_gpu_of_a_program_that_runs(tmp_path, cupti):
    if any(not (SIMGPU / name).exists() for name in LIBRARIES):
        pytest.skip("make simgpu builds what this needs")
    preload = [str(harness.LIBRARY), *(str(SIMGPU / name) for name in LIBRARIES[:2])]
    env = harness.clean_environment(LD_PRELOAD=" ".join(preload), LD_LIBRARY_PATH=SIMGPU, KPROF_DIR=tmp_path, KPROF_SCHEDULE="none",
                                    KPROF_CONTROL=1, KPROF_CUPTI=cupti)
    with subprocess.Popen(harness.script_command("told_ops.py"), env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        has_gpu = run.stdout.readline() == "cuda\n"
        for words in ("start", "erf", "toggle cuda off", "cos", "toggle cuda on", "sigmoid", "stop"):
            if words in ("erf", "cos", "sigmoid"):
                run.stdin.write(words + "\n")
                run.stdin.flush()
                assert run.stdout.readline() == "done\n"
            else:
                answer = harness.cli("ctl", tmp_path, *words.split())
                assert answer.returncode == 0, answer.stderr
        run.stdin.close()
    assert run.returncode == 0
    trace, = tmp_path.glob("*.pt.trace.json*")
    ours = kept(trace)
    assert [ours["cpu_op", f"aten::{op}"] for op in ("erf", "cos", "sigmoid")] == [1, 1, 1]
    if not has_gpu:
        pytest.skip("this torch has no CUDA")
    assert [sum(kind == "kernel" and op in name for kind, name in ours) for op in ("erf", "cos", "sigmoid")] == [1, 0, 1]


def test_a_child_forked_while_ops_are_off_records_its_own(tmp_path):
    code = ("import ctypes, os, sys, torch\nkprof = ctypes.CDLL(None)\nx = torch.ones(4)\nassert kprof.kprof_toggle(b'cpu', 0) == 0\nx.sigmoid()\n"
            "child = os.fork()\nif not child:\n    x.neg()  # begins the recording\n    x.erf()\n    sys.exit(0)\nassert os.waitpid(child, 0)[1] == 0\nx.tan()\n"
            "assert kprof.kprof_toggle(b'cpu', 1) == 0\nx.cos()")
    run = harness.run_kprof(None, tmp_path, command=[harness.PYTHON, "-c", code], schedule=None, shapes=False, KPROF_CHILDREN=1).ok()
    own, = run.traces
    child, = (tmp_path / "children").glob("*.pt.trace.json*")
    told = [[op for op in ("sigmoid", "erf", "tan", "cos") if kept(path)["cpu_op", f"aten::{op}"]] for path in (own, child)]
    assert told == [["cos"], ["erf"]], run.explain()
