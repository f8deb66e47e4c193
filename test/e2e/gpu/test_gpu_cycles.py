# SPDX-License-Identifier: Apache-2.0
"""wait, warm-up, active, repeat with a GPU: whole windows, and nothing left switched on after the last one."""
import json

import pytest

import facts
import gpufacts
import harness
import simgpu

CYCLES = 20
REST = 400  # steps after the last cycle: it is switched off before the exit, which disables nothing
STEPS = 6 * CYCLES


@pytest.fixture(scope="module")
def cycled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cycled")
    # the first half of the cycles follow each other at once, in the second half each waits for the one before to be drained
    patience = ("--await", folder, "6", str(STEPS // 2), str(STEPS))
    run = simgpu.run("training.py", folder, "--parts", "mlp", "--steps", str(STEPS + REST), *patience, kprof=True, shapes=False,
                     schedule=f"wait=3,warmup=1,active=2,repeat={CYCLES}", SIMCUPTI_SINGLES=1, SIMCUPTI_LOG=folder / "cupti.log", SIMGPU_LOG=folder / "truth.jsonl",
                     KPROF_GZIP=0).ok()
    return run, [facts.load(path) for path in run.traces]


def test_every_cycle_leaves_a_file(cycled):
    assert len(cycled[1]) == CYCLES


def test_every_cycle_has_all_kernels_of_all_its_steps(cycled):
    """Also the first step of each: warm-up armed what it needs."""
    counts = set()
    for trace in cycled[1]:
        calls = gpufacts.launches(trace)
        for step in facts.steps(trace):
            inside = {c for c, e in calls.items() if facts.begin(step) <= facts.begin(e) < facts.end(step)}
            launched = sum("Launch" in calls[c]["name"] for c in inside)
            work = [e for e in gpufacts.of(trace, "kernel") if gpufacts.args(e)["correlation"] in inside]
            assert launched > 20 and len(work) == launched
            counts.add(len(work))
    assert len(counts) <= 2, counts  # every second step reads the loss


def test_no_kernel_is_in_two_files_and_none_is_invented(cycled):
    seen = facts.collections.Counter(gpufacts.args(e)["correlation"] for trace in cycled[1] for e in gpufacts.of(trace, "kernel"))
    truth = {json.loads(line)["correlation"] for line in (cycled[0].folder / "truth.jsonl").read_text().splitlines() if '"kernel"' in line}
    assert seen and max(seen.values()) == 1 and set(seen) <= truth


def test_nothing_stays_enabled_after_the_last_cycle(cycled):
    """The simulated CUPTI logs every call: what was enabled last must have been disabled."""
    said = [json.loads(line) for line in (cycled[0].folder / "cupti.log").read_text().splitlines()]
    assert [line["args"][0] for line in said if line.get("call") == "cuptiActivityEnable"], "the log says of no kind that it was enabled"
    ends = [line for line in said if line.get("exit")]
    assert ends and ends[-1]["enabled"] == [] and ends[-1]["single"] == 0


def test_cupti_wants_no_buffer_between_and_after_the_cycles(cycled):
    """Single calls (cuptiActivityEnableRuntimeApi) are recorded without their kind: none may stay on."""
    said = [json.loads(line) for line in (cycled[0].folder / "cupti.log").read_text().splitlines()]
    requests = [line for line in said if line.get("request")]
    assert requests, "CUPTI asked for no buffer at all"
    assert [line for line in requests if not line["enabled"]] == []
    counts = [trace["kprof_gpu"].get("requests_after_disarm") for trace in cycled[1]]
    assert counts[-1] == "0" and set(counts) <= {None, "0"}  # the first may be written before it is known


def test_each_kernel_has_its_own_launch_where_kinds_are_disabled_beside_launches(tmp_path):
    """CUPTI 13.0.85 leaves a thread the correlation of the call that it is in at a Disable. So none is made then."""
    run = simgpu.run("training.py", tmp_path, "--parts", "mlp", "--steps", "1000", kprof=True, shapes=False,
                     schedule="wait=197,warmup=1,active=2,repeat=5", SIMCUPTI_AMID=1, SIMCUPTI_LOG=tmp_path / "cupti.log", KPROF_GZIP=0).ok()
    said = [json.loads(line) for line in (tmp_path / "cupti.log").read_text().splitlines()]
    assert sum(line.get("call") == "cuptiActivityDisable" for line in said) > 20, "kinds were not disabled between the windows"
    assert len(run.traces) == 5
    for trace in map(facts.load, run.traces):
        seen = facts.collections.Counter(gpufacts.args(e)["correlation"] for e in gpufacts.of(trace, "kernel"))
        assert len(seen) > 20 and max(seen.values()) == 1 and set(seen) <= set(gpufacts.launches(trace)), run.explain()


def test_no_call_is_recorded_long_after_the_only_window(tmp_path):
    run = simgpu.run("training.py", tmp_path, "--parts", "mlp", "--steps", "60", "--await", tmp_path, "4", "4", "4", kprof=True, shapes=False,
                     schedule="wait=1,warmup=1,active=2,repeat=1", SIMCUPTI_LOG=tmp_path / "cupti.log", KPROF_GZIP=0).ok()
    said = [json.loads(line) for line in (tmp_path / "cupti.log").read_text().splitlines()]
    last = max(n for n, line in enumerate(said) if line.get("call") == "cuptiActivityDisable")
    assert [line for line in said[last:] if line.get("request")] == [] and said[-1]["single"] == 0
    assert not [line for line in run.said if "goes on recording" in line]


def test_a_window_without_the_gpu_says_so(tmp_path):
    """A CUPTI whose second window is not to be trusted where graphs are used (decisions/046)."""
    run = simgpu.run(harness.ROOT / "test/gpu/programs/graphsessions.py", tmp_path, "--alone", kprof=True, shapes=False,
                     schedule="wait=2,warmup=1,active=2,repeat=2", KPROF_STEP="optimizer", SIMCUPTI_VERSION=130100).ok()
    heads = [harness.cli("report", trace).stdout for trace in run.traces]
    assert "GPU      busy" in heads[0]
    why = "GPU      no GPU work was recorded here: CUPTI 130100 (CUDA 13.1): after its first window"
    assert why in heads[1], heads[1]
    assert "INCOMPLETE" in harness.cli("advise", run.traces[1]).stdout


def test_a_window_has_its_work_though_the_next_one_is_wanted_and_floods_the_gpu(tmp_path):
    """CUPTI keeps a buffer while one of its records is unfinished: here each is for 0.7 s, and the next steps launch thousands. A forced flush
    behind the four seconds may cost the later windows what is unfinished then."""
    program = harness.ROOT / "test" / "gpu" / "programs" / "sick.py"
    run = simgpu.run(program, tmp_path, "well", "launch-bound", "well", kprof=True, schedule="wait=4,warmup=2,active=4,repeat=3",
                     SIMCUPTI_LATE_MS=700, SIMGPU_RULES="gemm=480000", KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops")
    assert len(run.ok().traces) == 3
    trace = facts.load(run.traces[0])
    launched = {gpufacts.args(e)["correlation"] for e in gpufacts.of(trace, "cuda_runtime", "cuda_driver") if "LaunchKernel" in e["name"]}
    ran = {gpufacts.args(e)["correlation"] for e in gpufacts.of(trace, "kernel")}
    assert launched and not launched - ran, (len(launched), len(launched - ran))
