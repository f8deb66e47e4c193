# SPDX-License-Identifier: Apache-2.0
"""kprof advise: sick trainings beside a healthy twin, and files that are none."""
import json
import platform

import pytest

import harness

SCHEDULE = "wait=3,warmup=1,active=6,repeat=1"  # steps 4 to 9 of ten


SIMGPU = harness.BUILD / platform.machine() / "simgpu"
SIMULATED = [SIMGPU / name for name in ("libcudart.so.13", "libcupti.so.13")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Of each kind: the run, and what is advised."""
    found = {}
    for kind in ("healthy", "loading", "waiting"):
        run = harness.run_kprof("advice.py", tmp_path_factory.mktemp(kind), kind, schedule=SCHEDULE, shapes=False, OMP_NUM_THREADS=1).ok()
        said = harness.cli("advise", run.trace, "--json")
        assert said.returncode == 0, said.stderr
        found[kind] = run, json.loads(said.stdout)
    return found


def test_the_twin_has_no_such_findings(recorded):
    _, advice = recorded["healthy"]
    assert [finding["id"] for finding in advice["findings"] if finding["id"] in ("data-loading", "no-op-runs")] == []
    assert advice["steps"] == 6 and advice["missing"] is None


@pytest.mark.parametrize("kind, wanted, milliseconds", [("loading", "data-loading", 80), ("waiting", "no-op-runs", 300)])
def test_a_sickness_is_found_with_its_cost(recorded, kind, wanted, milliseconds):
    _, advice = recorded[kind]
    largest = advice["findings"][0]
    assert largest["id"] == wanted
    assert milliseconds <= largest["step_ms"] <= advice["step_ms"]
    twin = recorded["healthy"][1]
    usual = twin["parts_ms"]["data_loading" if kind == "loading" else "idle"]
    assert abs(largest["step_ms"] - usual - milliseconds) <= 0.2 * milliseconds + usual  # the sleep is what the sickness costs
    assert sum(advice["parts_ms"].values()) == pytest.approx(advice["step_ms"], rel=1e-6)


def test_the_line_is_told(tmp_path):
    run = harness.run_kprof("advice.py", tmp_path, "waiting", schedule=SCHEDULE, shapes=False, OMP_NUM_THREADS=1, KPROF_WITH_STACK="ops").ok()
    largest = json.loads(harness.cli("advise", run.trace, "--json").stdout)["findings"][0]
    assert largest["id"] == "no-op-runs"
    assert (largest["line"], largest["after"]) == (own_line("advice.py", "optimizer.step()"), own_line("advice.py", "sum().backward()"))
    assert largest["where"] and "torch/optim/" in largest["frame"]


def own_line(script, text, function="main"):
    """The line of a script that has the text, as a finding names it."""
    lines = (harness.SCRIPTS / script).read_text().splitlines()
    number, = [at for at, line in enumerate(lines, 1) if text in line]
    return f"{script}:{number} {function}"


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory):
    """Of each kind: milliseconds of a step by the program's own clock, and what is advised."""
    if missing := [path.name for path in SIMULATED if not path.exists()]:
        pytest.skip(f"make simgpu builds {', '.join(missing)}")
    found = {}
    for kind in ("healthy", "sync", "python", "launch"):
        run = harness.run_kprof("advice_gpu.py", tmp_path_factory.mktemp(kind), kind, schedule=SCHEDULE, shapes=False, KPROF_WITH_STACK="ops",
                                LD_PRELOAD=" ".join(map(str, [harness.LIBRARY, *SIMULATED])), LD_LIBRARY_PATH=SIMGPU,
                                SIMGPU_KERNEL_NS=200, SIMGPU_RULES="exp=2000000")
        if "not compiled with CUDA" in run.err:
            pytest.skip("this torch has no CUDA")
        run.ok()
        found[kind] = float(run.out), json.loads(harness.cli("advise", run.trace, "--json").stdout)
    return found


def test_a_healthy_gpu_is_called_healthy(on_gpu):
    _, advice = on_gpu["healthy"]
    assert (advice["verdict"], advice["findings"], advice["missing"]) == ("healthy", [], None), advice


@pytest.mark.parametrize("kind, wanted, where, line",
                         [("sync", "implicit-sync", "aten::item", own_line("advice_gpu.py", "y.item()", "part")),
                          ("python", "python-starved", "aten::_foreach_add_", own_line("advice_gpu.py", "optimizer.step()")),
                          ("launch", "launch-bound", "aten::add_", own_line("advice_gpu.py", "x.add_(1)", "small"))])
def test_the_cause_of_idle_is_found_with_line_and_cost(on_gpu, kind, wanted, where, line):
    step, advice = on_gpu[kind]
    largest = advice["findings"][0]
    assert (largest["id"], largest["where"], largest["line"]) == (wanted, where, line), advice
    added = step - on_gpu["healthy"][0]
    assert largest["step_ms"] == pytest.approx(added, rel=0.2), (added, advice)
    assert sum(advice["idle_ms"].values()) == pytest.approx(advice["parts_ms"]["idle"], abs=1e-3)


def test_it_is_said_in_words(recorded):
    run, advice = recorded["loading"]
    said = harness.cli("advise", run.trace)
    assert said.returncode == 0
    assert "the step loads its data itself: the DataLoader has no workers" in said.stdout and "num_workers" in said.stdout
    assert f"{advice['findings'][0]['step_ms']:.3f} ms a step" in said.stdout


def test_what_is_no_trace_is_one_line(tmp_path):
    (tmp_path / "empty.pt.trace.json").write_text("")
    (tmp_path / "torn.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    for path in tmp_path.iterdir():
        said = harness.cli("advise", path)
        assert said.returncode == 1 and said.stderr.count("\n") == 1 and not said.stdout, said


def test_the_schema_tells_what_is_printed(recorded):
    schema = json.loads(harness.cli("advise", "--json-schema").stdout)
    for _, advice in recorded.values():
        assert list(schema["required"]) == list(advice) and set(schema["properties"]) == set(advice)
        assert advice["verdict"] in schema["properties"]["verdict"]["enum"]
        for finding in advice["findings"]:
            assert list(schema["properties"]["findings"]["items"]["required"]) == list(finding)


def advised(path):
    return json.loads(harness.cli("advise", path, "--json").stdout)


def test_parts_of_a_real_gpus_steps_are_those_of_tensorboard(real_gpu_trace):
    """torch_tb_profiler 0.4.3 on this file, means of its three steps: kernels (NCCL's among them), copies and fills, all else."""
    advice = advised(real_gpu_trace("nccl_a100"))
    parts = advice["parts_ms"]
    assert advice["step_ms"] == pytest.approx(222.3684, abs=2e-4)
    assert parts["compute"] + parts["communication"] == pytest.approx(51.7384, abs=2e-4)
    assert parts["copies"] == pytest.approx(0.7616, abs=2e-4)
    assert parts["idle"] == pytest.approx(222.3684 - 51.7384 - 0.7616, abs=2e-4)
    assert advice["findings"][0]["id"] == "launch-bound"  # TensorBoard says: low utilization


def test_old_traces_have_steps_too(real_gpu_trace):
    """Files of 2021, whose steps have the category Operator: a loader without workers, and one with four."""
    sick, twin = (advised(real_gpu_trace(f"tb_resnet50_nw{workers}_v100_2021")) for workers in (0, 4))
    assert sick["steps"] == twin["steps"] == 6
    assert (sick["findings"][0]["id"], sick["findings"][0]["line"]) == ("data-loading", "resnet50_profiler_api.py:42 <module>")
    assert "data-loading" not in [finding["id"] for finding in twin["findings"]]
