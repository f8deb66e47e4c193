# SPDX-License-Identifier: Apache-2.0
"""Beside a program that profiles itself with CUPTI (torch.profiler, and a program in C that does as it does): the program's records
are what they are without libkprof, and libkprof's are complete. On the simulated GPU."""
import collections
import gzip
import json
import platform
import re

import pytest

from harness import BUILD, LIBRARY, LONG, PYTHON, SCRIPTS, Run, clean_environment

SIMGPU = BUILD / platform.machine() / "simgpu"
DOUBLES = ["libcuda.so.1", "libcudart.so.13", "libcupti.so.13"]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
KINDS = {"10": "kernel", "1": "gpu_memcpy", "2": "gpu_memset"}
MEMCPY2 = 22  # the client does not ask for it
CLOCKS = 1e-4  # each side fits the counter's clock by itself; on a busy machine a call or a session may last long
BACK = 16  # z's: 50 ms each, in which we are back after a session of the program's
ASKED_BY_US = {"4"}  # cuDeviceGetCount, once a process


@pytest.fixture(scope="module", autouse=True)
def simgpu():
    missing = [name for name in [*DOUBLES, "client"] if not (SIMGPU / name).exists()]
    if missing:
        pytest.skip(f"make simgpu builds {', '.join(missing)}")


# ---- a program in C ----

TEE, YIELD = {"KPROF_CUPTI": "tee"}, {}  # yield is the default


def client(folder, plan, preload=True, code=0, how=TEE, **env):
    """(records of the client: session -> lines, the run)"""
    folder.mkdir()
    settings = {"LD_LIBRARY_PATH": SIMGPU, **how, **env}
    if preload:
        settings.update(LD_PRELOAD=LIBRARY, KPROF_DIR=folder)
    run = Run([SIMGPU / "client", folder / "records", plan], folder, clean_environment(**settings), timeout=LONG)
    assert run.code == code, run.explain()
    return [line.split() for line in (folder / "records").read_text().splitlines()], run


def kinds_of(records):
    """How many of each kind and name in each session. CUPTI's own overhead is not the program's doing."""
    rows = [(session, kind, name) for session, kind, name, *_ in records if kind != "17"]
    return collections.Counter(row for row in rows if not (row[1] == "4" and row[2] in ASKED_BY_US))


def events(path):
    text = gzip.open(path).read() if path.name.endswith("gz") else path.read_bytes()
    return [event for event in json.loads(text)["traceEvents"] if event.get("ph") == "X"]


def by_correlation(rows, categories):
    return {(event["cat"], event["args"]["correlation"]): event for event in rows if event["cat"] in categories}


def rounds_in_window(plan, wait, active):
    """Rounds of work between the steps `wait` and `wait + active` of a plan."""
    steps = plan.split(".")[wait:wait + active]
    return sum(int(n or 1) for step in steps for n in re.findall(r"[lb](\d*)", step))


PLANS = [  # the program's sessions (P to p) and libkprof's window, in every order; wait, warmup, active
    ("Pl3sp.l2s.l2s.l2s.", 1, 0, 2),                # before the window
    ("l1s.l2s.l2s.Pl3sp.l1s.", 1, 0, 2),            # after it
    ("l1s.Pl3spl2s.l2s.l1s.", 1, 0, 2),             # inside
    ("l1s.Pl2s.l3s.l2sp.l2s.", 1, 0, 2),            # as long as it
    ("l1s.l1sPl1s.l2s.l2s.l1sp.", 1, 0, 2),         # across its end
    ("Pl1s.l1s.l2sp.l2s.l2s.", 1, 0, 3),            # across its beginning
    ("Pl1s.l1s.l2s.l2s.l2s.l1sp.", 2, 1, 1),        # around it
    ("Pl1sp.Pl1sp.Pl2sp.Pl2sp.Pl2sp.Pl1sp.", 1, 1, 2),  # a session a step
    ("l1s.l1s.Pl50p.l20s.", 1, 1, 2),               # not synchronised at its end: a forced flush with work in flight
    ("l1s.Pl5fl5fsl5fsp.l2sf.l1s.", 1, 0, 2),       # flushes in between
]


@pytest.mark.parametrize("plan,wait,warmup,active", PLANS)
def test_both_get_their_own(tmp_path, plan, wait, warmup, active):
    alone, _ = client(tmp_path / "alone", plan, preload=False)
    records, run = client(tmp_path / "both", plan, KPROF_SCHEDULE=f"wait={wait},warmup={warmup},active={active},repeat=1")
    assert kinds_of(records) == kinds_of(alone)
    ours = events(run.trace)
    n = rounds_in_window(plan, wait + warmup, active)
    names = collections.Counter(event["name"] for event in ours if event["cat"] in WORK + ("cuda_runtime",))
    why = n, names, json.loads(gzip.open(run.trace).read())["kprof_gpu"], run.said
    assert names["_Z5alphaPfi"] == names["_Z4betaPf"] == names["cudaMemcpyAsync"] == names["cudaMemsetAsync"] == n, why
    assert names["cudaLaunchKernel"] == 2 * n, why
    assert sum(event["cat"] == "gpu_memcpy" for event in ours) == sum(event["cat"] == "gpu_memset" for event in ours) == n
    compare_times(records, by_correlation(ours, WORK))


def compare_times(records, ours):
    """Records that both have: one name, and times that differ by a straight line only (the client's are ticks)."""
    pairs = []
    for _, kind, name, correlation, start, end in records:
        event = ours.get((KINDS.get(kind), int(correlation)))
        if event is None:
            continue
        assert name in ("-", event["name"])
        pairs.append((int(start), int(end), event))
    if len(pairs) < 2:
        return
    first, last = pairs[0], pairs[-1]
    scale = (last[2]["ts"] - first[2]["ts"]) * 1000 / (last[0] - first[0])
    for start, end, event in pairs:
        assert abs((end - start) * scale - event["dur"] * 1000) < 5 + (end - start) * 0.001
        assert abs((start - first[0]) * scale - (event["ts"] - first[2]["ts"]) * 1000) < 2000 + (start - first[0]) * scale * CLOCKS


def test_work_of_other_threads_is_nobodys_loss(tmp_path):
    plan = "b400Pl10pPl20pzPl30spj.l1s."
    records, run = client(tmp_path / "both", plan, KPROF_SCHEDULE="wait=0,warmup=0,active=2,repeat=1")
    of_kernels = json.loads(gzip.open(run.trace).read())["kprof_gpu"]["kernel"]
    assert of_kernels["shown"] + of_kernels.get("without time", 0) == 2 * 461 # a flush that the client forces cuts what is in flight
    assert of_kernels.get("without time", 0) <= 6
    for session, least in ((1, 10), (2, 20), (3, 30)):
        kernels = [row for row in records if row[0] == str(session) and row[1] == "10"]
        assert len(kernels) >= 2 * least
        assert len({row[3] for row in kernels}) == len(kernels), "a record came twice"
        launches = {row[3] for row in records if row[0] == str(session) and row[1] == "5" and row[2] == "211"}
        assert {row[3] for row in kernels} <= launches | {min(row[3] for row in kernels)}


def test_teardown_ends_both_and_both_begin_again(tmp_path):
    """TEARDOWN_CUPTI=1: cuptiFinalize. What runs before CUPTI is in use again nobody sees."""
    plan = "Pl3spFl2Pl3sp.zzzzzl4s.l1s."
    alone, _ = client(tmp_path / "alone", plan, preload=False)
    records, run = client(tmp_path / "both", plan, KPROF_SCHEDULE="wait=0,warmup=0,active=3,repeat=1")
    assert kinds_of(records) == kinds_of(alone), run.explain()
    ours = [event["name"] for event in events(run.trace) if event["cat"] == "kernel"]
    assert 2 * (3 + 4 + 1) <= len(ours) <= 2 * (3 + 2 + 3 + 4 + 1)


def test_yield_leaves_cupti_to_the_program(tmp_path):
    plan = "l3s.Pl3sp." + "z" * BACK + "l2s.l1s."
    alone, _ = client(tmp_path / "alone", plan, preload=False)
    records, run = client(tmp_path / "both", plan, how=YIELD, KPROF_SCHEDULE="wait=0,warmup=0,active=4,repeat=1", SIMCUPTI_LOG=tmp_path / "calls")
    assert kinds_of(records) == kinds_of(alone)
    trace = json.loads(gzip.open(run.trace).read())
    kernels = [event for event in events(run.trace) if event["cat"] == "kernel"]
    assert len(kernels) == 2 * (3 + 2 + 1), "what runs in its session is its alone"
    assert trace["kprof_gpu"]["yielded"] == "1 times"
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    ours_only = [row["call"] for row in calls if row.get("args", [0])[0] == MEMCPY2 and row.get("call") in ("cuptiActivityEnable", "cuptiActivityDisable")]
    assert ours_only[:3] == ["cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityEnable"] # the window may end with the program
    said = [line for line in run.said if "CUPTI" in line]
    assert said == ["kprof: client uses CUPTI itself: GPU work is not recorded until it is done (KPROF_CUPTI=tee records beside it)"]
    nothing_of_ours_within(calls)


def nothing_of_ours_within(calls):
    """Sessions of the program, from the clock it registers to its forced flush, hold calls of its own thread alone."""
    first = next(n for n, row in enumerate(calls) if row.get("call") == "cuptiActivityRegisterTimestampCallback")
    tid = calls[first]["tid"]
    last = max(n for n, row in enumerate(calls) if row["tid"] == tid and row.get("call") == "cuptiActivityFlushAll" and row["args"][0] == 1)
    others = [row for row in calls[first:last] if row.get("tid") != tid]
    assert not others, others


def test_yield_in_every_order_leaves_the_program_what_it_has_alone(tmp_path):
    for n, (plan, wait, warmup, active) in enumerate(PLANS):
        alone, _ = client(tmp_path / f"alone{n}", plan, preload=False)
        records, run = client(tmp_path / f"both{n}", plan, how=YIELD, KPROF_SCHEDULE=f"wait={wait},warmup={warmup},active={active},repeat=1")
        assert kinds_of(records) == kinds_of(alone), plan
        assert run.closing[3] == 0, run.said


def test_yield_says_nothing_when_nothing_is_missed(tmp_path):
    _, run = client(tmp_path / "both", "Pl3sp" + "z" * BACK + ".l2s.l2s.l2s.", how=YIELD, KPROF_SCHEDULE="wait=1,warmup=1,active=1,repeat=1")
    assert not [line for line in run.said if "CUPTI" in line], run.said
    assert sum(event["cat"] == "kernel" for event in events(run.trace)) == 2 * 2


def test_off_never_calls_cupti(tmp_path):
    plan = "l3s.Pl3sp.l2s."
    alone, _ = client(tmp_path / "alone", plan, preload=False)
    records, _ = client(tmp_path / "both", plan, how={"KPROF_CUPTI": "off"}, SIMCUPTI_LOG=tmp_path / "calls")
    work = [{row: n for row, n in kinds_of(some).items() if row[1] in KINDS} for some in (records, alone)]
    assert work[0] == work[1] # the fallback times work by CUDA events of its own: those calls the program's CUPTI does see
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    names = collections.Counter(row["call"] for row in calls if "call" in row)
    assert names["cuptiActivityRegisterCallbacks"] == 1 and names["cuptiGetVersion"] == 0 and names["cuptiActivityEnable"] == 7


KINETOS = {1, 2, 10, 39, 5, 4, 17}


@pytest.mark.parametrize("how,is_left", [({"SIMCUPTI_HANG": "GetNumDropped"}, True), ({"SIMCUPTI_SLOW": "GetNumDropped:7000:1"}, False)])
def test_a_call_of_ours_that_does_not_return_takes_nothing_from_the_program(tmp_path, how, is_left):
    """The program's sessions lie where nobody can call CUPTI on our behalf: its Disable must reach CUPTI, or it is on for ever.
    Once the call has returned (or never) only what is ours alone is (or stays) enabled."""
    waits = 'z' * 95 # the window is over, and closed without what CUPTI still has
    plan = f"l3s.l2s.{waits}Pl3spl2sPl50p{'z' * 50}l1s."
    settings = {"KPROF_SCHEDULE": "wait=0,warmup=0,active=2,repeat=1", "KPROF_CUPTI": "tee", "SIMCUPTI_LOG": tmp_path / "calls", **how}
    alone, _ = client(tmp_path / "alone", plan, preload=False)
    records, run = client(tmp_path / "both", plan, **settings)
    assert kinds_of(records) == kinds_of(alone), run.explain()
    assert any("has not returned for 4 s" in line for line in run.said), run.said
    end = json.loads((tmp_path / "calls").read_text().splitlines()[-1])
    assert bool(end["enabled"]) == is_left and not KINETOS & set(end["enabled"]) and end["single"] == 0, end


# ---- somebody else has CUPTI ----

@pytest.mark.parametrize("env,name", [
    ({"SIMCUPTI_V2_USED": 1, "SIMCUPTI_OTHER_TOOL": "Some Profiler"}, "Some Profiler"),          # told by CUPTI
    ({"SIMCUPTI_V2_USED": 1, "SIMCUPTI_VERSION": 28, "NSYS_PROFILING_SESSION_ID": 1}, "Nsight Systems"),
    ({"SIMCUPTI_FAIL": "cuptiActivityEnable:1:39", "CUDA_INJECTION64_PATH": "/opt/tool/libtool.so"}, "/opt/tool/libtool.so"),
    ({"SIMCUPTI_V2_USED": 1}, "another profiler"),
])
def test_who_has_cupti_is_said_in_one_line(tmp_path, env, name):
    _, run = client(tmp_path / "run", "l2s.l2s.l1s.", KPROF_SCHEDULE="wait=0,warmup=0,active=2,repeat=1", **env)
    told = [line for line in run.said if "CUPTI" in line]
    assert len(told) == 1 and f"CUPTI is taken by {name}" in told[0].replace("CUDA_INJECTION64_PATH=", ""), run.said
    assert {"ProfilerStep#0", "ProfilerStep#1"} <= {event["name"] for event in events(run.trace)}


# ---- torch.profiler ----

def train(folder, *sessions, preload=True, how=TEE, **env):
    folder.mkdir()
    doubles = " ".join(str(SIMGPU / name) for name in DOUBLES)
    settings = {"LD_LIBRARY_PATH": SIMGPU, "LD_PRELOAD": doubles, "DISABLE_ADDMM_CUDA_LT": 1, **how, **env}
    if preload:
        settings.update(LD_PRELOAD=f"{LIBRARY} {doubles}", KPROF_DIR=folder)
    run = Run([PYTHON, SCRIPTS / "tee_steps.py", folder, *sessions], folder, clean_environment(**settings), timeout=LONG)
    if "not compiled with CUDA" in run.err:
        pytest.skip("this torch has no CUDA")
    return run.ok()


def names_of(rows):
    return collections.Counter((event["cat"], event["name"]) for event in rows if event["cat"] in WORK + CALLS + ("cpu_op",))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What torch.profiler sees of one step when nobody else is there."""
    folder = tmp_path_factory.mktemp("tee") / "alone"
    train(folder, "2-4", "6-6", preload=False)
    return [names_of(events(folder / f"kineto{n}.json")) for n in range(2)]


def same_in_both(kineto, ours, all_of_kineto=True):
    """Each record of torch.profiler's is in ours with its name, duration and arguments."""
    theirs, mine = by_correlation(kineto, WORK + CALLS), by_correlation(ours, WORK + CALLS)
    if all_of_kineto:
        assert theirs and set(theirs) <= set(mine)
    shared = [key for key in theirs if key in mine]
    assert shared
    offsets = []
    for key in shared:
        a, b = theirs[key], mine[key]
        assert a["name"] == b["name"]
        assert abs(a["dur"] - b["dur"]) <= 0.0011 + a["dur"] * CLOCKS, (a, b)
        offsets.append(a["ts"] - b["ts"])
        for arg in ("device", "context", "stream", "bytes", "grid", "block", "registers per thread", "shared memory", "occupancy"):
            assert a["args"].get(arg) == b["args"].get(arg), (a, b)
    starts = [theirs[key]["ts"] for key in shared]
    assert max(offsets) - min(offsets) < 2 + (max(starts) - min(starts)) * CLOCKS, "two clocks"


def test_torch_profiler_inside_our_window(alone, tmp_path):
    run = train(tmp_path / "both", "2-4", "6-6")
    ours = events(run.trace)
    for n in range(2):
        kineto = events(run.folder / f"kineto{n}.json")
        assert names_of(kineto) == alone[n]
        same_in_both(kineto, ours)
        self_device_times(kineto, ours, json.loads((run.folder / f"averages{n}.json").read_text()))


def self_device_times(kineto, ours, averages):
    """Self CUDA of each op, summed from our file over the work that torch.profiler saw too, is what key_averages says."""
    seen = set(by_correlation(kineto, WORK))
    ops = {event["args"]["External id"]: event["name"] for event in ours if event["cat"] == "cpu_op"}
    sums = collections.Counter()
    for key, event in by_correlation(ours, WORK).items():
        if key in seen:
            sums[ops[event["args"]["External id"]]] += event["dur"]
    told = {name: time for name, time in averages if time and name in set(ops.values())}
    assert set(told) == set(sums)
    for name, time in told.items():
        assert abs(time - sums[name]) < 0.0015 * max(1, sum(n == name for n in ops.values())) + time * CLOCKS, (name, time, sums[name])


def test_our_window_inside_torch_profilers(alone, tmp_path):
    run = train(tmp_path / "both", "0-9", KPROF_SCHEDULE="wait=3,warmup=1,active=2,repeat=1")
    kineto, ours = events(run.folder / "kineto0.json"), events(run.trace)
    kernels = sum(event["cat"] == "kernel" for event in kineto)
    assert kernels == 10 * sum(n for (cat, _), n in alone[1].items() if cat == "kernel")
    mine = [event for event in ours if event["cat"] == "kernel"]
    assert len(mine) == kernels // 5
    same_in_both(kineto, ours, all_of_kineto=False)
    assert set(by_correlation(ours, WORK)) <= set(by_correlation(kineto, WORK))


@pytest.mark.parametrize("how", [TEE, YIELD], ids=["tee", "yield"])
def test_torch_profiler_comes_first_where_it_takes_cupti_down(alone, tmp_path, how):
    run = train(tmp_path / "both", "2-4", "6-6", how=how, TEARDOWN_CUPTI=1)
    for n in range(2):
        assert names_of(events(run.folder / f"kineto{n}.json")) == alone[n]
    kernels = sum(event["cat"] == "kernel" for event in events(run.trace))
    assert kernels > 0
    line = "kprof: KPROF_CUPTI=tee may lose kernels with TEARDOWN_CUPTI=1, using yield"
    assert (line in run.said) == (how == TEE), run.said


def test_torch_profiler_with_yield(alone, tmp_path):
    run = train(tmp_path / "both", "2-4", "6-6", how=YIELD)
    for n in range(2):
        assert names_of(events(run.folder / f"kineto{n}.json")) == alone[n]
    ours = events(run.trace)
    assert sum(event["cat"] == "cpu_op" for event in ours) > 0
    assert run.err.count("kprof: torch.profiler uses CUPTI itself") == 1, run.err  # Kineto's lines may end behind it


@pytest.mark.parametrize("how", [TEE, YIELD], ids=["tee", "yield"])
def test_the_clock_that_torch_profiler_brings_is_there_before_anything_is_enabled(alone, tmp_path, how):
    """Where CUPTI keeps to the clock of the first enabling and takes a registration badly (pytorch#190346, #192021), torch.profiler has
    all of its kernels all the same: one more in its second session than without us."""
    run = train(tmp_path / "both", "2-4", "6-6", how=how, SIMCUPTI_LATCH=1, SIMCUPTI_LOG=tmp_path / "calls")
    for n in range(2):
        assert names_of(events(run.folder / f"kineto{n}.json")) == alone[n]
    calls = [json.loads(line).get("call") for line in (tmp_path / "calls").read_text().splitlines()]
    assert calls.count("cuptiActivityRegisterTimestampCallback") == 1
    assert calls.index("cuptiActivityRegisterTimestampCallback") < calls.index("cuptiActivityEnable")
