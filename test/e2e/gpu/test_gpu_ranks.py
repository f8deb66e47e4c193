# SPDX-License-Identifier: Apache-2.0
"""Two ranks over the simulated NCCL: each has its file, collectives end together, a straggler shows, collectives say what they are."""
import collections
import itertools
import os
import socket
import statistics
import subprocess

import pytest

import facts
import gpufacts
import harness
import simgpu


PORTS = itertools.count(20000 + os.getpid() % 10000)  # below those that the system gives to whoever connects
# Arguments of a record_param_comms that are numbers of the run.
NUMBERS = ("External id", "Ev Idx", "Record function id")
# Of a kernel: all that a collective may give it.
GIVEN = {"Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "In split size", "Out split size", "Process Group Name",
         "Process Group Description", "Process Group Ranks", "Src Rank", "Dst Rank", "Seq", "Comms Id", "Rank", "Global rank start",
         "Global rank stride", "Is asynchronized op"}


def is_free(port):
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def run_both(commands, **settings):
    """commands[rank] on two ranks at once; both must succeed."""
    port, running = next(filter(is_free, PORTS)), []
    for rank in (0, 1):
        env = {**simgpu.STEADY, "SIMGPU_DEVICES": 2, "RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
               "SIMNCCL_WAIT_MS": 1000 * harness.LONG, **settings}
        running.append(subprocess.Popen([str(part) for part in commands[rank]], env=harness.clean_environment(**env), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        said = [process.communicate(timeout=harness.LONG) for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], said


def run_recorded(folder, program, *args):
    """The traces of a program's two ranks under libkprof."""
    run_both([simgpu.command_of(program, *args)] * 2, **simgpu.variables(preload=harness.LIBRARY), KPROF_DIR=folder,
             KPROF_SCHEDULE=simgpu.SCHEDULE, KPROF_STEP="optimizer", KPROF_RECORD_SHAPES=1)
    traces = [facts.load(path) for path in sorted(folder.glob("*.pt.trace.json*"))]
    assert len(traces) == 2
    return sorted(traces, key=lambda trace: trace["distributedInfo"]["rank"])


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Rank 1 is 0.3 s late in every step."""
    return run_recorded(tmp_path_factory.mktemp("ranks"), "ranks.py", "1")


@pytest.fixture(scope="module")
def both_profilers(tmp_path_factory):
    """[(torch.profiler's trace, ours)] of the ranks of collectives.py."""
    folder = tmp_path_factory.mktemp("collectives")
    files = [folder / f"kineto{rank}.json" for rank in (0, 1)]
    oracle = [harness.PYTHON, harness.HERE / "oracle" / "kineto.py", "--cuda", "--shapes", "--schedule", "1,1,3,1", "--out"]
    run_both([[*oracle, file, simgpu.PROGRAMS / "collectives.py"] for file in files], **simgpu.variables())
    return list(zip([facts.load(file) for file in files], run_recorded(folder, "collectives.py")))


def kernels_of(trace):
    return sorted((e for e in gpufacts.of(trace, "kernel") if e["name"].startswith("ncclDevKernel")), key=facts.begin)


def test_every_rank_says_who_it_is(ranks):
    assert [trace["distributedInfo"]["rank"] for trace in ranks] == [0, 1]
    assert [trace["distributedInfo"]["world_size"] for trace in ranks] == [2, 2]


def test_every_rank_has_its_collectives(ranks):
    names = [[event["name"] for event in kernels_of(trace)] for trace in ranks]
    assert names[0] == names[1] and len(names[0]) >= 3
    assert set(names[0]) == {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}


def test_each_rank_runs_on_its_own_device(ranks):
    assert [{gpufacts.args(e)["device"] for e in kernels_of(trace)} for trace in ranks] == [{0}, {1}]


def test_the_rank_that_waits_has_the_longer_kernels(ranks):
    """What makes a straggler visible: the others' kernels last as long as it is late."""
    # the one in the middle: a machine that stands still may make the other rank late now and then
    spent = [statistics.median(facts.ns(e["dur"]) for e in kernels_of(trace)) for trace in ranks]
    assert spent[0] > 20_000_000 and spent[0] > 2 * spent[1], spent


def ops(trace):
    """Arguments of what torch says of collectives, in order of time. Whether a wait is one of its own depends on who comes first."""
    found = sorted((e for e in gpufacts.of(trace, "cpu_op") if e["name"] == "record_param_comms"), key=facts.begin)
    said = [{k: v for k, v in gpufacts.args(e).items() if k not in NUMBERS} for e in found]
    return [args for args in said if args["Collective name"] != "wait"]


def given(trace):
    """What each NCCL kernel says of its collective."""
    kernels = [e for e in gpufacts.of(trace, "kernel") if e["name"].startswith("ncclDevKernel")]
    return [(e["name"], {k: v for k, v in gpufacts.args(e).items() if k in GIVEN}) for e in sorted(kernels, key=facts.begin)]


def test_collectives_have_the_arguments_torch_gives_them(both_profilers):
    for theirs, ours in both_profilers:
        assert ops(ours) == ops(theirs)
        assert len({args["Collective name"] for args in ops(ours)}) >= 8
        assert len({args["Comms Id"] for args in ops(ours)}) >= 20
        assert {args["dtype"] for args in ops(ours)} >= {"Float", "Long", "Half", "BFloat16"}


def test_kernels_of_collectives_have_what_kineto_copies_to_them(both_profilers):
    for theirs, ours in both_profilers:
        assert given(ours) == given(theirs)
        assert sum("Comms Id" in args for _, args in given(ours)) >= 12
        others = [e for e in gpufacts.of(ours, "kernel", "gpu_memcpy", "gpu_memset") if not e["name"].startswith("ncclDevKernel")]
        assert others and not any(GIVEN & gpufacts.args(e).keys() for e in others)


def test_ranges_of_collectives_reach_the_gpu(both_profilers):
    for traces in both_profilers:
        theirs, ours = [collections.Counter(e["name"] for e in gpufacts.of(trace, "gpu_user_annotation")) for trace in traces]
        assert ours == theirs and len(ours) >= 12
