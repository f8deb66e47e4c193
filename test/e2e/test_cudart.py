# SPDX-License-Identifier: Apache-2.0
"""CUDA calls seen by our own hooks, where CUPTI is not used: a program of the runtime on the simulated GPU, against what the GPU
says it did (SIMGPU_LOG) and against what CUPTI says of the same program."""
import collections
import json
import shutil
import subprocess

import pytest

import harness
import spoolrecords

SIM = next(iter(sorted(harness.BUILD.glob("*/simgpu"))), harness.BUILD / "simgpu")
HOOKS = {"KPROF_CUPTI": "off"}
EVENTS, NO_TIME = 2, 8


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The same source for three runtimes."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler or not (SIM / "libcuda.so.1").exists():
        pytest.skip("no C compiler, or no simulated GPU (make simgpu)")
    folder = tmp_path_factory.mktemp("cudart")
    for version in ("11.0", "12", "13"):
        flags = ["-DOLD_RUNTIME"] if version == "11.0" else []
        subprocess.run([compiler, "-w", *flags, harness.SCRIPTS / "cudart" / "launches.c", "-o", folder / f"launches{version}", f"-L{SIM}",
                        f"-l:libcudart.so.{version}"], check=True)
    return folder


def plain(program, **env):
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=harness.LONG,
                          env=harness.clean_environment(LD_LIBRARY_PATH=SIM, **env))
    return done.returncode, done.stdout


def run(program, folder, **env):
    settings = {"KPROF_ACTIVITIES": "cpu,cuda", "KPROF_EXPORT": "none", "LD_LIBRARY_PATH": SIM, "SIMGPU_LOG": folder / "truth", **env}
    done = harness.run_kprof(None, folder, command=[program], schedule=None, shapes=False, **settings)
    return done, spoolrecords.load(done.spools[0])


def truth(folder, kind):
    found = [json.loads(line) for line in (folder / "truth").read_text().splitlines()]
    return [w for w in found if w["what"] == "work" and w["kind"] == kind and not w["graph"]]


def kernels(found):
    return [(k.name, (k.gx, k.gy, k.gz), (k.bx, k.by, k.bz)) for k in sorted(found["KERNEL"], key=lambda k: k.correlation) if not k.graph]


def copies(found, kind):
    return [(c.bytes, c.kind, c.src, c.dst) for c in sorted(found[kind], key=lambda c: c.correlation) if not c.graph]


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_what_the_gpu_did_is_what_the_hooks_saw(programs, tmp_path, version):
    program = programs / f"launches{version}"
    done, found = run(program, tmp_path, **HOOKS)
    assert (done.code, done.out) == plain(program), done.explain()  # answers, the runtime's own error, errno
    did = truth(tmp_path, "kernel")
    assert kernels(found) == [(w["name"], tuple(w["grid"]), tuple(w["block"])) for w in did]
    # on a busy machine the driver may be seen some launches late: those have neither times nor registers
    whole = [(k, w) for k, w in zip(sorted(found["KERNEL"], key=lambda k: k.correlation), did) if k.registers]
    assert whole and all((k.registers, k.static_smem, k.dynamic_smem) == (w["registers"], w["static_smem"], w["dynamic_smem"]) for k, w in whole)
    assert not whole[-1][0].flags & NO_TIME
    assert copies(found, "MEMCPY") == [(w["bytes"], w["copy_kind"], w["src_kind"], w["dst_kind"]) for w in truth(tmp_path, "memcpy")]
    assert [c[0] for c in copies(found, "MEMSET")] == [w["bytes"] for w in truth(tmp_path, "memset")]
    launches = [a.correlation for a in found["API"] if a.name == "cudaGraphLaunch" and a.result == 0]
    assert len(launches) == 2 and [g.correlation for g in found["GRAPHRUN"]] == launches
    assert found["GRAPHRUN"][-1].flags & EVENTS and found["GRAPHRUN"][-1].end > found["GRAPHRUN"][-1].start
    assert len({a.correlation for a in found["API"]}) == len(found["API"])
    assert {k.correlation for k in found["KERNEL"]} <= {a.correlation for a in found["API"] if "Launch" in a.name and a.result == 0}


def test_times_by_events_are_those_of_the_gpu(programs, tmp_path):
    """Kernels long enough for some microseconds not to matter: when each began, and how long it ran."""
    done, found = run(programs / "launches13", tmp_path, SIMGPU_KERNEL_NS=3000000, **HOOKS)
    seen, did = sorted(found["KERNEL"], key=lambda k: k.correlation), truth(tmp_path, "kernel")
    assert len(seen) == len(did) > 5 and all(k.flags & EVENTS for k in seen)
    ns = spoolrecords.monotonic(done.spools[0])
    early = sorted(w["start"] - ns(k.start) for k, w in zip(seen, did))
    late = sorted(ns(k.end) - w["end"] for k, w in zip(seen, did))
    # a host thread that is put aside between its event and its launch, for however long, makes one kernel look longer; nothing makes it shorter
    assert early[len(early) // 2] < 100000 and late[len(late) // 2] < 100000, (early, late)
    assert early[0] > -100000 and late[0] > -100000, (early, late)
    calls = {a.correlation: a for a in found["API"]}
    assert all(k.start >= calls[k.correlation].start for k in seen)


def test_the_same_list_as_cupti_gives(programs, tmp_path):
    (tmp_path / "hooks").mkdir()
    (tmp_path / "cupti").mkdir()
    _, ours = run(programs / "launches13", tmp_path / "hooks", **HOOKS)
    _, cupti = run(programs / "launches13", tmp_path / "cupti")
    assert kernels(ours) == kernels(cupti)
    assert copies(ours, "MEMCPY") == copies(cupti, "MEMCPY")
    assert [(c.bytes, c.dst) for c in ours["MEMSET"]] == [(c.bytes, c.dst) for c in cupti["MEMSET"] if not c.graph]
    names = {a.name for a in ours["API"]}
    mine = [a.name for a in sorted(ours["API"], key=lambda a: a.correlation)]
    theirs = [a.name for a in sorted(cupti["API"], key=lambda a: a.correlation) if a.name in names and not a.flags & 4]
    assert mine[-len(theirs):] == theirs and len(mine) - len(theirs) <= 1  # the call that loads the driver comes before CUPTI is there


@pytest.mark.parametrize("version", ["12", "13"])
def test_a_constructor_of_a_library_that_brings_the_runtime(programs, tmp_path, version):
    """All that it does in its constructor is recorded, from its first call on, though the runtime came with it."""
    opener, library = programs / "starts", programs / f"libstarts{version}.so"
    source = harness.SCRIPTS / "cudart" / "starts.c"
    compiler = shutil.which("gcc") or shutil.which("cc")
    subprocess.run([compiler, "-w", source, "-o", opener, "-ldl"], check=True)
    subprocess.run([compiler, "-w", "-DLIBRARY", "-shared", "-fPIC", source, "-o", library, f"-L{SIM}", f"-l:libcudart.so.{version}"], check=True)
    settings = {"KPROF_ACTIVITIES": "cpu,cuda", "KPROF_EXPORT": "none", "LD_LIBRARY_PATH": SIM, "SIMGPU_LOG": tmp_path / "truth"}
    done = harness.run_kprof(None, tmp_path, command=[opener, library], schedule=None, shapes=False, **settings, **HOOKS)
    assert (done.code, done.out) == (0, "0 calls failed\nopened\n"), done.explain()
    found = spoolrecords.load(done.spools[0])
    calls = collections.Counter(a.name for a in found["API"])
    assert (calls["cudaMalloc"], calls["cudaLaunchKernel"], calls["cudaDeviceSynchronize"]) == (10, 20, 1), calls
    assert kernels(found) == [(w["name"], tuple(w["grid"]), tuple(w["block"])) for w in truth(tmp_path, "kernel")]
    assert len(found["KERNEL"]) == 20


def test_a_reset_of_the_device(programs, tmp_path):
    done, found = run(programs / "launches13", tmp_path, RESET=1, **HOOKS)
    assert (done.code, done.out) == plain(programs / "launches13", RESET=1)
    assert [k.gx for k in sorted(found["KERNEL"], key=lambda k: k.correlation)][-2:] == [21, 22]
    assert [k.flags & EVENTS for k in found["KERNEL"] if k.gx == 22] == [EVENTS]


@pytest.mark.parametrize("fault", ["cuCtxGetCurrent:2:999", "cuCtxGetDevice:1:999", "cuStreamIsCapturing:3:999", "cuEventQuery:1:999", "cuEventCreate:2:2",
                                   "cuEventElapsedTime:1:999", "cuPointerGetAttribute:1:999", "cuFuncGetAttribute:1:999",
                                   "cuCtxPushCurrent:1:201", "cudaGetFuncBySymbol:1:98", "cudaFuncGetName:1:98"])
def test_a_question_of_ours_that_fails_is_our_own_affair(programs, tmp_path, fault):
    """What only we call fails: the program's answers and the error that its runtime keeps stay, and so does all that it launched."""
    done, found = run(programs / "launches13", tmp_path, SIMGPU_FAIL=fault, **HOOKS)
    assert (done.code, done.out) == plain(programs / "launches13"), done.explain()
    assert [k[1:] for k in kernels(found)] == [(tuple(w["grid"]), tuple(w["block"])) for w in truth(tmp_path, "kernel")]


@pytest.mark.parametrize("late", [{}, {"SIMGPU_FAIL": "cuThreadExchangeStreamCaptureMode:1:3"}], ids=["", "driver_not_ready"])
def test_a_graph_stays_whole_while_another_stream_is_asked(programs, tmp_path, late):
    """A kernel in flight is asked for all the time: that must not break a capture, also where the driver did not take us at first."""
    settings = {"SIMGPU_KERNEL_NS": 20000000, "HOLD": 200000}
    done, found = run(programs / "launches13", tmp_path, **settings, **late, **HOOKS)
    assert (done.code, done.out) == plain(programs / "launches13", **settings), done.explain()
    assert len(found["GRAPHRUN"]) == 2
    assert [k.flags & EVENTS for k in found["KERNEL"] if k.gx == 10] == [EVENTS]


def test_work_that_never_ends_keeps_nobody(programs, tmp_path):
    """The program leaves without waiting for its hanging kernel; so do we, within a bounded time."""
    done, found = run(programs / "launches13", tmp_path, SIMGPU_HANG=1, LEAVE=1, **HOOKS)
    assert done.code == 0 and [k.flags & NO_TIME for k in found["KERNEL"]] == [NO_TIME]


def test_a_forked_child_stays_untouched(programs, tmp_path):
    done, found = run(programs / "launches13", tmp_path, FORK=1, **HOOKS)
    assert (done.code, done.out) == plain(programs / "launches13", FORK=1)
    assert {a.tid for a in found["API"]} == {done.pid}


def test_more_work_in_flight_than_items(programs, tmp_path):
    done, found = run(programs / "launches13", tmp_path, LAUNCHES=30000, **HOOKS)
    assert len(found["KERNEL"]) == len(truth(tmp_path, "kernel")) and done.closing[3] == 0 if "wrote" in done.err else " 0 dropped" in done.err
    timed = collections.Counter(bool(k.flags & NO_TIME) for k in found["KERNEL"])
    assert timed[False] > 8000, timed


def test_torch_is_seen_kernel_by_kernel(tmp_path):
    """Unmodified torch: all of its kernels, copies and fills, in the order of their launches on each stream, and its graph whole."""
    libraries = [harness.LIBRARY, SIM / "libcudart.so.13"]
    if not all(path.exists() for path in libraries):
        pytest.skip("no simulated GPU (make simgpu)")
    done = harness.run_kprof("cudart/steps.py", tmp_path, schedule=None, shapes=False, KPROF_ACTIVITIES="cpu,cuda", KPROF_EXPORT="none",
                             LD_PRELOAD=" ".join(map(str, libraries)), LD_LIBRARY_PATH=SIM, SIMGPU_LOG=tmp_path / "truth", **HOOKS)
    if "not compiled with CUDA" in done.err:
        pytest.skip("this torch has no CUDA")
    assert done.ok().out == "done\n", done.explain()
    found = spoolrecords.load(max(done.spools, key=lambda path: path.stat().st_size))

    def launches(works):
        return collections.Counter((w["name"], tuple(w["grid"]), tuple(w["block"])) for w in works)
    seen = collections.Counter((k.name, (k.gx, k.gy, k.gz), (k.bx, k.by, k.bz)) for k in found["KERNEL"])
    assert len(found["KERNEL"]) > 40 and seen == launches(truth(tmp_path, "kernel"))
    assert sorted(copies(found, "MEMCPY")) == sorted((w["bytes"], w["copy_kind"], w["src_kind"], w["dst_kind"]) for w in truth(tmp_path, "memcpy"))
    assert len(found["MEMSET"]) == len(truth(tmp_path, "memset")) and len(found["GRAPHRUN"]) == 3
    untimed = [k for k in found["KERNEL"] if k.flags & NO_TIME]  # the first launch of a thread that has no context yet
    assert len(untimed) <= 2, untimed


def test_nothing_is_tapped_where_cuda_is_not_asked_for(programs, tmp_path):
    settings = {"KPROF_ACTIVITIES": "cpu", "LD_LIBRARY_PATH": SIM, **HOOKS}
    done = harness.run_kprof(None, tmp_path, command=[programs / "launches13"], schedule=None, shapes=False, **settings)
    assert (done.code, done.out) == plain(programs / "launches13") and not done.spools and not done.traces and done.err == ""
