# SPDX-License-Identifier: Apache-2.0
"""kprof advise: for each finding a sick trace and its healthy twin; on the CPU one real training, sick in another way in each window."""
import base64
import json
import re
import statistics
import zlib

import pytest

import advicetraces
import harness
import pagedata
from test_advise import own_line

BY_OTHERS = {"slow-steps", "slower-steps", "too-many-threads"}  # other programs on this machine may cause these
OF_TIME = [name for name in advicetraces.SICKNESSES if not name.startswith("memory-") and name not in ("too-many-threads", "tokens-again", "resident-grows", "open-files-grow")]


def advised(path):
    said = harness.cli("advise", path, "--json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


@pytest.mark.parametrize("name", advicetraces.SICKNESSES)
def test_a_sick_trace_has_this_finding_alone(name, tmp_path):
    trace = advicetraces.SICKNESSES[name]()
    advice = advised(trace.write(tmp_path / "sick.pt.trace.json"))
    assert [finding["id"] for finding in advice["findings"]] == [name], advice
    found = advice["findings"][0]
    assert found["line"] == (None if name in ("too-many-threads", "shared-gpu", "page-faults", "gil-wait", "resident-grows", "open-files-grow") else "train.py:12 sick")
    if name in OF_TIME:
        assert found["step_ms"] * 1000 == pytest.approx(trace.cost, rel=0.2)
        assert found["step_bytes"] == 0
    else:
        assert (found["step_ms"], found["step_bytes"]) == (0, pytest.approx(trace.cost, rel=0.2))


def reduced(tmp_path, *of, **more):
    advice = advised(advicetraces.scores(*of, **more).write(tmp_path / "t.pt.trace.json"))
    return [f for f in advice["findings"] if f["id"] == "exposed-communication"]


@pytest.mark.parametrize("gpu, size, says", [
    (False, "4 B", "the step waits for 20 collectives of at most {} each: 20 at train.py:12 sick"),
    (True, "4 B", "20 collectives of at most {} each run in a step while nothing computes: 20 at train.py:12 sick")])
def test_many_small_collectives_are_counted_at_their_line(gpu, size, says, tmp_path):
    found, = reduced(tmp_path, 20, [], 20, gpu=gpu)
    assert (found["what"], found["line"]) == (says.format(size), "train.py:12 sick")
    assert found["change"].startswith("Start fewer collectives: ") and "torch.stack" in found["change"]
    assert found["step_ms"] == pytest.approx(0.4 if gpu else 0.5, rel=0.1)  # the op that starts one does not compute
    assert reduced(tmp_path, 1, [20], 20, gpu=gpu) == []  # one stacked tensor
    for count, shape in (15, []), (20, [4096]):  # few, or of 16 KiB
        found, = reduced(tmp_path, count, shape, 20, gpu=gpu)
        assert "collectives of at most" not in found["what"] and "fewer collectives" not in found["change"], found


@pytest.mark.parametrize("durs, kept", [((20, 18), 0.45), ((36, 20), 0.47), ((36, 1), None)])
def test_many_small_collectives_are_told_whatever_their_ranks_wait_for(durs, kept, tmp_path):
    """Ranks without a core, each of which waits for the other: the time of the last one counts. Nearly all of it a wait: a note alone."""
    for rank in range(2):
        trace = advicetraces.scores(20, [], max(durs), distributedInfo={"rank": rank, "world_size": 2})
        trace.head["kprof"] = {**advicetraces.CALM, "core_had_us": 1000, "core_waited_us": 3000}
        ranges = [e for e in trace.events if e["name"] == "gloo:all_reduce"]
        for i, e in enumerate(ranges):  # the rank that is last to half of them begins later
            less = (max(durs) - min(durs)) * ((i + rank) % 2)
            e["ts"], e["dur"] = e["ts"] + less, e["dur"] - less
        trace.write(tmp_path / f"h_r{rank}_{rank + 7}.179085702600000000{rank}.pt.trace.json")
    said = harness.cli("advise", "--json", *sorted(tmp_path.iterdir())).stdout.splitlines()
    for advice in map(json.loads, said):
        found = [f for f in advice["findings"] if f["id"] == "exposed-communication"]
        assert len(found) == (kept is not None) and (advice["met"] is None) == bool(found), advice
        if found:
            assert found[0]["what"] == "the step waits for 20 collectives of at most 4 B each: 20 at train.py:12 sick"
            assert found[0]["step_ms"] == pytest.approx(kept, rel=0.15)


def test_what_a_backend_runs_is_at_the_line_that_started_it(tmp_path):
    trace = advicetraces.scores(20, [], 20).write(tmp_path / "t.pt.trace.json")
    said = harness.cli("report", "--by", "line", trace).stdout
    assert re.search(r"^train\.py:12 sick +2\.000 ", said, re.M), said  # 4 steps of 20 times 5 and 20 us
    assert "lines have what gloo:... runs for them on its own threads" in said


@pytest.mark.parametrize("threads, said", [
    ({"threads": 6}, "6 busy threads compete for 4 cores"), ({"threads": 2, "omp_num_threads": "16"}, None),
    ({"threads": 6, "omp_num_threads": "16"}, "OMP_NUM_THREADS=16 on 4 cores (6 busy threads)"),
    ({"threads": 4, "local_world_size": "2"}, "4 busy threads of each of 2 ranks compete for 4 cores"), ({"threads": 4}, None),
    ({"threads": 6, "omp_num_threads": "2", "local_world_size": "2"}, None)])
def test_threads_are_counted_against_cores_and_ranks(threads, said, tmp_path):
    findings = advised(advicetraces.on_cpu(**threads).write(tmp_path / "t.pt.trace.json"))["findings"]
    assert [said in finding["what"] for finding in findings] == ([True] if said else [])
    if said:
        wanted = 4 // int(threads.get("local_world_size", 1))
        calls = "" if "omp_num_threads" in threads else "where .* itself "
        assert re.search(rf"OMP_NUM_THREADS={wanted}, or {calls}torch\.set_num_threads\({wanted}\)", findings[0]["change"])


@pytest.mark.parametrize("dur, number, why", [(20, 1, "at most 0.020 ms. One thread"), (40_000, 2, "at least 40.000 ms")])
def test_threads_that_wait_for_one_another_have_a_cost_and_their_ops_say_how_many_to_have(dur, number, why, tmp_path):
    """One call of four lasts ten times as long in each fifth step."""
    trace, at = advicetraces.Trace(kprof={"cores": 2, "busy_threads": 17, "python_gc": "1"}), 10_000
    for step in range(20):
        lengths = [dur * (10 if i == 1 and step % 5 == 2 else 1) for i in range(4)]
        trace.add("user_annotation", f"ProfilerStep#{step}", 1, at, sum(lengths))
        for length in lengths:
            trace.add("cpu_op", "aten::linear", 1, at, length, **{"Call stack": advicetraces.WELL})
            at += length
    found = next(f for f in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"] if f["id"] == "too-many-threads")
    assert found["step_ms"] == pytest.approx(9 * dur / 5000) and found["share"] == pytest.approx(9 / 29) and found["severity"] == "critical", found
    assert found["what"].startswith("17 busy threads compete for 2 cores") and found["what"].endswith("that costs at least")
    assert found["change"].startswith("OMP_NUM_THREADS is not set, ") and f": torch.set_num_threads({number})" in found["change"] and why in found["change"], found
    said = harness.cli("report", tmp_path / "t.pt.trace.json").stdout
    assert "17 busy threads: " in said and "torch.set_num_threads(2), or 1 (`kprof advise`)\n" in said, said


@pytest.mark.parametrize("taken, said, change, severity", [
    ({"minor": 49, "many": 4}, None, None, None), ({"minor": 51, "many": 4}, "51 page faults per step: malloc", "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1", "warning"),
    ({"minor": 210, "many": 4}, "210 page faults per step: malloc", "measure the effect without kprof", "critical"), ({"minor": 500, "many": 0}, None, None, None),
    ({"minor": 210, "many": 4, "malloc_trim_threshold": "-1"}, "210 page faults", "perf record -e page-faults", "critical"),
    ({"minor": 30, "many": 0, "fault_steps_bare": 3, "faults_bare": 260}, "260 page faults per step without recording (30 while recording): malloc", "MALLOC_MMAP_MAX_=0", "critical"),
    ({"minor": 15, "many": 0, "fault_steps_bare": 2, "faults_bare": 260}, None, None, None),
    ({"minor": 30, "many": 0, "major": 3}, "3 page faults per step read from a disk", "Memory is short", "critical")])
def test_page_faults_are_told_with_what_they_cost(taken, said, change, severity, tmp_path):
    """A step lasts 1 ms. One step of many takes memory that it keeps: that is no finding."""
    trace = advicetraces.faulting(cost=0, **taken).write(tmp_path / "t.pt.trace.json")
    findings = advised(trace)["findings"]
    assert [(said in f["what"], change in f["change"], f["severity"], f["steps"]) for f in findings] == ([(True, True, severity, 4)] if said else [])
    report = json.loads(harness.cli("report", trace, "--json").stdout)
    assert (report["page_faults_a_step"], report["disk_faults_a_step"]) == (taken["minor"], taken.get("major", 0))
    assert (" page faults per step, about " in harness.cli("report", trace).stdout) == (taken["minor"] >= 50 or "faults_bare" in taken and taken["fault_steps_bare"] >= 3 or "major" in taken)
    faults = [line for line in harness.cli("report", trace).stdout.splitlines() if line.startswith("faults ")]
    assert [line.endswith(": `kprof advise`") for line in faults] == [bool(said)] * len(faults)  # which has something to say


@pytest.mark.parametrize("made, told", [(210, ["optimizer-unfused"]), (70, ["optimizer-unfused", "page-faults"])])
def test_page_faults_of_an_update_are_told_with_the_optimizer(made, told, tmp_path):
    """New tensors take longer than those that are updated in place by what the page faults cost, or no longer."""
    trace = advicetraces.faulting(cost=0, minor=100, many=4)
    for number in range(advicetraces.STEPS):
        base, dur = 10000 + 1000 * number, 40
        model, = [e for e in trace.events if e["name"].startswith("aten::") and e["ts"] == base]
        model["dur"] = 500
        trace.add("user_annotation", "Optimizer.step#Adam.step", 1, base + 510, 480)
        at = base + 510
        for op, us in ("aten::mul_", dur), ("aten::lerp_", dur), ("aten::sqrt", made), ("aten::addcdiv_", dur):
            trace.add("cpu_op", op, 1, at, us, **{"Call stack": advicetraces.SICK})
            at += us
    findings = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
    assert [f["id"] for f in findings] == told, findings
    assert ("The new tensors of the update take most of the 100 page faults per step." in findings[0]["change"]) == (len(told) == 1), findings[0]


@pytest.mark.parametrize("name, severity", [("no-op-runs", "critical"), ("low-occupancy", "critical"), ("launch-blocking", "critical"), ("memory-grows", "critical"),
                                             ("gpu-idle", "warning"), ("slow-steps", "warning"), ("data-loading", "warning"), ("memory-near-peak", "warning")])
def test_a_fifth_of_half_of_the_steps_is_critical_however_few_they_are(name, severity, tmp_path):
    found, = advised(advicetraces.SICKNESSES[name]().write(tmp_path / "t.pt.trace.json"))["findings"]
    assert found["severity"] == severity, found


@pytest.mark.parametrize("size, severity", [(4095, None), (4096, "warning"), (65535, "warning"), (65536, "critical")])
def test_memory_that_grows_is_told_from_4_kb_a_step(size, severity, tmp_path):
    """As on the host's heap: docs/decisions/114."""
    found = advised(advicetraces.keeps(False, size).write(tmp_path / "t.pt.trace.json"))["findings"]
    assert [(finding["id"], finding["severity"]) for finding in found] == ([("memory-grows", severity)] if severity else []), found
    assert not severity or found[0]["line"] == "train.py:12 sick", found


@pytest.mark.parametrize("kept, said", [(lambda step: step % 10 == 3, "each 10th step leaves "), (lambda step: step % 10 == 3 or step == 70, "some steps leave "),
                                        (lambda step: step < 30, None), (lambda step: step in (5, 20, 40, 60, 75), None)])
def test_memory_that_grows_in_some_steps_is_a_warning(kept, said, tmp_path):
    """A cache that fills, and five steps of 80, are no growth. What the steps leave is their mean."""
    steps = sum(kept(step) for step in range(79))
    path = advicetraces.keeps(False, steps=80, kept=kept).write(tmp_path / "t.pt.trace.json")
    found = advised(path)["findings"]
    told = [("memory-grows", "warning", f"{said}memory allocated, per step on average", pytest.approx((steps << 20) / 79, abs=1), steps)]
    assert [(f["id"], f["severity"], f["what"], f["step_bytes"], f["steps"]) for f in found] == (told if said else []), found
    assert ("Nothing grows" in harness.cli("memory", path).stdout) == (not said)
    assert harness.cli("advise", path).stdout.startswith("verdict  " + (said or ""))


def test_state_of_new_parameters_is_told_with_the_optimizer(tmp_path):
    trace = advicetraces.keeps(False)
    for number in range(6):
        trace.add("user_annotation", "Optimizer.step#Adam.step", 1, 10000 + 1000 * number, 995)
    change, = [finding["change"] for finding in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"] if finding["id"] == "memory-grows"]
    assert "optimizer.param_groups" in change and "lru_cache" not in change, change


def test_each_line_that_grows_is_told_the_largest_first(tmp_path):
    """Not the one that keeps the most, once."""
    trace = advicetraces.keeps(False, 1 << 20)
    for number in range(6):
        base = 10000 + 1000 * number
        for at, line, size in ((200, "train.py(30): history", 3 << 20), (400, "train.py(40): table", 64 << 20 if number == 1 else 0)):
            trace.add("cpu_op", "aten::clone", 1, base + at, 100, **{"Call stack": line})
            trace.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": base + at + 50,
                                 "args": {"Addr": (base << 20) + at, "Bytes": size, "Device Id": -1, "Device Type": 0, "Total Allocated": 0, "Total Reserved": 0}})
    found, = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
    assert found["what"] == "each step leaves memory allocated: 3.00 MiB at train.py:30 history, 1.00 MiB at train.py:12 sick", found


@pytest.mark.parametrize("steps, told", [(3, []), (4, ["memory-grows"])])
def test_a_window_of_four_steps_tells_memory_that_grows(steps, told, tmp_path):
    advice = advised(advicetraces.keeps(False, steps=steps).write(tmp_path / "t.pt.trace.json"))
    assert [finding["id"] for finding in advice["findings"]] == told


def test_a_line_that_detaches_is_not_told_to(tmp_path):
    def change(line, engine=None):
        trace = advicetraces.keeps(False)
        if engine:
            trace.add("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1, 10099, 8, **{"Call stack": line})
        trace.add("cpu_op", "aten::detach", 1, 10100, 5, **{"Call stack": line})
        found, = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
        return found["change"]
    assert change(advicetraces.SICK).startswith("That line already detaches, ")
    for others in change(advicetraces.WELL), change(advicetraces.SICK, engine=True):
        assert others.startswith("Do not keep a step's graph or tensors: ")


@pytest.mark.parametrize("forward, told", [(advicetraces.SICK, "Do not keep a step's graph or tensors: "), (advicetraces.WELL, "That line computes without gradients: a cache, "),
                                           (None, "Do not keep a step's graph or tensors: ")])
def test_memory_of_a_line_without_gradients_may_be_a_cache(forward, told, tmp_path):
    """Backward goes through the line, through another alone, or is not recorded."""
    trace = advicetraces.keeps(False)
    if forward:
        trace.add("cpu_op", "aten::mul", 1, 10991, 2, **{"Call stack": forward, "Fwd thread id": 0, "Sequence number": 7})
        trace.add("cpu_op", "autograd::engine::evaluate_function: MulBackward0", 1, 10994, 4, **{"Fwd thread id": 1, "Sequence number": 7})
        trace.add("cpu_op", "MulBackward0", 1, 10995, 2, **{"Fwd thread id": 1, "Sequence number": 7})
    found, = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
    assert found["change"].startswith(told) and "functools.lru_cache() a maxsize" in found["change"] and "A tensor as a key is a new key" in found["change"], found


@pytest.mark.parametrize("kind, told", [("MultiProcessing", True), ("SingleProcess", False)])
def test_batches_that_stay_may_be_kept_by_views(kind, told, tmp_path):
    """One picture of a batch keeps it all; a worker's batch lies in shared memory, and has a file."""
    trace = advicetraces.keeps(False, name=f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__")
    change, = [finding["change"] for finding in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"] if finding["id"] == "memory-grows"]
    assert "a view (images[i], a slice) keeps its whole batch, so keep images[i].clone()" in change
    assert ("each also keeps a file open" in change) == told and "lru_cache" not in change


XMMA = "sm80_xmma_gemm_f32f32_{}_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_{}_aligna4_alignc4_execute_kernel__5x_cublas"


@pytest.mark.parametrize("kernel, told", [(XMMA.format("f32f32_f32", "ffma"), ["tensor-cores-unused"]), (XMMA.format("tf32f32_f32", "tensor16x8x8"), ["mixed-precision"]),
                                          ("cutlass_80_simt_sgemm_128x128_8x5_nn_align1", ["tensor-cores-unused"])])
def test_kernels_of_float32_units_use_no_tensor_cores(kernel, told, tmp_path):
    """cuBLAS of CUDA 12 on an H100: torch.mm of float32, without and with TF32."""
    trace = advicetraces.with_head(lambda trace, base: advicetraces.usual(trace, base, 1000, name=kernel))
    advice = advised(trace.write(tmp_path / "t.pt.trace.json"))
    assert ([finding["id"] for finding in advice["findings"]], advice["gpu"]["tensor_cores"]) == (told, pytest.approx(int("tf32" in kernel)))


@pytest.mark.parametrize("dur, waited, cost, share", [(600, 0, 600, 0.6), (600, 500, 300, 0.6), (900, 900, 90, 0.9), (300, 500, None, None)])
def test_time_without_an_op_is_told_without_its_waits_for_a_core(dur, waited, cost, share, tmp_path):
    """The thread never sleeps: each part of a step has the waits by its length."""
    trace = advicetraces.rests(dur, core_had_us=4 * (1000 - waited), core_waited_us=4 * waited)
    findings = [finding for finding in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"] if finding["id"] == "no-op-runs"]
    assert [(finding["step_ms"], finding["share"]) for finding in findings] == ([] if cost is None else [(pytest.approx(cost / 1000), pytest.approx(share))])
    assert all("of it before" not in finding["what"] for finding in findings), findings


@pytest.mark.parametrize("count, dur, told", [(4, 800, ["no-op-runs"]), (2, 2000, ["no-op-runs"]), (4, 500, []), (4, 150, [])])
def test_gaps_before_ops_of_one_line_are_told_together(count, dur, told, tmp_path):
    """As a mask that each layer makes: 5 % of a step, in gaps of 0.5 ms or more."""
    trace = advicetraces.gaps(count, dur)
    findings = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
    assert [finding["id"] for finding in findings] == told, findings
    for finding in findings:
        assert finding["step_ms"] * 1000 == pytest.approx(trace.cost, rel=0.05) and finding["line"] == "train.py:12 sick", finding
        assert f"in {count} gaps per step before operators of one line" in finding["what"], finding


@pytest.mark.parametrize("ahead, told", [(8, ["input-in-step"]), (500, [])])
def test_what_the_cpu_computes_and_copies_to_the_gpu_is_input(ahead, told, tmp_path):
    advice = advised(advicetraces.with_head(advicetraces.resizes(200, ahead)).write(tmp_path / "t.pt.trace.json"))
    assert [finding["id"] for finding in advice["findings"]] == told, advice
    for finding in advice["findings"]:
        assert (finding["where"], finding["line"]) == ("aten::upsample_bilinear2d", "train.py:12 sick")
        assert finding["step_ms"] == pytest.approx(0.18, rel=0.1)  # a kernel runs for the first of it


@pytest.mark.parametrize("is_sick", [True, False])
def test_a_call_that_frees_memory_of_the_gpu_waits_for_it(is_sick, tmp_path):
    """As torch.cuda.empty_cache(): the gap is the allocator's, not that of the wait at the end of the step before."""
    advice = advised(advicetraces.with_head(advicetraces.frees(200, is_sick)).write(tmp_path / "t.pt.trace.json"))
    assert [finding["id"] for finding in advice["findings"]] == ["device-malloc"] * is_sick, advice
    assert all(finding["line"] == "train.py:12 sick" for finding in advice["findings"])


def test_a_wait_in_no_op_is_told_by_the_op_before(tmp_path):
    def waits(trace, at, dur):
        trace.add("cuda_runtime", "cudaDeviceSynchronize", 1, at - dur + 2, dur + 2)
    path = advicetraces.with_head(advicetraces.stalled(waits, 200)).write(tmp_path / "t.pt.trace.json")
    finding, = advised(path)["findings"]
    assert (finding["id"], finding["where"], finding["line"], finding["after"]) == ("implicit-sync", "cudaDeviceSynchronize", None, "train.py:99 well")
    said = harness.cli("advise", path).stdout
    assert "line    after train.py:99 well" in said and "torch.cuda.synchronize(), which is meant for timing" in said


def test_memory_that_grows_is_told_before_what_costs_time(tmp_path):
    trace = advicetraces.keeps(False)
    trace.step, cuts = 1000, [e for e in trace.events if e["name"] == "aten::cat"]
    for event in cuts:
        event["dur"] = 500  # half of each step no op runs
    findings = advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]
    assert [finding["id"] for finding in findings] == ["memory-grows", "no-op-runs"]


def test_steps_that_are_slow_by_too_many_threads_are_told_once(tmp_path):
    """Two of twenty steps last 60 times as long, by the same op as in the others."""
    def slow(**kprof):
        trace, base = advicetraces.Trace(kprof=advicetraces.CALM | kprof), 10000
        for number in range(20):
            length = 60000 if number in (9, 15) else 1000
            trace.add("user_annotation", f"ProfilerStep#{number + 5}", 1, base, length)
            trace.add("cpu_op", "aten::mm", 1, base, length - 10, **{"Call stack": advicetraces.SICK})
            base += length
        del trace.head["record_shapes"]
        return [finding["id"] for finding in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]]

    assert slow() == ["slow-steps"] and slow(busy_threads=16) == ["too-many-threads"]


def in_page(page, pattern):
    """What a pattern finds in the blocks of a page of kprof html."""
    found = []
    for block in re.findall(r"[A-Za-z0-9+/=]{100,}", page.read_text()):
        try:
            head = zlib.decompressobj().decompress(base64.b64decode(block))
        except (ValueError, zlib.error):
            continue  # letters, but no such block
        found += re.findall(pattern, head)
    return [name.decode() for name in found]


def findings_in_page(page):
    return in_page(page, rb'"id":"([^"]*)","(?:about|what)"')


@pytest.mark.parametrize("name", advicetraces.SICKNESSES)
def test_the_page_has_the_same_finding(name, tmp_path):
    path = advicetraces.SICKNESSES[name]().write(tmp_path / "sick.pt.trace.json")
    said = harness.cli("html", path, "-o", tmp_path / "page.html")
    assert said.returncode == 0, said.stderr
    assert findings_in_page(tmp_path / "page.html") == [name]


def test_the_page_and_the_terminal_have_lines_and_notes(tmp_path):
    path = evaluating(tmp_path / "saves.pt.trace.json", saves=200)
    advice = advised(path)
    finding, = advice["findings"]
    between = f"between {finding['after']} and {finding['line']}" if finding["after"] else finding["line"]
    assert finding["is_gap"] and between == "between train.py:21 validate and train.py:30 main" and advice["evaluated"]
    assert harness.cli("html", path, "-o", tmp_path / "page.html").returncode == 0
    assert in_page(tmp_path / "page.html", rb'"line":"([^"]*)","gap":true') == [between]
    assert in_page(tmp_path / "page.html", rb'"notes":(\[[^]]*\])') == [json.dumps([advice["evaluated"], advice["most"]], separators=(",", ":"))]
    findings = json.loads(harness.cli("view", path, "--json").stdout)["tabs"][0]
    shown = " ".join(" ".join(row["name"].split()) for row in findings["rows"])
    assert f"before {finding['where']} " in shown and f"line {between}" in shown and f"NOTE {advice['evaluated']}" in shown and shown.endswith(f"NOTE {advice['most']}")


@pytest.mark.parametrize("name", advicetraces.TWINS)
def test_its_twin_is_healthy(name, tmp_path):
    advice = advised(advicetraces.TWINS[name]().write(tmp_path / "twin.pt.trace.json"))
    assert (advice["verdict"], advice["findings"], advice["missing"]) == ("healthy", [], None), advice


@pytest.mark.parametrize("twin, head, flags", [("pageable-copies", {"record_shapes": 0}, ["--record-shapes"]),
                                               ("pageable-copies", {"profile_memory": 0}, ["--profile-memory"]),
                                               ("too-many-threads", {"profile_memory": 0}, ["--profile-memory"]),
                                               ("too-many-threads", {"record_shapes": 0}, ["--record-shapes"]),
                                               ("pageable-copies", {"kprof": {}}, ["--python-gc"]),
                                               ("too-many-threads", {"with_stack": 0, "kprof": {}}, ["--python-gc", "--with-stack"])])
def test_what_was_not_recorded_is_told_with_its_setting_and_not_called_healthy(twin, head, flags, tmp_path):
    trace = advicetraces.TWINS[twin]()
    trace.head.update(head)
    advice = advised(trace.write(tmp_path / "some.pt.trace.json"))
    assert (advice["verdict"], advice["findings"]) == ("healthy", [])  # the word that the text has
    assert re.findall(r"--[a-z-]+", " ".join(advice["unjudged"])) == re.findall(r"--[a-z-]+", advice["missing"]) == flags
    said = harness.cli("advise", tmp_path / "some.pt.trace.json").stdout.splitlines()
    assert said[0].startswith("verdict  healthy: ") and said[-1].startswith("Not recorded, ") and not any("INCOMPLETE" in line for line in said)
    assert re.findall(r"--[a-z-]+", said[-1]) == flags


def test_what_was_not_recorded_is_told_beside_findings(tmp_path):
    trace = advicetraces.SICKNESSES["pageable-copies"]()
    trace.head["profile_memory"] = 0
    said = harness.cli("advise", trace.write(tmp_path / "some.pt.trace.json")).stdout
    assert said.endswith(": memory (kprof run --profile-memory)\n") and "INCOMPLETE" not in said


def test_every_finding_has_a_pair_and_is_in_the_manual():
    """Ids as the sources of kprof advise have them: a new finding fails here until a sick trace and a healthy twin exist."""
    sources = "".join(path.read_text() for path in (harness.ROOT / "export/answers/advise").rglob("*.[ch]"))
    found = set(re.findall(r'(?:\.id = |\{(?=[^\n]{0,40}", ")|[,\d]\s+|define KP_FINDING_\w+ )"([a-z]+(?:-[a-z]+)+|recompilation|dependency|float64)"', sources))
    of_ranks = {"late-rank"}  # the traces of all ranks tell it: test_ranks.py
    assert len(found) >= 30 and found - of_ranks == set(advicetraces.SICKNESSES) == set(advicetraces.TWINS) and of_ranks < found
    manual = (harness.ROOT / "docs/kprof.1.scd").read_text()
    assert [name for name in found if f"*{name}*" not in manual] == []


def line(text, function, script="advice_cpu.py"):
    return own_line(script, text, function)


def no_core_ms(trace):
    """Of each step, which the program's own clock counts."""
    return {row["step"]: row["no_core_ms"] for row in json.loads(harness.cli("report", "--by", "step", "--json", trace).stdout)["rows"]}


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Of each sickness: what it cost in each step and how long that was, milliseconds by the program's own clock; and what is advised."""
    run = harness.run_kprof("advice_cpu.py", tmp_path_factory.mktemp("cpu"), shapes=False, OMP_NUM_THREADS=1, KPROF_WITH_STACK=1,
                            MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_=-1, KPROF_PROFILE_MEMORY=1, KPROF_PYTHON_GC=1,
                            schedule="skip_first=4,wait=1,warmup=1,active=10,repeat=7").ok()
    spent = json.loads(run.out)
    assert len(run.traces) == len(spent)
    return {sickness: (*own, advised(trace) | {"no_core_ms": no_core_ms(trace)}) for (sickness, own), trace in zip(spent.items(), run.traces)}


def found_in(windows, sickness, name, *also):
    cost, _, advice = windows[sickness]
    others = {finding["id"] for finding in advice["findings"]} - {name, *also} - BY_OTHERS
    assert advice["steps"] == 10 and not others, advice
    return cost, *[finding for finding in advice["findings"] if finding["id"] == name]


def test_the_healthy_window_has_no_finding(windows):
    found_in(windows, "healthy", None)


@pytest.mark.parametrize("sickness, name, where",
                         [("input", "input-in-step", line("def load_batch", "def load_batch", "advice_windows.py")),
                          ("compiling", "recompilation", line("shifted(torch.ones", "compiled", "advice_windows.py")),
                          ("collecting", "python-gc", line("gc.collect()", "sick")),
                          ("outlier", "slow-steps", line("        (batch.T @ batch)", "check"))])
def test_a_window_has_its_sickness_with_line_and_cost(windows, sickness, name, where):
    cost, finding = found_in(windows, sickness, name)
    of_def = re.sub(r":\d+ (def )?", r":\\d+ def ", where)
    assert finding["line"] == where or re.fullmatch(of_def, finding["line"])  # the ops of the line, or the function between them
    waited = sum(windows[sickness][2]["no_core_ms"].values()) / 10 if sickness == "outlier" else 0  # no step is slow by that
    assert 0.8 * statistics.mean(cost) - waited < finding["step_ms"] < 1.2 * statistics.mean(cost)


def test_steps_that_sleep_longer_and_longer_have_one_finding(windows):
    """The sleep, with what all of it costs, and that it grows: steps that get slower for it are not told again."""
    cost, finding = found_in(windows, "drift", "sleeps-in-step")
    assert finding["step_ms"] == pytest.approx(statistics.mean(cost), rel=0.2) and finding["what"] == "the step sleeps, longer and longer", finding


def test_memory_that_each_step_leaves_has_its_line(windows):
    _, finding = found_in(windows, "growing", "memory-grows")
    assert finding["step_bytes"] == 2 * 128 * 512 * 4  # what torch.cat makes of two batches
    assert (finding["where"], finding["line"]) == ("aten::cat", line("kept.append", "grown"))


def of_lengths(path, lengths):
    """What is said of a training whose steps last so many milliseconds, all of it in one op."""
    trace = advicetraces.Trace(deviceProperties=[])
    at = 1000
    for number, ms in enumerate(lengths, 3):
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, ms * 1000)
        trace.add("cpu_op", "aten::mm", 1, at, ms * 1000 - 100, **{"Call stack": advicetraces.WELL})
        at += ms * 1000
    return {finding["id"]: finding["what"] for finding in advised(trace.write(path))["findings"]}


def of_compiled(path, second, compiles_us=1_000_000, ops_us=3900, **facts):
    """What is said of 20 steps of 4 ms of compiled code. The second compiles for a second; from it on this region runs."""
    trace = advicetraces.Trace(deviceProperties=[], **({"kprof": {"version": "1", "cores": "2", "busy_threads": "1", "python_gc": "1", **facts}} if facts else {}))
    at = 1000
    for number in range(20):
        more = compiles_us if number == 1 else 0
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, 4000 + more)
        trace.add("cpu_op", "TorchDynamo Cache Lookup", 1, at, 10)
        trace.add("cpu_op", f"Torch-Compiled Region: {second if number else '0/0'}", 1, at + 20 + more, ops_us, **{"Call stack": advicetraces.SICK})
        trace.add("cpu_op", "aten::mm", 1, at + 30 + more, ops_us - 20, **{"Call stack": advicetraces.SICK})
        at += 4000 + more
    return advised(trace.write(path))["findings"]


def test_a_second_compilation_in_the_second_step_is_told_and_a_first_is_not(tmp_path):
    again, = of_compiled(tmp_path / "again.pt.trace.json", "0/1")
    assert again["id"] == "recompilation" and again["what"].startswith("torch.compile compiles again in step 1: 1000.0 ms, "), again
    assert (again["once_step"], again["severity"]) == (1, "warning") and again["once_ms"] == pytest.approx(1000, rel=1e-3)
    assert [finding["id"] for finding in of_compiled(tmp_path / "first.pt.trace.json", "1/0")] == ["slow-steps"]


@pytest.mark.parametrize("is_between, others_us, is_told", [(True, 9000, True), (False, 9000, False), (True, 100, False)])
def test_the_gil_is_told_beside_torch_s_pool(is_between, others_us, is_told, tmp_path):
    """Of 20 ms the thread of the steps sleeps for 8: between ops, at two other ones in each step, or in these. The pool's
    thread has a core as long as itself, and a thread of the program for 9 ms, or hardly at all."""
    steps, at = 10, 1000
    trace = advicetraces.Trace(deviceProperties=[])
    trace.head["kprof"] = {"version": "1", "cores": "4", "busy_threads": "3", "torch_threads": "2", "python_gc": "1", "core_had_us": steps * 12000,
                           "core_waited_us": 0, "core_others_us": steps * (12000 + others_us)}
    for step in range(steps):
        trace.add("user_annotation", f"ProfilerStep#{step + 5}", 1, at, 20000)
        for i in range(8):
            asleep = 4000 if i in (step % 8, (step + 3) % 8) else 0
            at += asleep if is_between else 0
            trace.add("cpu_op", "aten::mm", 1, at, 1500 + (0 if is_between else asleep), **{"Call stack": advicetraces.WELL})
            at += 1500 + (0 if is_between else asleep)
    found = {finding["id"]: finding for finding in advised(trace.write(tmp_path / "a.pt.trace.json"))["findings"]}
    assert ("gil-wait" in found) == is_told, found
    assert not is_told or (found["gil-wait"]["step_ms"], found["gil-wait"]["severity"]) == (8, "critical"), found


@pytest.mark.parametrize("waits, is_machine", [([100 * i for i in range(12)], True), ([550] * 12, False)])
def test_a_machine_that_gets_busier_makes_no_program_slower(waits, is_machine, tmp_path):
    """The same op of each step takes 20 us more than in the step before, beside a wait for a core that grows more, or does not grow."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    trace.head["kprof"] = {"version": "1", "cores": "2", "busy_threads": "1", "python_gc": "1", "core_had_us": sum(1000 + 20 * i for i in range(12)),
                           "core_waited_us": sum(waits), "core_steps": ",".join(f"{i + 5}:{us}" for i, us in enumerate(waits) if us)}
    for i, wait in enumerate(waits):
        trace.add("user_annotation", f"ProfilerStep#{i + 5}", 1, at, 1000 + 20 * i + wait)
        trace.add("cpu_op", "aten::mm", 1, at, 990 + 20 * i + wait, **{"Call stack": advicetraces.SICK})
        at += 1000 + 20 * i + wait
    advice = advised(trace.write(tmp_path / "a.pt.trace.json"))
    assert [finding["id"] for finding in advice["findings"]] == ([] if is_machine else ["slower-steps"]), advice["findings"]
    said = "The machine got busier: a step waited 150 us for a core in the first third of these steps, and 950 us in the last."
    assert (said in advice["crowded"]) == is_machine, advice["crowded"]


@pytest.mark.parametrize("grows", [False, True])
def test_a_list_of_waits_that_ends_early_makes_no_step_slower(grows, tmp_path):
    """Each step waits longer for a core than the one before. The list ends in the middle, as older versions left it of a killed process; the window's sum has the rest."""
    trace, at, waits, works = advicetraces.Trace(deviceProperties=[]), 1000, [2000 * i for i in range(60)], [50_000 + 2000 * i * grows for i in range(60)]
    trace.head["kprof"] = {"version": "1", "cores": "2", "busy_threads": "1", "python_gc": "1", "complete": False, "core_had_us": sum(works), "core_waited_us": sum(waits),
                           "core_steps": ",".join(f"{i + 1}:{us}" for i, us in enumerate(waits[:30]) if us)}
    for i, (wait, work) in enumerate(zip(waits, works)):
        trace.add("user_annotation", f"ProfilerStep#{i + 1}", 1, at, work + wait)
        for part in range(5):  # as many ops, of one size, but for those that grow
            trace.add("cpu_op", "aten::mm", 1, at + part * 10_000, 9990, **{"Call stack": advicetraces.SICK})
        trace.add("cpu_op", "aten::cat", 1, at + 50_000, work + wait - 50_000, **{"Call stack": advicetraces.SICK})
        at += work + wait
    found = {finding["id"]: finding for finding in advised(trace.write(tmp_path / "a.pt.trace.json"))["findings"]}
    assert ("slower-steps" in found) == grows, found
    assert not grows or 40 < found["slower-steps"]["step_ms"] < 75, found  # it is 59 ms


@pytest.mark.parametrize("compiles_us, is_first", [(1_000_000, True), (70_000, False)])
def test_a_compiler_that_has_half_of_all_time_comes_before_what_each_step_has(compiles_us, is_first, tmp_path):
    """Each step has 2 of its 4 ms without an op, which is critical. One step compiles: 93 % of all time, or 47 %."""
    found = of_compiled(tmp_path / "a.pt.trace.json", "0/1", compiles_us, 1900)
    order = ["recompilation", "no-op-runs"]
    assert [finding["id"] for finding in found] == (order if is_first else order[::-1]), found
    severity = {finding["id"]: finding["severity"] for finding in found}
    assert severity == {"recompilation": "warning", "no-op-runs": "critical"}


def first_sentence(text):
    return text.partition(". ")[0]


@pytest.mark.parametrize("waited_ms, is_first", [(900, False), (1050, True)])
def test_a_wait_for_a_core_is_the_verdict_unless_one_step_costs_more(waited_ms, is_first, tmp_path):
    """Both are of one job of 1080 ms. The shares are of the steps that do not compile."""
    trace = tmp_path / "a.pt.trace.json"
    again, = of_compiled(trace, "0/1", core_had_us=20_000, core_waited_us=1000 * waited_ms)
    said, advice = harness.cli("advise", trace).stdout.splitlines(), json.loads(harness.cli("advise", "--json", trace).stdout)
    assert again["id"] == "recompilation" and advice["crowded_ms"] == pytest.approx(waited_ms / 20)
    assert (first_sentence(advice["crowded"]) if is_first else again["what"]) in said[0], said
    assert sum(advice["crowded"].partition(". ")[2] in line for line in said) == 1, said
    assert said[1].startswith("step     4.00 ms (median of 20; the shares leave out 1 that takes 93 % of all time): operators 97."), said[1]


def test_the_report_leaves_out_the_same_steps_as_the_advice(tmp_path):
    """One step of 20 has backward for a second: the parts are those of the others, and all views have them so."""
    trace, at = advicetraces.Trace(), 1000
    for number in range(20):
        more = 1_000_000 if number == 9 else 0
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, 4000 + more)
        trace.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, at, 1000 + more)
        trace.add("user_annotation", "Optimizer.step#SGD.step", 1, at + 1000 + more, 3000)
        at += 4000 + more
    trace = trace.write(tmp_path / "a.pt.trace.json")
    assert "; the shares leave out 1 that takes 93 % of all time): " in harness.cli("advise", trace).stdout
    parts = "backward 25.0 %, optimizer 75.0 %, forward and other 0.0 %; without 1 step that takes 93 % of all time"
    assert f"parts    [bbbbbooooooooooooooo] {parts}\n" in harness.cli("report", trace).stdout
    assert harness.cli("html", "-o", tmp_path / "a.html", trace).returncode == 0
    assert next(pagedata.traces(tmp_path / "a.html"))[0]["run"]["parts"] == parts
    assert json.loads(harness.cli("report", "--json", trace).stdout)["parts_ms_a_step"]["backward"] == pytest.approx(51, rel=1e-3)  # of all


def test_a_hook_that_is_added_again_is_told_with_both_numbers_and_larger_inputs_are_a_note(tmp_path):
    sick, healthy = (advised(advicetraces.hooked(is_added).write(tmp_path / f"{is_added}.pt.trace.json")) for is_added in (True, False))
    found, = sick["findings"]
    assert found["id"] == "slower-steps" and "as aten::std runs 2 times a step at first and 11 at the end, at " in found["what"], found
    assert found["step_ms"] == pytest.approx(0.55) and "call its remove()" in found["change"] and "grown" not in sick, found
    assert healthy["findings"] == [] and "as if their inputs grow" in healthy["grown"], healthy


def test_steps_that_differ_by_more_than_they_grow_are_no_drift(tmp_path):
    """As on a machine that others use: the growth has an order, but is less than steps beside each other differ."""
    told = of_lengths(tmp_path / "grows.pt.trace.json", [100 + 5 * i for i in range(20)])
    assert "(steps 22, 21, 20, 19, 18, longest first, and 14 more)" in told["slower-steps"], told
    assert "slower-steps" not in of_lengths(tmp_path / "noise.pt.trace.json", [100 + 2 * i + 60 * (i % 2) for i in range(20)])


def test_slow_steps_are_told_by_their_numbers(tmp_path):
    told = of_lengths(tmp_path / "slow.pt.trace.json", [250 if i in (7, 13) else 100 + i % 3 for i in range(20)])
    assert "(steps 10, 16)" in told["slow-steps"] and "slower-steps" not in told, told
    busy = [100 + 37 * i % 101 for i in range(20)]  # each step lasts something else: none is an outlier
    assert of_lengths(tmp_path / "busy.pt.trace.json", busy).keys().isdisjoint({"slow-steps", "slower-steps"})


def test_one_slow_step_is_told_by_its_number_and_noise_is_not(tmp_path):
    told = of_lengths(tmp_path / "one.pt.trace.json", [84 if i == 14 else 12 + i % 2 for i in range(20)])
    assert re.match(r"step 17 lasts 71\.0 ms longer .* is ops: .*, but slower$", told["slow-steps"]), told
    beside = of_lengths(tmp_path / "beside.pt.trace.json", [{14: 120, 9: 30}.get(i, 12 + i % 2) for i in range(20)])
    assert re.match(r"step 17 lasts 107\.\d ms longer ", beside["slow-steps"]), beside
    short = of_lengths(tmp_path / "short.pt.trace.json", [40 if i == 14 else 12 + i % 2 for i in range(20)])  # as where others take the core
    first = of_lengths(tmp_path / "first.pt.trace.json", [84 if i == 0 else 12 + i % 2 for i in range(20)])
    assert "slow-steps" not in short and "slow-steps" not in first


def with_slow_steps(path, slow, usual=12, steps=20):
    """Steps of an op and its end, of which `slow` has some by number: (ms, op or None for a gap, line) in the middle of them."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    for number in range(3, 3 + steps):
        ms, op, at_line = slow.get(number, (0, None, None))
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, (ms + usual) * 1000)
        trace.add("cpu_op", "aten::mm", 1, at, 5000, **{"Call stack": "train.py(8): main"})
        if op:
            trace.add("cpu_op", op, 1, at + 5000, ms * 1000, **{"Call stack": at_line})
        trace.add("cpu_op", "aten::add", 1, at + (ms + 5) * 1000, (usual - 5) * 1000 - 100, **{"Call stack": "train.py(10): main"})
        at += (ms + usual) * 1000
    return trace.write(path)


def slow_steps_of(path):
    return [finding for finding in advised(path)["findings"] if finding["id"] == "slow-steps"]


def test_each_slow_step_is_told_by_its_own_cause(tmp_path):
    found = slow_steps_of(with_slow_steps(tmp_path / "two.pt.trace.json", {12: (900, "aten::matmul", "train.py(20): check"), 18: (130, None, None)}))
    assert [re.findall(r"\d+\.?\d*", finding["what"].split(":")[0]) for finding in found] == [["12", "900.0"], ["18", "130.0"]] and [finding["length_ms"] for finding in found] == [912, 142]
    assert found[0]["what"].endswith("the extra time of this step is ops") and "outside operators" in found[1]["what"]
    assert [(finding["where"], finding["line"], finding["after"]) for finding in found] == [
        ("aten::matmul", "train.py:20 check", None), ("aten::add", "train.py:10 main", "train.py:8 main")]
    assert [finding["step_ms"] for finding in found] == pytest.approx([900 / 20, 130 / 20])
    assert [finding["once_ms"] for finding in found] == pytest.approx([900, 130])
    assert [finding["once_step"] for finding in found] == [12, 18]
    assert found[1]["what"].endswith("outside operators, most of it before aten::add")
    shown = harness.cli("advise", tmp_path / "two.pt.trace.json").stdout
    assert "most of it before aten::add: 130 ms once, in step 18, " in shown and "130 ms per step" not in shown


def test_slow_steps_of_one_cause_are_told_together_and_beside_others(tmp_path):
    check, log = "train.py(20): check", "train.py(30): log"
    found = slow_steps_of(with_slow_steps(tmp_path / "three.pt.trace.json", {
        7: (300, "aten::matmul", check), 12: (500, "aten::matmul", check), 15: (200, "aten::sort", log)}))
    assert ["(steps 7, 12)" in finding["what"] for finding in found] == [True, False] and found[1]["what"].startswith("step 15 lasts 200.0 ms longer ")
    assert [finding["line"] for finding in found] == ["train.py:20 check", "train.py:30 log"]
    many = {number: (60 + number, f"aten::op{number}", log) for number in range(5, 20, 2)}  # each by another op: a busy machine
    found = slow_steps_of(with_slow_steps(tmp_path / "many.pt.trace.json", many, steps=40))
    assert ["(steps 19, 17, 15, 13, 11, longest first, and 3 more)" in finding["what"] for finding in found] == [True]


LOADERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def evaluating(path, saves=0, gradients=(), usual=1, loads=0, asks=0):
    """Thirty steps of a convolution with a backward; steps 10 and 20 evaluate, five times, and 20 then saves for so many ms. `gradients`: steps whose extra calls
    have gradients, too. Without `usual` each step evaluates. `loads`: ms until the
    workers of an evaluation have begun, and again until they have ended; `asks`: what the training's own loader takes a step."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000

    def op(name, ms, **args):
        nonlocal at
        trace.add("cpu_op", name, 1, at, ms * 1000 - 10, **args)
        at += ms * 1000

    def load(ms):
        nonlocal at
        if ms:
            trace.add("user_annotation", LOADERS, 1, at, ms * 1000 - 10)
            at += ms * 1000
    for number in range(1, 31):
        began = at
        load(asks)
        op("aten::conv2d", 4, **{"Sequence number": number, "Fwd thread id": 0, "Call stack": "train.py(8): main"})
        op("ConvolutionBackward0", 8, **{"Sequence number": number, "Fwd thread id": 1})
        evaluates = number in (10, 20) or not usual
        load(loads * evaluates)
        for _ in range(5 * evaluates):
            op("aten::conv2d", 20, **({"Sequence number": 99, "Fwd thread id": 0} if number in gradients else {}), **{"Call stack": "train.py(20): validate"})
            op("aten::argmax", 1, **{"Call stack": "train.py(21): validate"})
        load(loads * evaluates)
        at += saves * 1000 * (number == 20)
        op("aten::add_", 1, **{"Call stack": "train.py(30): main"})
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, began, at - began)
    return trace.write(path)


def test_an_evaluation_inside_of_the_training_is_no_slow_step_without_pythons_calls_too(tmp_path):
    advice = advised(evaluating(tmp_path / "eval.pt.trace.json"))
    assert advice["findings"] == [] and advice["evaluated"].startswith(
        "2 evaluations during the training take 210 ms, 35.0 % of the time of all steps. These steps are long but not slow: steps 10, 20 hold 5 forward passes without "
        "backward, 105 ms per evaluation, at train.py:20 validate. ")
    assert "kprof run --phases" in advice["evaluated"] and "kprof report --within" in advice["evaluated"]
    said = harness.cli("advise", tmp_path / "eval.pt.trace.json").stdout
    assert "WARNING  " not in said and "note     2 evaluations during" in said
    assert said.startswith("verdict  ") and " (looked at 30 steps: operators, data loading, time without an operator). Evaluations take 7.00 ms per step\n" in said


@pytest.mark.parametrize("asks", [0, 1])
def test_an_evaluation_that_waits_for_its_workers_is_no_fault_of_the_training(asks, tmp_path):
    advice = advised(evaluating(tmp_path / "workers.pt.trace.json", loads=150, asks=asks))
    assert advice["findings"] == [] and advice["parts_ms"]["data_loading"] == pytest.approx(2 * 300 / 30 + asks, rel=0.01)
    assert ", 405 ms per evaluation, at train.py:20 validate, 300 ms of it loading. To time them" in advice["evaluated"]


def test_a_training_that_waits_for_its_loader_is_told_beside_its_evaluation(tmp_path):
    finding, = advised(evaluating(tmp_path / "slow.pt.trace.json", loads=150, asks=5))["findings"]
    assert finding["id"] == "data-loading" and finding["step_ms"] == pytest.approx(5, rel=0.01) and finding["steps"] == 30


def test_what_a_step_does_beside_its_evaluation_is_still_told(tmp_path):
    advice = advised(evaluating(tmp_path / "saves.pt.trace.json", saves=200))
    what = [finding["what"] for finding in advice["findings"]]
    assert len(what) == 1 and re.match("step 20 lasts 200.0 ms longer .* and its evaluation: .* is outside operators", what[0]), what
    assert advice["findings"][0]["step_ms"] == pytest.approx(200 / 30, rel=0.02) and "steps 10, 20 hold 5" in advice["evaluated"]


def test_an_evaluation_stands_before_what_costs_less(tmp_path):
    """Also at the end of a run, from a fifth of all time on."""
    path = evaluating(tmp_path / "saves.pt.trace.json", saves=120)
    finding, = advised(path)["findings"]
    said = harness.cli("advise", path).stdout
    assert finding["severity"] == "warning" and said.index("note     2 evaluations") < said.index("WARNING  ") and said.count("evaluations during") == 1
    (tmp_path / "out").mkdir()
    closing = harness.cli("run", "--advise", "-o", tmp_path / "out", "--", "cp", path, tmp_path / "out").stderr
    assert "\nkprof: 2 evaluations during the training take " in closing


def test_the_head_of_a_report_tells_evaluations_as_the_advice(tmp_path):
    path = evaluating(tmp_path / "t.pt.trace.json")
    told = advised(path)["evaluated"].split(". To time them")[0]
    said = harness.cli("report", path).stdout
    assert f"\n         {told}\n" in said and "to time them" not in said, said
    assert "evaluation" not in harness.cli("report", "--step", "10", path).stdout.split("\n\n")[0]
    assert "evaluation" not in harness.cli("report", evaluating(tmp_path / "trains.pt.trace.json", gradients=(10, 20))).stdout


def test_a_row_of_a_step_says_that_it_holds_an_evaluation(tmp_path):
    path = evaluating(tmp_path / "t.pt.trace.json")
    rows = json.loads(harness.cli("report", "--by", "step", "-n", "0", "--json", path).stdout)["rows"]
    assert [row["step"] for row in rows if row["evaluates"]] == [10, 20] and len(rows) == 30
    lines = [line.split() for line in harness.cli("report", "--by", "step", "-n", "0", path).stdout.splitlines() if line.endswith("  with an evaluation")]
    assert [line[0] for line in lines] == ["10", "20"], lines
    trains = evaluating(tmp_path / "trains.pt.trace.json", gradients=(10, 20))
    assert "with an evaluation" not in harness.cli("report", "--by", "step", "-n", "0", trains).stdout


def test_more_of_the_training_itself_is_no_evaluation(tmp_path):
    advice = advised(evaluating(tmp_path / "trains.pt.trace.json", gradients=(10, 20)))
    assert advice["evaluated"] is None and [finding["id"] for finding in advice["findings"]] == ["slow-steps"]
    assert advised(evaluating(tmp_path / "each.pt.trace.json", usual=0))["evaluated"] is None  # a teacher in each step


SLOWER = "the same number of calls as in the others, but slower"


def one_slow_product(path, usual=None, slow=None, threads=None, drifts=False):
    """Twenty steps of a product of 20 ms. That of step 12 takes 300 ms, or with `drifts` each step more than the one before; shapes as told."""
    head = {"kprof": {"python_gc": "1", **threads}} if threads else {}
    trace, at = advicetraces.Trace(deviceProperties=[], **head), 1000
    for number in range(20):
        ms = 20 + 5 * number if drifts else 300 if number == 12 else 20
        shapes = slow if number == 12 and slow else usual
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, ms * 1000)
        trace.add("cpu_op", "aten::mm", 1, at, ms * 1000 - 100, **({"Input Dims": shapes} if shapes else {}), **{"Call stack": "train.py(8): main"})
        at += ms * 1000
    return advised(trace.write(path))


def test_a_slow_step_of_the_same_ops_of_the_same_shapes_is_a_note(tmp_path):
    small, large = [[64, 64], [64, 64]], [[64, 4096], [4096, 64]]
    same = one_slow_product(tmp_path / "same.pt.trace.json", small)
    assert same["findings"] == [] and same["verdict"] == "healthy"
    waited, = same["waited"]
    assert waited.pop("what") == "step 12 lasts 280.0 ms longer: the same ops and shapes, but slower, most in aten::mm (train.py:8 main)"
    assert waited == {"steps": 1, "longest_step": 12, "most_ms": 280.0, "least_ms": 280.0, "all_ms": 280.0} and same["waited_why"] == "possible cause: a busy core"
    assert "\nnote     step 12 lasts 280.0 ms longer" in harness.cli("advise", tmp_path / "same.pt.trace.json").stdout
    larger = one_slow_product(tmp_path / "larger.pt.trace.json", small, large)
    assert larger["waited"] == [] and [(finding["once_step"], finding["once_ms"], finding["length_ms"], finding["no_core_ms"], finding["what"].split(": ")[-1])
                                        for finding in larger["findings"]] == [(12, 280.0, 300.0, 0, "the extra time of this step is ops")]
    unknown = one_slow_product(tmp_path / "unknown.pt.trace.json")
    assert unknown["waited"] == [] and [finding["what"].split(": ")[-1] for finding in unknown["findings"]] == [
        SLOWER]
    assert "--record-shapes" in unknown["findings"][0]["change"] and "waited for a core" in unknown["findings"][0]["change"]


def two_slower_steps(path, product, engine, zero_grad, shapes=None, usual=20, extra=False, slow=2):
    """Twenty steps of autograd's engine around a product of 6 ms, 1 ms more of its own, and an optimizer that frees for 1 ms; two, or four, of them as told."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    for number in range(usual):
        is_slow = number in (5, 12 if usual > 12 else 2, 14, 17)[:slow]
        mm, own, frees = [1000 * ms for ms in ((product, engine, zero_grad) if is_slow else (6, 1, 1))]
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, mm + own + frees + 200)
        trace.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, at, mm + own, **{"Call stack": "train.py(8): main"})
        trace.add("cpu_op", "aten::mm", 1, at + own, mm - 10, **({"Input Dims": shapes} if shapes else {}), **{"Call stack": "train.py(8): main"})
        trace.add("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 1, at + mm + own, frees)
        if extra and is_slow:
            trace.add("cpu_op", "aten::sort", 1, at + own + 100, mm - 6000)
        at += mm + own + frees + 200
    return advised(trace.write(path))


def test_a_slower_thread_is_so_in_torchs_own_code_too(tmp_path):
    shaped = two_slower_steps(tmp_path / "shaped.pt.trace.json", 11, 3, 4, [[64, 64], [64, 64]])
    assert shaped["findings"] == [] and shaped["waited"][0]["what"].startswith("steps 5, 12 last up to 10.0 ms longer: the same ops and shapes, but slower"), shaped
    unshaped = two_slower_steps(tmp_path / "unshaped.pt.trace.json", 11, 3, 4)
    assert unshaped["findings"] == [] and [waited["what"] for waited in unshaped["waited"]] == [
        "steps 5, 12 last up to 10.0 ms longer: the same ops, but slower, most in aten::mm (train.py:8 main)"]
    assert unshaped["waited_why"] == "possible causes: a busy core, larger inputs (--record-shapes)"


@pytest.mark.parametrize("slow, told", [
    ((6, 11, 1, None, 20, False, 4), "the extra time of these steps is ops"),  # a hook of the program, which runs in the engine
    ((11, 1, 1, [[8, 8]], 20, True), "the extra time of these steps is ops"),  # an op more
    ((66, 1, 1, None, 12), f"the extra time of these steps is ops: {SLOWER}")])  # more than others on the machine cause
def test_slow_steps_that_did_more_or_cost_much_stay_a_finding(tmp_path, slow, told):
    advice = two_slower_steps(tmp_path / "t.pt.trace.json", *slow)
    finding, = [finding for finding in advice["findings"] if finding["id"] == "slow-steps"]
    assert advice["waited"] == [] and finding["what"].endswith(told), advice


def test_steps_that_get_slower_by_too_many_threads_are_told_by_those_alone(tmp_path):
    few, many = {"cores": 4, "busy_threads": 4}, {"cores": 4, "busy_threads": 12}
    assert [f["id"] for f in one_slow_product(tmp_path / "few.pt.trace.json", threads=few, drifts=True)["findings"]] == ["slower-steps"]
    assert [f["id"] for f in one_slow_product(tmp_path / "many.pt.trace.json", threads=many, drifts=True)["findings"]] == ["too-many-threads"]


@pytest.mark.parametrize("calls", [False, True])
def test_a_gap_in_a_slow_step_is_told_with_what_names_its_line(calls, tmp_path):
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    for number in range(3, 23):
        ms = 84 if number == 17 else 12
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, ms * 1000)
        trace.add("cpu_op", "aten::mm", 1, at, 5000, **{"Call stack": "train.py(8): main"})
        if calls:
            trace.add("python_function", "<built-in function sleep>", 1, at + 5000, ms * 1000 - 11_000)
        trace.add("cpu_op", "aten::add", 1, at + ms * 1000 - 5000, 4900, **{"Call stack": "train.py(10): main"})
        at += ms * 1000
    change = {finding["id"]: finding["change"] for finding in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"]}["slow-steps"]
    assert "kprof report --step 17 --by line" in change and ("kprof run --with-stack 1 --schedule 16-18 -- ..." in change) is not calls


def test_gaps_in_several_slow_steps_are_to_be_recorded_in_many_steps(tmp_path):
    """Which steps are slow may be others the next time: three steps around one of them would show nothing."""
    trace, at = advicetraces.Trace(deviceProperties=[]), 1000
    for number in range(3, 43):
        ms = 84 if number in (9, 17, 30) else 12
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, ms * 1000)
        trace.add("cpu_op", "aten::mm", 1, at, 5000, **{"Call stack": "train.py(8): main"})
        trace.add("cpu_op", "aten::add", 1, at + ms * 1000 - 5000, 4900, **{"Call stack": "train.py(10): main"})
        at += ms * 1000
    finding, = [f for f in advised(trace.write(tmp_path / "t.pt.trace.json"))["findings"] if f["id"] == "slow-steps"]
    assert "kprof run --with-stack 1 --schedule 3-42 -- ..., then kprof advise names what ran" in finding["change"]


def collecting(path, pauses, python_gc=True, usual=12, call=None, **kprof):
    """Twenty steps of `usual` ms, of which some by number (3 to 22) have a pause of so many ms in the middle: of the garbage collector, where that is recorded."""
    trace, at = advicetraces.Trace(deviceProperties=[], kprof={**({"python_gc": "1"} if python_gc else {}), **kprof}), 1000
    for number in range(3, 23):
        ms = pauses.get(number, 0)
        trace.add("user_annotation", f"ProfilerStep#{number}", 1, at, (ms + usual) * 1000)
        trace.add("cpu_op", f"aten::op{number % 3}", 1, at, 5000, **{"Call stack": f"train.py({number}): main"})
        if ms and python_gc:
            if call:
                trace.add("python_function", "<built-in function collect>", 1, at + 5050, ms * 1000 - 100, **{"Call stack": call})
            trace.add("python_function", "Python GC", 1, at + 5100, ms * 1000 - 200)
        trace.add("cpu_op", f"aten::end{number % 3}", 1, at + (ms + 5) * 1000, (usual - 5) * 1000 - 100, **{"Call stack": f"train.py({30 + number}): main"})
        at += (ms + usual) * 1000
    return trace.write(path)


def test_a_pause_that_may_be_the_garbage_collector_says_how_to_see_it(tmp_path):
    change, = [finding["change"] for finding in advised(collecting(tmp_path / "off.pt.trace.json", {17: 130}, python_gc=False))["findings"]]
    assert "kprof run --with-stack 1 --python-gc --schedule 16-18 -- ..." in change and "whether Python collected garbage" in change


COLLECTS = "the step waits for Python's garbage collector, most in step"


@pytest.mark.parametrize("pauses, name, said", [
    ({17: 130}, "slow-steps", "the extra time of this step is Python's garbage collector"),
    ({9: 70, 17: 130}, "python-gc", f"{COLLECTS}s 9, 17"),
    ({number: 10 + 130 * (number == 17) for number in range(3, 23)}, "python-gc", f"{COLLECTS} 17")])
def test_collections_of_garbage_are_told_once(pauses, name, said, tmp_path):
    found = advised(collecting(tmp_path / "on.pt.trace.json", pauses))["findings"]
    assert [(finding["id"], finding["what"].split(": ")[-1]) for finding in found] == [(name, said)]
    assert "gc.freeze()" in found[0]["change"] and "Where the program calls gc.collect(): less often" in found[0]["change"] and found[0]["where"] in ("Python GC", "aten::end2")
    assert found[0]["step_ms"] == pytest.approx(sum(pauses.values()) / 20, rel=0.1)


@pytest.mark.parametrize("version", [None, "3.10", "3.12"])
def test_collections_by_the_program_itself_have_its_line(version, tmp_path):
    """Of explicit calls gc.disable() is no cure. Without them nothing says that Python's calls were recorded."""
    head = {"python_version": version} if version else {}
    alone = advised(collecting(tmp_path / "alone.pt.trace.json", {9: 70, 17: 130}, **head))
    assert alone["findings"] and alone["slowed_by"] is None
    advice = advised(collecting(tmp_path / "calls.pt.trace.json", {9: 70, 17: 130}, call="train.py(23): main", **head))
    finding, = advice["findings"]
    assert (finding["where"], finding["line"]) == ("<built-in function collect>", "train.py:23 main")
    assert finding["change"] == "The program calls gc.collect() there. Call it less often, or call gc.freeze() after start-up to make each cheaper."
    assert "recording every Python call" in advice["slowed_by"] and ("Python 3.10 and 3.11" in advice["slowed_by"]) == (version == "3.10")


def reading(between, late=0):
    """Four steps of 10 ms, whose loop reads 50 values of the line SICK, each with `between` ops around it. The last is `late` us late."""
    trace = advicetraces.Trace(deviceProperties=[], step=10000)

    def step(base):
        trace.add("cpu_op", "aten::mm", 1, base, 3000, **{"Call stack": advicetraces.WELL})
        for i in range(50):
            at = base + 3000 + 120 * i + (late if i == 49 else 0)
            for k in range(between):
                trace.add("cpu_op", "aten::select", 1, at + 4 * k, 2, **{"Call stack": advicetraces.SICK})
            trace.add("cpu_op", "aten::item", 1, at + 80, 5, **{"Call stack": advicetraces.SICK})
    return trace.each(step)


def test_reads_are_charged_with_the_loop_around_them(tmp_path):
    found = {finding["id"]: finding for finding in advised(reading(2).write(tmp_path / "loop.pt.trace.json"))["findings"]}["reads-in-step"]
    assert found["step_ms"] == pytest.approx(49 * 0.120 + 0.085, rel=0.01)  # from the first turn's ops on; the last read's loop ends with it
    assert found["what"].startswith("Python reads 50 values per step") and ", at train.py:12 sick (5.885 ms)" in found["what"]
    late = {finding["id"]: finding for finding in advised(reading(2, 900).write(tmp_path / "late.pt.trace.json"))["findings"]}["reads-in-step"]
    assert late["step_ms"] == pytest.approx(49 * 0.120 + 0.9 + 0.085, rel=0.01)  # it waited for a core: the loop is on one line
    far = {finding["id"]: finding for finding in advised(reading(10).write(tmp_path / "far.pt.trace.json"))["findings"]}  # so many ops are work of their own
    assert "reads-in-step" not in far and far["small-ops-in-a-loop"]["step_ms"] == pytest.approx(49 * 0.120 + 0.085, rel=0.01)


def test_a_read_is_not_charged_with_the_python_loop_behind_it(tmp_path):
    """A busy loop follows float(loss), and later eight reads of another line. Then no line is known, and then each read is followed by Python for long."""
    def of(path, busy, apart, stacks, length):
        trace = advicetraces.Trace(deviceProperties=[], step=length)

        def step(base):
            def read(at, line):
                trace.add("cpu_op", "aten::item", 1, base + at, 2, **({"Call stack": line} if stacks else {}))
                trace.add("cpu_op", "aten::_local_scalar_dense", 1, base + at + 1, 1)
            trace.add("cpu_op", "aten::mm", 1, base, 100, **({"Call stack": advicetraces.WELL} if stacks else {}))
            read(100, "train.py(18): main")
            for i in range(8):
                read(102 + busy + apart * i, "train.py(23): main")
        return advised(trace.each(step).write(path))
    for stacks in (True, False):
        advice = of(tmp_path / f"busy{stacks}.pt.trace.json", 90, 3, stacks, 1000)
        found = {finding["id"]: finding for finding in advice["findings"]}
        assert found["reads-in-step"]["step_ms"] == pytest.approx(0.002 + 7 * 0.003 + 0.002, rel=0.01)
        assert "no-op-runs" in found
        advice = of(tmp_path / f"apart{stacks}.pt.trace.json", 400, 200 if stacks else 60, stacks, 3000)
        assert advice["seen"].startswith("9 calls of .item() ") and [finding["id"] for finding in advice["findings"]] == ["no-op-runs"]


def test_reads_that_cost_little_are_seen_and_no_warning(tmp_path):
    trace = advicetraces.Trace(deviceProperties=[], step=50_000)

    def step(base):
        trace.add("cpu_op", "aten::mm", 1, base, 48_000, **{"Call stack": advicetraces.WELL})
        for i in range(40):
            trace.add("cpu_op", "aten::item", 1, base + 48_000 + 10 * i, 5, **{"Call stack": advicetraces.SICK})
    path = trace.each(step).write(tmp_path / "few.pt.trace.json")
    advice = advised(path)
    assert "reads-in-step" not in [finding["id"] for finding in advice["findings"]]
    assert advice["seen"].startswith("40 calls of .item() ") and not any(".item()" in told for told in advice["unjudged"])
    assert "\nMinor: 40 calls of .item() " in harness.cli("advise", path).stdout


def test_a_read_in_one_of_many_steps_is_not_told_as_zeros(tmp_path):
    def seen(every):
        trace, steps = advicetraces.Trace(deviceProperties=[], step=1000), iter(range(20))

        def step(base):
            trace.add("cpu_op", "aten::mm", 1, base, 990, **{"Call stack": advicetraces.WELL})
            if next(steps) % every == 0:
                trace.add("cpu_op", "aten::item", 1, base + 991, 5, **{"Call stack": advicetraces.SICK})
        return advised(trace.each(step, 20).write(tmp_path / "few.pt.trace.json"))["seen"]
    assert seen(1).startswith("1 call of .item() ") and seen(10) is None


def test_reads_that_cost_little_are_told_with_the_lines_that_read(tmp_path):
    trace = advicetraces.Trace(deviceProperties=[], step=50_000)

    def step(base):
        trace.add("cpu_op", "aten::mm", 1, base, 45_000, **{"Call stack": advicetraces.WELL})
        for i, line in enumerate([20] + 6 * [13] + [8, 31]):
            trace.add("cpu_op", "aten::item", 1, base + 45_000 + 20 * i, 5, **{"Call stack": f"train.py({line}): main"})
    seen = advised(trace.each(step).write(tmp_path / "few.pt.trace.json"))["seen"]
    assert seen.startswith("9 calls of .item() ")
    assert re.search(r" [mu]s: 6 at train\.py:13 main, 1 at train\.py:\d+ main, 1 at train\.py:\d+ main, and 1 more line\. On a GPU", seen), seen


def test_time_between_reads_is_told_once_and_lines_stand_around_a_gap(tmp_path):
    def of(path, gap, reads):
        trace = advicetraces.Trace(deviceProperties=[], step=10_000)

        def step(base):
            trace.add("cpu_op", "aten::mm", 1, base, 10_000 - gap, **{"Call stack": "train.py(8): main"})
            for i in range(reads):
                trace.add("cpu_op", "aten::item", 1, base + 10_000 - gap + (i + 1) * 100, 5, **{"Call stack": advicetraces.SICK})
            trace.add("cpu_op", "aten::add", 1, base + 9990, 10, **{"Call stack": "train.py(10): main"})
        return trace.each(step).write(path)
    read = advised(of(tmp_path / "reads.pt.trace.json", 6000, 58))["findings"]
    assert [finding["id"] for finding in read] == ["reads-in-step"]
    gap = harness.cli("advise", of(tmp_path / "gap.pt.trace.json", 6000, 0)).stdout
    assert "  no operator runs" in gap and "where   before aten::add\n" in gap and "line    between train.py:8 main and train.py:10 main\n" in gap


def test_the_line_before_a_gap_is_that_of_the_longest_one(tmp_path):
    """The same op ends a short gap behind one line and then a long one behind another."""
    trace = advicetraces.Trace(deviceProperties=[], step=10_000)

    def step(base):
        for at, dur, number in ((0, 1000, 7), (2000, 1000, 8)):
            trace.add("cpu_op", "aten::mm", 1, base + at, dur, **{"Call stack": f"train.py({number}): main"})
        for at in (1500, 9000):
            trace.add("cpu_op", "aten::view", 1, base + at, 100, **{"Call stack": "train.py(10): main"})
    finding, = advised(trace.each(step).write(tmp_path / "two.pt.trace.json"))["findings"]
    assert finding["id"] == "no-op-runs" and finding["what"].endswith(", 6.5 ms of it before aten::view"), finding
    assert "Make it cheaper" in finding["change"] and "batches" not in finding["change"]
    assert (finding["id"], finding["where"], finding["is_gap"], finding["line"], finding["after"]) == (
        "no-op-runs", "aten::view", True, "train.py:10 main", "train.py:8 main")


def test_many_threads_on_few_cores_come_first(tmp_path):
    head = {"version": "1", "cores": "2", "busy_threads": "16", "python_gc": "1"}
    trace = reading(2)
    trace.head["kprof"] = head
    assert advised(trace.write(tmp_path / "many.pt.trace.json"))["findings"][0]["id"] == "too-many-threads"
    trace.head["kprof"] = {**head, "busy_threads": "4"}
    few = advised(trace.write(tmp_path / "few.pt.trace.json"))["findings"]
    assert few[0]["id"] != "too-many-threads" and few[-1]["id"] == "too-many-threads"


def test_mean_and_median_are_those_of_the_report(tmp_path):
    of_lengths(tmp_path / "one.pt.trace.json", [84 if i == 14 else 12 for i in range(20)])
    trace = tmp_path / "one.pt.trace.json"
    advice = advised(trace)
    report = json.loads(harness.cli("report", "--json", trace).stdout)["steps"]
    assert (advice["step_ms"], advice["step_median_ms"]) == pytest.approx((report["mean_ms"], report["median_ms"]))
    assert "step     12.0 ms (median of 20), shares are of the mean, 15.6 ms: operators" in harness.cli("advise", trace).stdout
