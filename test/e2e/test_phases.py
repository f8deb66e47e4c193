# SPDX-License-Identifier: Apache-2.0
"""KPROF_PHASES: training and validation have their own steps, windows and files, as profilers put there by hand would have."""
import json
import re

import facts
import harness
import pytest

SPAN = "of the time from the first phase's .*"
LIGHTNINGS_OWN = r"\[pl\]|\[Strategy|Callback"  # ranges that it opens under its own profiler alone
PHASES = "train=skip_first=4,wait=1,warmup=1,active=2,repeat=1;validate=wait=1,warmup=1,active=2,repeat=2"


def phase_of(path):
    return path.name.split(".")[0].split("_")[-1]


def files_of(folder):
    return sorted(folder.glob("*.pt.trace.json*"), key=lambda path: path.name.split(".")[-5])


def say_same(reference, candidate, ignore=None):
    assert facts.differences(facts.facts(facts.load(reference), ignore), facts.facts(facts.load(candidate), ignore)) == []


@pytest.fixture(scope="module")
def by_name(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by_name")
    run = harness.run_kprof("phases.py", folder, schedule=None, shapes=False, KPROF_PHASES=PHASES).ok()
    return run, files_of(folder)


def test_phases_that_are_named_have_the_files_of_profilers_by_hand(by_name, tmp_path):
    harness.run_plain("phases.py", tmp_path, tmp_path, warm_start=True).ok()
    _, files = by_name
    assert [phase_of(path) for path in files] == ["validate", "train", "validate"]
    for ours, theirs in zip(files, ["validate.4.json", "train.8.json", "validate.8.json"]):
        say_same(tmp_path / theirs, ours)


def test_the_report_of_one_phase(by_name):
    run, files = by_name
    for phase, many in (("train", 1), ("validate", 2)):
        said = harness.cli("report", "--json", "--phase", phase, run.folder)
        assert said.returncode == 0 and len(said.stdout.splitlines()) == many, said.stderr
        assert {json.loads(line)["phase"] for line in said.stdout.splitlines()} == {phase}
    none = harness.cli("report", "--phase", "test", run.folder)
    assert none.returncode == 1 and "no trace of phase test; there are train, validate" in none.stderr and not none.stdout


def test_phases_that_are_ranges_have_the_files_of_profilers_by_hand(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    harness.run_plain("phases.py", theirs, theirs, "ranges", warm_start=True).ok()
    named = PHASES.replace("train=", "train~^my loop: train=1$=").replace("validate=", "validate~: valid.*=1=")
    harness.run_kprof("phases.py", ours, "ranges", schedule=None, shapes=False, KPROF_PHASES=named).ok()
    files = files_of(ours)
    assert [phase_of(path) for path in files] == ["validate", "train", "validate"]
    for mine, other in zip(files, ["validate.4.json", "train.8.json", "validate.8.json"]):
        say_same(theirs / other, mine)


OWN_LOOP = """import torch
from torch.profiler import record_function
model = torch.nn.Linear(512, 10)
loss, optimizer = torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    with record_function("train"):
        for _ in range(10):
            optimizer.zero_grad()
            loss(model(torch.randn(64, 512)), torch.zeros(64, 10)).backward()
            optimizer.step()
    with record_function("validate"), torch.no_grad():
        for _ in range(7):
            loss(model(torch.randn(64, 512)), torch.zeros(64, 10))
"""


def test_each_call_of_an_own_loops_validation_is_a_step_from_the_first_on(tmp_path):
    program = tmp_path / "own.py"
    program.write_text(OWN_LOOP)
    run = harness.run_kprof("own.py", tmp_path / "out", schedule=None, shapes=False, command=[harness.PYTHON, program],
                            KPROF_PHASES="train~^train$=active=100;validate~^validate$=active=100").ok()
    steps = {"train": [], "validate": []}
    for path in files_of(tmp_path / "out"):
        events = facts.load(path)["traceEvents"]
        steps[phase_of(path)].append(sum(e["name"].startswith("ProfilerStep#") for e in events))
    assert steps == {"train": [10] * 4, "validate": [7] * 4}, run.explain()


TAIL_LOOP = """import time, torch
from torch.profiler import record_function
model = torch.nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    with record_function("train"):
        for _ in range(5):
            model(torch.randn(64, 512)).square().mean().backward()
            optimizer.step()
    began = time.perf_counter()
    with record_function("validate"), torch.no_grad():
        began_inside = time.perf_counter()
        for _ in range(4):
            model(torch.randn(64, 512))
            time.sleep(0.02)
        inside = time.perf_counter() - began_inside
    print(1000 * inside, 1000 * (time.perf_counter() - began))
"""


def test_all_time_of_a_validation_is_in_the_report_of_its_phase(tmp_path):
    """Behind the last call of the model nothing ends a step."""
    program = tmp_path / "own.py"
    program.write_text(TAIL_LOOP)
    run = harness.run_kprof("own.py", tmp_path / "out", schedule=None, shapes=False, command=[harness.PYTHON, program],
                            KPROF_PHASES="train~^train$=active=100;validate~^validate$=active=100").ok()
    by_clock = [map(float, line.split()) for line in run.out.splitlines()]
    heads = [json.loads(line) for line in harness.cli("report", "--json", "--phase", "validate", "-n", "0", tmp_path / "out").stdout.splitlines()]
    assert [head["runs"] for head in heads] == [1, 1, 1] and [head["steps"]["count"] for head in heads] == [4, 4, 4]
    for head, (inside, around) in zip(heads, by_clock):  # another program may have the core just before the range and after it
        assert 80 < inside < head["ms_a_run"] + 0.1 < around + 0.2
        assert sum(row["self_ms"] for row in head["rows"]) == pytest.approx(head["ms_a_run"], rel=0.002)
        assert head["steps"]["median_ms"] < head["ms_a_run"] / 2 and max(row["self_ms"] for row in head["rows"] if "outside the steps" in row["name"]) > 19
    path = next(path for path in files_of(tmp_path / "out") if phase_of(path) == "validate")
    whole = json.loads(harness.cli("report", "--json", path).stdout)["ms_a_run"]
    graph = json.loads(harness.cli("stacks", "--json", path).stdout)
    assert graph["wall_us"] / 1000 == pytest.approx(whole, rel=1e-4) == sum(path["value"] for path in graph["stacks"]) / 1000
    ops = json.loads(harness.cli("view", "--json", path).stdout)["tabs"][2]["rows"]
    assert sum(row["self_ms"] for row in ops) == pytest.approx(whole, rel=0.002)


def test_lightnings_last_validation_leaves_no_step_behind_it(tmp_path):
    harness.needs("lightning")
    program = tmp_path / "lit.py"
    program.write_text("""
import torch, lightning as L
class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)
    def training_step(self, batch, index): return self.net(batch[0]).square().mean()
    def validation_step(self, batch, index): self.net(batch[0])
    def configure_optimizers(self): return torch.optim.Adam(self.parameters())
data = lambda n: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(n, 8)), batch_size=4)
L.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
          accelerator="cpu").fit(Model(), data(20), data(12))
""")
    run = harness.run_kprof("lit.py", tmp_path / "out", schedule=None, shapes=False, command=[harness.PYTHON, program],
                            KPROF_PHASES="train=active=100;validate=active=100").ok()
    steps = {"train": 0, "validate": 0}
    for path in files_of(tmp_path / "out"):
        steps[phase_of(path)] += len(facts.steps(facts.load(path)))
    assert steps == {"train": 10, "validate": 6} and "(10 steps in train, 6 in validate, " in run.err, run.explain()
    table = harness.cli("report", tmp_path / "out").stdout
    assert [line.split()[2] for line in table.splitlines()[1:3]] == ["1", "2"], table  # runs


def test_a_range_of_each_step_is_a_phase_whose_optimizer_counts(tmp_path):
    """Ranges of steps, not of loops: each window of two steps becomes two files."""
    run = harness.run_kprof("phase_each_step.py", tmp_path, schedule=None, shapes=False,
                            KPROF_PHASES="train~^training_step$=wait=1,warmup=1,active=2,repeat=1").ok()
    traces = [facts.load(path) for path in files_of(tmp_path)]
    assert [[e["name"] for e in facts.steps(trace)] for trace in traces] == [["ProfilerStep#2"], ["ProfilerStep#3"]], run.explain()
    assert all(e["name"] != "training_step" for trace in traces for e in facts.spans(trace))
    assert all(sum(e["name"] == "Optimizer.step#SGD.step" for e in facts.spans(trace)) == 1 for trace in traces)
    assert not any("aten::sigmoid" == e["name"] for trace in traces for e in facts.spans(trace))  # it is outside of the range


def test_many_files_of_one_phase_are_told_while_the_program_runs(mini, torch_double, tmp_path):
    script = mini(f"""
import sys
double, step = ctypes.CDLL({str(torch_double / "libtorch_cpu.so")!r}), ctypes.CDLL(None).kprof_step
room = ctypes.create_string_buffer(4096)
at = ctypes.c_void_p(ctypes.addressof(room) + 63 & ~63)
for turn in range(60):
    double.mini_begin(at, b"train_step", 1)  # as record_function does
    op(b"aten::linear")
    step()
    double.mini_end(at)
print("ended", file=sys.stderr, flush=True)
""")
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, KPROF_PHASES="step~train_step=active=100").ok()
    assert run.err.count("phase step has begun 50 times, and each time makes a trace of its own, 50 so far; ") == 1, run.err
    assert run.err.index("such as step~train_step=active=10,repeat=1\n") < run.err.index("ended"), run.err
    few = harness.run_kprof(script, tmp_path / "few", schedule=None, KPROF_PHASES="step~train_step=active=10,repeat=1").ok()
    assert "(10 steps in step, " in few.err and "times" not in few.err and len(files_of(tmp_path / "few")) == 10, few.err
    plain = harness.run_kprof(script, tmp_path / "plain", schedule=None, KPROF_PHASES="train_step=active=10").ok()
    assert "no phase of KPROF_PHASES has begun (train_step)" in plain.err and "such as train_step~^train_step$=active=2" in plain.err, plain.err


def test_the_trace_names_its_phase(by_name):
    run, files = by_name
    assert [json.loads(json.dumps(facts.load(path)["kprof"]))["phase"] for path in files] == ["validate", "train", "validate"]
    assert "wrote 3 traces" in run.err and "(2 steps in train, 4 in validate, " in run.err, run.err


def test_a_schedule_that_no_phase_met_is_explained(tmp_path):
    run = harness.run_kprof("phases.py", tmp_path, schedule=None, KPROF_PHASES="train=wait=19,active=1;test=active=1").ok()
    assert "no trace: phase train saw 10 steps and needs 20, phase test saw 0 steps and needs 1" in run.err, run.err
    assert " NAME~REGEX: KPROF_PHASES='" in run.err and "kprof report --within validate" in run.err, run.err


def test_phases_that_do_not_begin_are_told_while_the_program_runs(mini, tmp_path):
    script = mini("""
import sys
step = ctypes.CDLL(None).kprof_step
for turn in range(5):
    op(b"aten::linear")
    step()
    print("ended", turn, file=sys.stderr, flush=True)
""")
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, KPROF_PHASES="train~^train$=active=100").ok()
    assert run.err.count("no phase of KPROF_PHASES has begun") == 1, run.err
    assert run.err.index("ended 1") < run.err.index("nothing is recorded so far") < run.err.index("ended 4"), run.err
    outside = harness.run_kprof(script, tmp_path / "outside", KPROF_PHASES="train~^train$=active=100").ok()
    assert "no phase of" not in outside.err and outside.traces, "KPROF_SCHEDULE records what is in no phase"


def test_a_trainers_evaluations_have_the_files_of_profilers_in_callbacks(tmp_path):
    harness.needs("transformers")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    harness.run_plain("hf_phases.py", theirs, theirs, "byhand", warm_start=True).ok()
    harness.run_kprof("hf_phases.py", ours, ours, schedule=None, shapes=False,
                      KPROF_PHASES="train=skip_first=4,wait=1,warmup=1,active=2,repeat=1;evaluate=wait=1,warmup=1,active=2,repeat=1;"
                                   "predict=warmup=1,active=2,repeat=1").ok()
    files = files_of(ours)
    assert [phase_of(path) for path in files] == ["evaluate", "train", "predict"]
    for mine, other in zip(files, ["evaluate.4.json", "train.8.json", "predict.3.json"]):
        say_same(theirs / other, mine)


def test_one_row_names_the_evaluation_of_lightning_and_of_transformers(tmp_path):
    """A row that is misspelt is told of at the end, though others recorded."""
    harness.needs("transformers")
    (tmp_path / "plain").mkdir()
    run = harness.run_kprof("hf_phases.py", tmp_path / "out", tmp_path / "plain", schedule=None, shapes=False,
                            KPROF_PHASES="training=active=2;validate=active=2,repeat=1;late~^late$=active=1;off=none").ok()
    assert [phase_of(path) for path in files_of(tmp_path / "out")] == ["validate"], run.explain()
    assert run.err.count("some phases of KPROF_PHASES never began, so nothing is recorded of them (training, late: no range matched ^late$); "
                         "these of the program have no row there: train, predict; a range of record_function needs NAME~REGEX: training~^training$=active=2\n") == 1, run.err
    both = harness.run_kprof("hf_phases.py", tmp_path / "both", tmp_path / "plain", schedule=None, shapes=False,
                             KPROF_PHASES="train=active=2,repeat=1;evaluate=active=2,repeat=1").ok()
    assert "never began" not in both.err and "wrote" in both.err, both.err


def test_lightnings_phases_have_the_files_of_its_own_profiler(tmp_path):
    harness.needs("lightning")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    harness.run_plain("lightning_phases.py", theirs, theirs, "own", warm_start=True).ok()
    phases = ["train", "validate", "test", "predict"]
    harness.run_kprof("lightning_phases.py", ours, ours, schedule=None, shapes=False,
                      KPROF_PHASES=";".join(f"{name}=wait=1,warmup=1,active=2,repeat=1" for name in phases)).ok()
    files = files_of(ours)
    assert [phase_of(path) for path in files] == phases
    for mine, name in zip(files, ["training", "validation", "test", "predict"]):
        other, = theirs.glob(f"*{name}_step*.json")
        say_same(other, mine, ignore=LIGHTNINGS_OWN)


SCHEDULED_LOOP = """import time, torch
from torch.profiler import record_function
model = torch.nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = time.perf_counter()
evaluated = 0
for epoch in range(6):
    with record_function("train"):
        for _ in range(10):
            model(torch.randn(64, 512)).square().mean().backward()
            optimizer.step()
            time.sleep(0.005)
    began_evaluation = time.perf_counter()
    with record_function("validate"), torch.no_grad():
        for _ in range(4):
            model(torch.randn(64, 512))
            time.sleep(0.02)
    evaluated += time.perf_counter() - began_evaluation
    print(evaluated, time.perf_counter() - began)
"""


def told_phases(head, whose):
    """Of the line of a training's phases: the validations' share, how often, how long each; the training's share."""
    told = re.search(rf"\nphases   validate took ([\d.]+) % {SPAN} " + whose +
                     r" trace's end \((\d+) times, ([\d.]+) s each\), this one ([\d.]+) %\n", head)
    assert told, head
    return told


def scheduled(phases, folder):
    """SCHEDULED_LOOP under these KPROF_PHASES, and its traces."""
    program = folder / "own.py"
    program.write_text(SCHEDULED_LOOP)
    run = harness.run_kprof("own.py", folder / "out", schedule=None, shapes=False, command=[harness.PYTHON, program], KPROF_PHASES=phases).ok()
    return run, files_of(folder / "out")


def test_a_schedule_leaves_the_share_of_each_phase_known(tmp_path):
    """Of the validations none is recorded: their share is told of all the time since the first phase began."""
    run, files = scheduled("train~^train$=wait=40,warmup=1,active=9,repeat=1;validate~^validate$=skip_first=1000,active=1", tmp_path)
    assert [phase_of(path) for path in files] == ["train"]
    evaluated, _ = map(float, run.out.splitlines()[3].split())  # four validations were before the window's end
    evaluated_later, all_s = map(float, run.out.splitlines()[4].split())
    head = harness.cli("report", files[0]).stdout
    share, times, each, own = told_phases(head, "this").groups()
    assert int(times) == 4 and float(each) == pytest.approx(evaluated / 4, abs=0.005)
    assert float(share) / float(own) == pytest.approx(evaluated / (all_s - evaluated_later), rel=0.1)
    assert 80 < float(share) + float(own) <= 100.2
    note = json.loads(harness.cli("advise", "--json", files[0]).stdout)["evaluated"]
    assert re.fullmatch(rf"validate took {share} % {SPAN} this trace's end \({times} times, {each} s each\), none .* this trace", note), note


def test_of_several_traces_the_last_tells_the_shares_of_the_phases(tmp_path):
    """It is one of another phase here: the sixth validation."""
    run, files = scheduled("train~^train$=wait=1,warmup=1,active=8,repeat=2;validate~^validate$=skip_first=19,active=4,repeat=1", tmp_path)
    assert [phase_of(path) for path in files][:3] == ["train", "train", "validate"] and "train" not in map(phase_of, files[3:]), run.explain()
    assert re.search(f" % {SPAN} this trace's end\n", harness.cli("report", files[0]).stdout)
    assert re.search(r" until this trace's end \(once, [\d.]+ s\), this one ", harness.cli("report", files[1]).stdout)
    share, times, each, own = told_phases(harness.cli("report", "--phase", "train", *files).stdout, "the last").groups()
    assert int(times) == 6
    all_of_them = harness.cli("report", *files).stdout
    assert f"or not: train took {own} % of the time from" in all_of_them
    assert f"validate took {share} % (6 times, {each} s each)" in all_of_them
    advice = harness.cli("advise", *files).stdout
    assert re.search(rf"validate took {share} % {SPAN} the last trace's end \(6 times, {each} s each\), none .* this phase's traces", advice), advice


LEFT_OPEN = """import ctypes, sys, time
import torch
phase, step = ctypes.CDLL(None).kprof_phase, ctypes.CDLL(None).kprof_step
def work(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        torch.ones(64, 64) @ torch.ones(64, 64)
for _ in range(5):
    work(0.02)
    step()
for _ in range(3):
    phase(b"train")
    work(0.2)
    phase(b"validate")
    work(0.1)
time.sleep(1)  # stands for a slow shutdown
"""


def test_a_phase_that_is_open_at_the_end_lasts_until_its_last_op(tmp_path):
    program = tmp_path / "open.py"
    program.write_text(LEFT_OPEN)
    run = harness.run_kprof("open.py", tmp_path / "out", schedule=None, shapes=False, command=[harness.PYTHON, program],
                            KPROF_PHASES="train=active=1000;validate=active=1000").ok()
    said = harness.cli("report", tmp_path / "out").stdout
    share, each, left_out = map(float, re.search(
        r"; validate took ([\d.]+) % \(3 times, ([\d.]+) s each\); 4 steps before .* took 0\.(?:0[89]|1)\d+ s; validate was open .*: ([\d.]+) s after its last .*\n", said).groups())
    assert share == pytest.approx(33.3, abs=5) and each == pytest.approx(0.1, abs=0.03) and left_out >= 1, said
    assert float(re.search(r"^validate .*?([\d.]+) % ", said, re.M)[1]) == pytest.approx(share, abs=3), said
    of_one = harness.cli("report", "--phase", "validate", tmp_path / "out").stdout
    assert f"program ended: {left_out:.3f} s " in of_one
    assert float(re.search(r": wall time ([\d.]+) ms", of_one)[1]) < 600, of_one
    assert phase_of(files_of(run.folder)[-1]) == "validate"
