# SPDX-License-Identifier: Apache-2.0
"""kprof advise: sick trainings beside a healthy twin, and files that are none."""
import json
import platform
import re
import statistics
import subprocess

import pytest

import advicetraces
import harness
import viewing

SCHEDULE = "wait=3,warmup=1,active=6,repeat=1"  # steps 4 to 9 of ten


SIMGPU = harness.BUILD / platform.machine() / "simgpu"
SIMULATED = [SIMGPU / name for name in ("libcudart.so.13", "libcupti.so.13")]
WITH_LAYERS = [*SIMULATED, *(SIMGPU / name for name in ("libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9"))]


def advised(path):
    return json.loads(harness.cli("advise", path, "--json").stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Of each kind: the run, and what is advised."""
    found = {}
    for kind in ("healthy", "loading", "waiting"):
        stacks = {"KPROF_WITH_STACK": "ops"} if kind == "waiting" else {}
        run = harness.run_kprof("advice.py", tmp_path_factory.mktemp(kind), kind, schedule=SCHEDULE, shapes=False, OMP_NUM_THREADS=1, **stacks).ok()
        said = harness.cli("advise", run.trace, "--json")
        assert said.returncode == 0, said.stderr
        found[kind] = run, json.loads(said.stdout)
    return found


def test_the_twin_has_no_such_findings(recorded):
    _, advice = recorded["healthy"]
    assert [finding["id"] for finding in advice["findings"] if finding["id"] in ("data-loading", "no-op-runs", "waits-in-step")] == []
    assert advice["steps"] == 6 and "--profile-memory" in (advice["missing"] or advice["unjudged"][0])


@pytest.mark.parametrize("kind, wanted, milliseconds", [("loading", "data-loading", 80), ("waiting", "waits-in-step", 300)])
def test_a_sickness_is_found_with_its_cost(recorded, kind, wanted, milliseconds):
    _, advice = recorded[kind]
    largest = advice["findings"][0]
    assert largest["id"] == wanted
    assert 0.99 * milliseconds <= largest["step_ms"] <= advice["step_ms"]
    twin = recorded["healthy"][1]
    usual = twin["parts_ms"]["data_loading" if kind == "loading" else "idle"]
    assert abs(largest["step_ms"] - usual - milliseconds) <= 0.2 * milliseconds + usual  # the sleep is what the sickness costs
    assert sum(advice["parts_ms"].values()) == pytest.approx(advice["step_ms"], rel=1e-6)


def test_the_line_is_told(recorded):
    largest = recorded["waiting"][1]["findings"][0]
    assert largest["id"] == "waits-in-step"
    assert (largest["line"], largest["after"]) == (own_line("advice.py", "optimizer.step()"), own_line("advice.py", "sum().backward()"))
    assert largest["where"] and "torch/optim/" in largest["frame"]


def own_line(script, text, function="main"):
    """The line of a script that has the text, as a finding names it."""
    lines = (harness.SCRIPTS / script).read_text().splitlines()
    number, = [at for at, line in enumerate(lines, 1) if text in line]
    return f"{script}:{number} {function}"


BUSY_MACHINE = {"python-starved", "launch-bound", "slow-steps", "slower-steps"}  # others on these cores may cause these


def run_on_gpu(libraries, program, folder, *args, **settings):
    if missing := [path.name for path in libraries if not path.exists()]:
        pytest.skip(f"make simgpu builds {', '.join(missing)}")
    run = harness.run_kprof(program, folder, *args, KPROF_WITH_STACK="ops", KPROF_PYTHON_GC=1, KPROF_PROFILE_MEMORY=1,
                            LD_PRELOAD=" ".join(map(str, [harness.LIBRARY, *libraries])), LD_LIBRARY_PATH=SIMGPU, **settings)
    if "not compiled with CUDA" in run.err:
        pytest.skip("this torch has no CUDA")
    return run


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory):
    """Of each sickness, milliseconds by the program's own clock: its cost in each step, each step; and what is advised."""
    run = run_on_gpu(SIMULATED, "advice_gpu.py", tmp_path_factory.mktemp("gpu"), shapes=False,
                     schedule="skip_first=4,wait=1,warmup=1,active=4,repeat=11", SIMGPU_KERNEL_NS=200, SIMGPU_RULES="exp=6000000",
                     SIMGPU_COPY_GBS=0.5)
    spent = json.loads(run.ok().out)
    assert len(run.traces) == len(spent)
    return {sickness: (*own, advised(trace)) for (sickness, own), trace in zip(spent.items(), run.traces)}


def test_a_healthy_gpu_has_no_finding(on_gpu):
    *_, advice = on_gpu["healthy"]
    assert {finding["id"] for finding in advice["findings"]} <= BUSY_MACHINE, advice
    assert advice["gpu"]["busy"] == pytest.approx(advice["parts_ms"]["compute"] / advice["step_ms"], abs=0.02)
    if not advice["findings"]:
        assert [flag for told in advice["unjudged"] for flag in re.findall(r"--[a-z-]+", told)] == ["--record-shapes"]


@pytest.mark.parametrize("kind, wanted, where, line",
                         [("item", "implicit-sync", "aten::item", ("y.item()", "<lambda>")),
                          ("cpu", "implicit-sync", "aten::to", ("y.cpu()", "<lambda>")),
                          ("nonzero", "implicit-sync", "aten::nonzero", (".nonzero()", "<lambda>")),
                          ("printing", "implicit-sync", "aten::item", ('print(f"sum {y}"', "<lambda>")),
                          ("python", "python-starved", "aten::_foreach_add_", ("optimizer.step()", "main")),
                          ("launch", "launch-bound", "aten::add_", ("x.add_(1)", "small")),
                          ("pageable", "pageable-copies", "aten::to", ('batch.to("cuda")', "moved")),
                          ("input", "input-in-step", "aten::roll", ("torch.roll", "load_batch", "advice_windows.py")),
                          ("compiling", "recompilation", None, ("shifted(torch.ones", "compiled", "advice_windows.py")),
                          ("collecting", "python-gc", "aten::_foreach_add_", ("optimizer.step()", "main"))])
def test_a_sick_gpu_step_is_found_with_line_and_cost(on_gpu, kind, wanted, where, line):
    cost, steps, advice = on_gpu[kind]
    also = {"launch": {"kernels-to-fuse", "small-kernels"}, "pageable": {"implicit-sync"}}.get(kind, set())
    assert {finding["id"] for finding in advice["findings"]} - BUSY_MACHINE - also <= {wanted}, advice
    found, = (finding for finding in advice["findings"] if finding["id"] == wanted)
    assert found["line"] == own_line(line[2] if line[2:] else "advice_gpu.py", *line[:2])
    assert where in (None, found["where"])
    expected = {"implicit-sync": statistics.mean(steps) - statistics.mean(on_gpu["healthy"][1]),  # what its steps last longer than healthy ones
                "pageable-copies": 16 * 1.048576 / 0.5}.get(wanted, statistics.mean(cost))  # MB by the GB/s of the simulation
    own = {"implicit-sync": "synchronisation", "python-starved": "python", "launch-bound": "launch"}.get(wanted)
    by_others = sum(advice["idle_ms"][cause] for cause in ("synchronisation", "python", "launch") if cause != own)
    healthy_idle = on_gpu["healthy"][2]["parts_ms"]["idle"] if wanted == "implicit-sync" else 0
    assert 0.8 * (expected - by_others) <= found["step_ms"] <= 1.2 * expected + healthy_idle, (expected, advice)
    assert sum(advice["idle_ms"].values()) == pytest.approx(advice["parts_ms"]["idle"], abs=1e-3)


LAYERS_NS = ";".join(f"{name}=8000000" for name in ("gemm", "nvjet", "fprop", "wgrad", "dgrad", "flash", "fmha"))


@pytest.mark.parametrize("kind", ["transformers", "lightning", "loop"])
def test_a_training_as_people_write_it_is_healthy_on_a_gpu(kind, tmp_path):
    """The Trainer, Lightning and ResNet-18 in a loop, as they are, with layers so large that the (simulated) GPU needs longer than the host."""
    run = run_on_gpu(WITH_LAYERS, "usual.py", tmp_path, kind, schedule="wait=4,warmup=1,active=5,repeat=1", OMP_NUM_THREADS=1, SIMGPU_RULES=LAYERS_NS)
    advice = advised(run.ok().trace)
    of_others = {"slow-steps", "slower-steps"}  # by others on these cores
    # The Trainer multiplies in float32, as torch does where nobody says otherwise, and in small tiles; ResNet's convolutions take TF32: that is to be told.
    own = {"tensor-cores-unused", "low-occupancy"} if kind == "transformers" else {"mixed-precision"}
    assert {finding["id"] for finding in advice["findings"]} <= of_others | own, advice
    assert advice["steps"] == 5 and advice["gpu"]["busy"] > 0.8 and advice["missing"] is None, advice
    if not advice["findings"]:
        assert advice["verdict"] == "healthy"


def test_where_the_host_is_ahead_the_steps_are_those_of_the_gpu(tmp_path):
    """No step waits: the host's steps hold the GPU's work of earlier ones, and are shorter than those."""
    run = run_on_gpu(WITH_LAYERS, "ahead.py", tmp_path, shapes=False, schedule="wait=4,warmup=1,active=6,repeat=1", SIMGPU_RULES="gemm=4000000")
    advice = advised(run.ok().trace)
    assert advice["ahead"].startswith("the host is ahead") and advice["missing"] is None
    assert advice["step_ms"] == pytest.approx(float(run.out), rel=0.1) and advice["gpu"]["busy"] > 0.95
    assert [finding["id"] for finding in advice["findings"]] == ["tensor-cores-unused", "low-occupancy"]  # float32, 32 rows by 64
    assert re.search(r"^step     [\d.]+ [mu]?s on the GPU", harness.cli("advise", run.trace).stdout, re.M)


@pytest.mark.parametrize("kind", ["transformers", "lightning", "loop"])
def test_a_training_as_people_write_it_has_no_finding(kind, tmp_path):
    """
    What test_parity's little ones have, Python's part of a step, is gone where the model is larger. Lightning's Adam is not fused: of ResNet-18's step
    of 110 ms that costs 40, and glibc 10 to 30 where it is not told to keep its memory. What SGD takes of the loop's is near the bound.
    """
    run = harness.run_kprof("usual.py", tmp_path, kind, schedule="wait=3,warmup=1,active=5,repeat=1", shapes=False, OMP_NUM_THREADS=1,
                            KPROF_WITH_STACK="ops", KPROF_PROFILE_MEMORY=1, MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_=-1).ok()
    advice = advised(run.trace)
    found, optimizer = {finding["id"] for finding in advice["findings"]}, {"optimizer-unfused"}
    assert found - {"slow-steps", "slower-steps"} <= optimizer, advice  # these two are by others on the cores
    assert kind != "lightning" or optimizer <= found, advice
    assert advice["steps"] == 5


@pytest.mark.parametrize("name", advicetraces.SICKNESSES)
def test_each_finding_has_its_events(name, tmp_path):
    """Those of the op, range or call that it names, within the step where it costs most; all of that step's where it names none."""
    trace = advicetraces.SICKNESSES[name]().write(tmp_path / "x.pt.trace.json")
    steps = {row["step"]: row["ms"] * 1e3 for row in json.loads(harness.cli("report", trace, "--by", "step", "--json").stdout)["rows"]}
    for finding in advised(trace)["findings"]:
        said = harness.cli("events", "--json", "--evidence", finding["id"], trace)
        events = [json.loads(line) for line in said.stdout.splitlines()]
        assert said.returncode == 0 and events, (finding, said.stderr)
        if finding["where"]:
            assert {re.sub(" at 0x[0-9a-f]+", "", event["name"]) for event in events} == {finding["where"]}, finding
        step = finding["once_step"] if finding["once_step"] is not None else finding["most_step"]
        if step is not None:
            assert max(event["ts"] for event in events) - min(event["ts"] for event in events) <= steps[step], finding
    assert "kprof advise does not find disk in it" in harness.cli("events", "--evidence", "disk", trace).stderr


def test_it_is_said_in_words(recorded):
    run, advice = recorded["loading"]
    said = harness.cli("advise", run.trace)
    assert said.returncode == 0
    assert "DataLoader has no workers" in said.stdout and "num_workers" in said.stdout
    shown = float(re.search(r"^[CW].*no workers.*: ([\d.]+) ms per step", said.stdout, re.M)[1])
    assert abs(shown - advice["findings"][0]["step_ms"]) <= shown / 100  # three digits


def test_what_is_no_trace_is_one_line(tmp_path):
    (tmp_path / "empty.pt.trace.json").write_text("")
    (tmp_path / "torn.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for path in tmp_path.iterdir():
        said = harness.cli("advise", path)
        assert said.returncode == 1 and said.stderr.count("\n") == 1 and not said.stdout, said


def test_the_schema_accepts_what_is_printed_and_refuses_other_lines(recorded, tmp_path):
    schema, makers = json.loads(harness.cli("advise", "--json-schema").stdout), [*advicetraces.SICKNESSES.values(), *advicetraces.TWINS.values()]
    paths = [make().write(tmp_path / f"{number}.pt.trace.json") for number, make in enumerate(makers)]
    one_step = advicetraces.TWINS["small-kernels"]()
    one_step.events = [event for event in one_step.events if event["ts"] < 11000]
    paths += [one_step.write(tmp_path / "one.pt.trace.json"), *(run.trace for run, _ in recorded.values())]
    rows = [json.loads(row) for row in harness.cli("advise", "--json", *paths).stdout.splitlines()]
    assert len(rows) == len(paths) and {row["verdict"] for row in rows} >= {"found", "healthy", "incomplete"}
    wrong = [{**rows[0], "verdict": "sick"}, {**rows[0], "more": 1}, {key: rows[0][key] for key in list(rows[0])[1:]},
             {**rows[0], "findings": [{**rows[0]["findings"][0], "line": 12}]}, {**rows[0], "gpu": {}}]
    check = ("import json, sys, jsonschema; schema, *rows = json.load(sys.stdin); judge = jsonschema.Draft202012Validator(schema); "
             "judge.check_schema(schema); print(json.dumps([[error.message for error in judge.iter_errors(row)] for row in rows]))")
    done = subprocess.run([viewing.venv("jupyter"), "-c", check], input=json.dumps([schema, *rows, *wrong]), capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert not any(said[:len(rows)]), said
    assert all(said[len(rows):]), said


def test_parts_of_a_real_gpus_steps_are_those_of_tensorboard(real_gpu_trace):
    """torch_tb_profiler 0.4.3 on this file, means of its three steps: kernels (NCCL's among them), copies and fills, all else."""
    advice = advised(real_gpu_trace("nccl_a100"))
    parts = advice["parts_ms"]
    assert advice["step_ms"] == pytest.approx(222.3684, abs=2e-4)
    assert parts["compute"] + parts["communication"] == pytest.approx(51.7384, abs=2e-4)
    assert parts["copies"] == pytest.approx(0.7616, abs=2e-4)
    assert parts["idle"] == pytest.approx(222.3684 - 51.7384 - 0.7616, abs=2e-4)
    assert advice["findings"][0]["id"] == "launch-bound"  # TensorBoard says: low utilization


def test_the_gpus_numbers_are_those_of_tensorboard(real_gpu_trace):
    """torch_tb_profiler's GPU summary of this file: utilization, SM efficiency, occupancy. It does not know TF32's kernels (decisions/095)."""
    gpu = advised(real_gpu_trace("nccl_a100"))["gpu"]
    assert (gpu["busy"], gpu["sm_efficiency"], gpu["occupancy"]) == pytest.approx((0.2326, 0.1687, 0.3531), abs=5e-5)
    assert gpu["tensor_cores"] > 0.1638


@pytest.mark.parametrize("name, steps, compute, other, hidden, waiting", [("nccl_a100", "4-5", 76935.828, 22232.019, 0.1476, 10),
                                                                          ("mem_v100_2022", "2-5", 496485, 256572, 0, 73)])
def test_the_gpus_numbers_are_those_of_hta(real_gpu_trace, tmp_path, name, steps, compute, other, hidden, waiting):
    """HolisticTraceAnalysis 0.5.0 on these files, HTA_DISABLE_NS_ROUNDING=1: temporal breakdown (us), overlap, queue length. It leaves the last
    step out."""
    part = tmp_path / "part.pt.trace.json"
    assert harness.cli("slice", real_gpu_trace(name), "--step", steps, "-o", part).returncode == 0
    advice = advised(part)
    parts, gpu = advice["parts_ms"], advice["gpu"]
    assert parts["compute"] * advice["steps"] * 1000 == pytest.approx(compute, abs=0.1)
    assert (parts["communication"] + parts["copies"]) * advice["steps"] * 1000 == pytest.approx(other, abs=0.1)
    assert (gpu["communication_hidden"], gpu["queue_most"]) == (pytest.approx(hidden, abs=5e-5), waiting)


def test_old_traces_have_steps_too(real_gpu_trace):
    """Files of 2021, whose steps have the category Operator: a loader without workers, and one with four."""
    sick, twin = (advised(real_gpu_trace(f"tb_resnet50_nw{workers}_v100_2021")) for workers in (0, 4))
    assert sick["steps"] == twin["steps"] == 6
    assert (sick["findings"][0]["id"], sick["findings"][0]["line"]) == ("data-loading", "resnet50_profiler_api.py:42 <module>")
    assert "data-loading" not in [finding["id"] for finding in twin["findings"]]
