# SPDX-License-Identifier: Apache-2.0
"""Which steps count: of several optimizers of one class the first, known by the object; and calls of Python functions."""
import glob
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import facts
import harness

UNMET, REMEDY = "never came, or did not end", "kprof doctor --steps names what would count"
NEVER = "wait=100000,warmup=1,active=1"  # counts steps in the cheap way, records nothing
ALWAYS = "active=100000"  # records every step
STEP = "Optimizer.step#Adam.step"
FALLBACK = {"KPROF_TEST_FAIL": "peek:1+:1"}  # as where process_vm_readv is forbidden
LATE = {"LAZY_DYNAMO": 1}  # `ours` has all of torch: here one run of gan_twins.py has it


def steps_of(run):
    """(steps that were seen, iterations that ran, by the program's own word; None when it says none)"""
    said = re.findall(r"saw (\d+) steps?[ ,]|\((\d+) steps?[ ,]", run.err)
    assert len(said) == 1, run.explain()
    iterations = re.findall(r"^iterations (\d+)", run.out, re.M)
    return int(said[0][0] or said[0][1]), int(iterations[0]) if iterations else None


@pytest.mark.parametrize("schedule", [NEVER, ALWAYS])
@pytest.mark.parametrize("critics", [1, 5])
def test_a_gan_with_two_of_one_class_has_one_step_an_iteration(ours, schedule, critics):
    all_of_torch = (critics, schedule) == (1, ALWAYS)
    steps, _ = steps_of(ours("gan_twins.py", "8", str(critics), schedule=schedule, **({} if all_of_torch else LATE)))
    assert steps == 8  # the one that exit cuts short is in the trace, and counts for nobody


def test_start_up_and_a_step_that_exit_cut_short_are_no_steps(ours):
    """Step 0 has the imports in it, and the last one lasts until the program ends."""
    run = ours("gan_twins.py", "8", "1", schedule=ALWAYS)
    marks = facts.steps(facts.load(run.trace))
    assert [e["args"].get("partial") for e in marks] == ["start-up", *[None] * 7, "cut short"]
    head = harness.cli("report", run.trace).stdout
    assert ", 7 steps (1 to 7)\n" in head and "(start-up and step 0)" in head and "(step 8 was cut short)" in head
    rows = json.loads(harness.cli("report", "--json", "--sort", "total", run.trace).stdout)
    whole = sum(e["dur"] for e in marks[1:-1]) / 1e3
    assert abs(rows["steps"]["mean_ms"] * 7 - whole) < 0.01 * whole
    assert json.loads(harness.cli("advise", "--json", run.trace).stdout)["steps"] == 7
    assert ", step 0\n" in harness.cli("report", "--step", "0", run.trace).stdout


def test_a_window_holds_both_optimizers_of_a_gan(ours):
    trace = facts.load(ours("gan_twins.py", "8", "1", **LATE).trace)
    assert trace["kprof"]["step_source"] == "optimizer"
    # torch's own word for itself lacks what stands behind the number, as +cpu
    assert importlib.metadata.version("torch").startswith(trace["kprof"]["torch_version"])
    windows = facts.steps(trace)
    assert [e["name"] for e in windows] == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    ends = [facts.end(e) for e in facts.spans(trace) if e["name"] == STEP]
    assert [sum(facts.begin(w) < end <= facts.end(w) for end in ends) for w in windows] == [2, 2, 2]


def test_where_frames_cannot_be_read_the_name_is_what_counts(ours):
    assert steps_of(ours("gan_twins.py", "8", "1", schedule=NEVER, **FALLBACK, **LATE))[0] == 16
    steps, iterations = steps_of(ours("optimizers.py", "one", schedule=NEVER, **FALLBACK, **LATE))
    assert steps == iterations


@pytest.mark.parametrize("program", ["one", "epochs", "epochs_gan", "epochs_gan_many", "reclassed", "threads", "retired"])
def test_each_iteration_is_one_step(ours, program):
    # not auto: on a machine that stands still for seconds that goes by time, and begins anew with the next step
    steps, iterations = steps_of(ours("optimizers.py", program, schedule=NEVER, KPROF_STEP="optimizer", **LATE))
    assert steps == iterations


def test_an_optimizer_that_rests_is_given_up_after_64_steps_of_another(ours):
    steps, iterations = steps_of(ours("optimizers.py", "rested", schedule=NEVER, **LATE))
    assert steps == iterations - 65


@pytest.mark.parametrize("program", [("gan_twins.py", "8", "1"), ("gan_twins.py", "8", "5"), *(("optimizers.py", kind) for kind in (
    "one", "epochs", "epochs_gan", "epochs_gan_many", "reclassed", "threads", "retired", "rested"))], ids="-".join)
def test_every_reader_counts_the_steps_of_the_closing_line(ours, program):
    readers_agree(ours(*program, schedule=None, **LATE), None)


LOADED = """import ctypes, torch
from torch.utils.data import DataLoader, TensorDataset
model, step = torch.nn.Linear(8, 8), ctypes.CDLL(None).kprof_step
optimizer, data = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(TensorDataset(torch.randn(400, 8)), batch_size=10)
"""


@pytest.mark.parametrize("steps, program", [
    (25, "for (x,) in data: model(x)"),  # the first 15 may have been of anything
    (40, "for (x,) in data: model(x)\nfor (x,) in data: model(x).sum().backward(); optimizer.step()"),  # an evaluation first
    (10, "for _ in range(10): model(torch.ones(4, 8)); step()"),
    (6, "for i in range(10):\n    model(torch.ones(4, 8)).sum().backward(); optimizer.step()\n    if i % 2: step()"),
], ids=["batches", "evaluation", "calls", "optimizer and calls"])
def test_batches_and_calls_are_counted_by_every_reader(tmp_path, steps, program):
    script = tmp_path / "program.py"
    script.write_text(LOADED + program)
    readers_agree(harness.run_kprof(script, tmp_path / "out", shapes=False, schedule=None).ok(), steps)


def readers_agree(run, wanted):
    """Without a schedule a trace marks no step: the ranges that ended one are marked."""
    said, _ = steps_of(run)
    assert wanted in (None, said), run.explain()
    trace = facts.load(run.trace)
    marked = [e["name"] for e in facts.spans(trace) if e["args"].get("step") == "ended"]
    assert len([name for name in marked if trace["kprof"]["step_source"] == "dataloader" or "DataLoader" not in name]) == said
    assert not facts.steps(trace)
    assert f", {said} steps (step 0 is left out: " in harness.cli("report", run.trace).stdout
    assert json.loads(harness.cli("report", "--json", run.trace).stdout)["steps"]["count"] == said - 1
    assert json.loads(harness.cli("advise", "--json", run.trace).stdout)["steps"] == said - 1
    assert f"the trace has steps 1 to {said - 1}" in harness.cli("events", "--step", "100000", run.trace).stderr
    assert f"the trace has steps 1 to {said - 1}" in harness.cli("report", "--step", "100000", run.trace).stderr


SERVER = """import queue, threading, time, torch
net, jobs = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).eval(), queue.Queue()
def serve():
    while (x := jobs.get()) is not None:
        with torch.inference_mode(): net(x).sum().item()
threads = [threading.Thread(target=serve) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(12): jobs.put(torch.ones(4, 64)); time.sleep(0.01)
for _ in threads: jobs.put(None)
for thread in threads: thread.join()
"""


def test_a_server_of_few_requests_has_them_counted_afterwards(tmp_path):
    """Calls of a model count as steps from the 17th on."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    run = harness.run_kprof(script, tmp_path / "out", shapes=False, schedule="active=1000").ok()
    assert f"not taken as steps: 12 model calls); next: kprof report --within 'call of a model' {run.folder}\n" in run.err, run.explain()
    head = harness.cli("report", run.trace).stdout
    assert ("\n         12 calls of a model: kprof report --within 'call of a model'; as steps: --step "
            "call:torch.nn.modules.container:Sequential.forward\n") in head and "to record whole steps" not in head, head
    assert re.search(r", within call of a model: 12 calls, [\d.]+ [mu]?s each\n", harness.cli("report", "--within", "call of a model", run.trace).stdout)
    named = harness.run_kprof(script, tmp_path / "named", shapes=False, schedule="active=1000", KPROF_STEP="call:torch.nn.modules.container:Sequential.forward").ok()
    assert "(12 steps by call of torch.nn.modules.container:Sequential.forward, " in named.err, named.explain()
    assert "call of a model" not in named.err
    few = harness.run_kprof(script, tmp_path / "few", shapes=False, schedule="warmup=1,active=3").ok()
    assert "(12 came); each is a step with --step call:torch.nn.modules.container:Sequential.forward; " in few.err, few.explain()


# ---- the walk itself, in every Python there is ----


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """preload/python alone as a library: the product exports none of its insides."""
    library = tmp_path_factory.mktemp("walk") / "libwalk.so"
    hook = library.with_name("hook.c")  # what preload/python asks of the room hook
    hook.write_text("int kp_hook_add_taps(const void *taps, unsigned count);\nint kp_hook_add_taps(const void *taps, unsigned count) { return !taps || !count; }\n")
    sources = [harness.ROOT / "preload/run.c"]
    sources += [path for room in ("preload/python", "schedule", "collector/record", "collector/base") for path in (harness.ROOT / room).rglob("*.c")]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", '-DKP_VERSION="test"', "-shared", "-fPIC", "-O0",
                    "-I", harness.ROOT, *sources, hook, "-Wl,-z,defs", "-o", library, "-lm"], check=True)
    return library


def pythons():
    """{version: interpreter} of those installed here, and of KPROF_PYTHONS (a list with colons); "3.14t" has no GIL."""
    found = {"%d.%d" % sys.version_info[:2]: sys.executable}
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    more = [path for path in os.environ.get("KPROF_PYTHONS", "").split(":") if os.path.exists(path)]
    for path in [*more, *glob.glob("/usr/bin/python3.*[0-9]"), *map(str, (root / "versions").glob("3.*/bin/python3"))]:
        said = subprocess.run([path, "-c", "import sys; print('%d.%d%s' % (*sys.version_info[:2], getattr(sys, 'abiflags', '')))"],
                              capture_output=True, text=True)
        if said.returncode == 0:
            found.setdefault(said.stdout.strip() + (" (system)" if path.startswith("/usr") else ""), path)
    return found


PYTHONS = pythons()
KNOWN = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


def ask(python, library, folder, place):
    script = folder / place / "optim" / "optimizer.py"
    shutil.copytree(harness.SCRIPTS / "frames" / "optim", script.parent)
    done = subprocess.run([python, script, library], capture_output=True, text=True, timeout=harness.LONG, env=harness.clean_environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("place", ["plain", "blåbær", "日本語", "🐍"])
@pytest.mark.parametrize("version", KNOWN + [version for version in PYTHONS if version not in KNOWN])
def test_frames_are_read_in_this_python(walk, tmp_path, version, place):
    if version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    known = version.split()[0] in KNOWN
    assert ask(PYTHONS[version], walk, tmp_path, place) == ("found" if known else "not found")


# ---- calls of Python functions ----

CALLS = [("step", "__main__:step"), ("generators", "__main__:items"), ("at_once", "__main__:request"), ("imported", "served:serve_one"),
         ("failing", "__main__:fails"), ("reloaded", "served:serve_one"), ("monitored", "__main__:step")]  # in each Python
MORE_CALLS = [("step", "*:st?p"), ("methods", "__main__:Server.answer"), ("static", "__main__:Server.fixed"), ("class", "__main__:*.made"),
              ("instance", "__main__:Server.__call__"), ("in_turn", "__main__:request"), ("decorated", "__main__:decorated"),
              ("recursive", "__main__:recursive"), ("threads", "__main__:step"), ("imported", "*:serve_*"), ("from_c", "__main__:step"),
              ("deleted", "__main__:step"), ("generators_kept", "__main__:items"), ("generators_cut", "__main__:items"),
              ("looked_at", "__main__:step"), ("new_code", "__main__:step"), ("profiled", "__main__:step"),
              ("cprofiled", "__main__:step"), ("forks", "__main__:forks"), ("in_daemon", "__main__:step"), ("exits", "__main__:step")]


def calls(folder, kind, name, python=sys.executable, **settings):
    run = harness.run_kprof("calls.py", folder, kind, python=python, shapes=False, schedule=NEVER, KPROF_STEP=f"call:{name}", **settings)
    return steps_of(run.ok())


@pytest.mark.parametrize("version", KNOWN)
def test_each_call_is_a_step_in_this_python(tmp_path, version):
    if version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    assert {kind: calls(tmp_path, kind, name, PYTHONS[version]) for kind, name in CALLS} == {kind: (12, 12) for kind, _ in CALLS}


@pytest.mark.parametrize("kind, name", MORE_CALLS)
def test_each_outermost_call_is_a_step(tmp_path, kind, name):
    assert calls(tmp_path, kind, name) == (12, 12)


@pytest.mark.parametrize("rule", ["call:__main__:answer", "range:^answer$", "op:^aten::tanh$", "time:50ms", "auto"])
def test_a_step_that_the_user_named_is_marked_without_a_schedule(tmp_path, rule):
    script = tmp_path / "program.py"
    script.write_text("""import time, torch
def answer():
    with torch.profiler.record_function("answer"): time.sleep(0.03); return torch.ones(2, 8).tanh()
for _ in range(9): answer()
""")
    run = harness.run_kprof(script, tmp_path / "out", shapes=False, schedule=None, KPROF_STEP=rule).ok()
    marks = facts.steps(facts.load(run.trace))
    if rule == "auto":
        assert not marks and "steps by" not in run.err, run.explain()
        return
    said = int(re.search(r"\((\d+) steps by ", run.err)[1])
    whole = [e for e in marks if not e["args"].get("partial")]
    assert said - len(whole) == 1 and len(whole) >= (3 if rule.startswith("time") else 8), run.explain()  # step 0 has the start-up in it
    assert "until the program's end" not in run.err, run.explain()
    assert f", {len(whole)} steps (1 to {len(whole)})\n" in harness.cli("report", run.trace).stdout
    assert json.loads(harness.cli("advise", "--json", run.trace).stdout)["steps"] == len(whole)


def test_a_call_that_never_came_is_said(tmp_path):
    run = harness.run_kprof("calls.py", tmp_path, "step", shapes=False, schedule="active=1000", KPROF_STEP="call:served:no_such").ok()
    assert f"(0 steps: call:served:no_such {UNMET}; {REMEDY}; " in run.err, run.explain()
    assert f"\n         call:served:no_such {UNMET}; {REMEDY}\n" in harness.cli(
        "report", run.trace).stdout


UNNAMED = "has such a name; kprof events lists the names"


@pytest.mark.parametrize("asked, said", [
    ("op:aten::nope", f"op:aten::nope never came: no op {UNNAMED}"),
    ("range:nope", f"range:nope never came: no record_function range {UNNAMED}"),
    ("call:*:nofunc", f"call:*:nofunc {UNMET}; {REMEDY}")])
def test_a_step_that_no_name_matched_is_said(mini, tmp_path, asked, said):
    script = mini("for _ in range(3): op(b'aten::sum')\n")
    run = harness.run_kprof(script, tmp_path / "out", shapes=False, schedule="active=1000", KPROF_STEP=asked).ok()
    assert f"(0 steps: {said}; " in run.err, run.explain()
    assert f" {said}\n" in harness.cli("report", run.trace).stdout


@pytest.mark.parametrize("asked, meant", [("__main__:train_stp", "__main__:train_step"), ("__main__:Server.answerr", "__main__:Server.answer"),
                                          ("__main__:Serverr.answer", "__main__:Server.answer"), ("__main__:nothing_like_it", None)])
def test_a_misspelt_call_is_told_by_all_with_the_function_that_was_meant(mini, tmp_path, asked, meant):
    script = tmp_path / "program.py"
    script.write_text("""import torch
class Server:
    def answer(self): return torch.ones(2, 8).sum()
def train_step(): return torch.nn.Linear(8, 8)(torch.ones(2, 8)).sum().backward()
for _ in range(3):
    train_step(), Server().answer()
""")
    run = harness.run_kprof(script, tmp_path / "out", shapes=False, schedule="active=1000", KPROF_STEP=f"call:{asked}", KPROF_PROFILE_MEMORY="1").ok()
    remedy = f"did you mean call:{meant}?" if meant else REMEDY
    assert f"(0 steps: call:{asked} {UNMET}; {remedy}; " in run.err, run.explain()
    for command in ("report", "advise", "memory"):
        assert f"call:{asked} {UNMET}; {remedy}\n" in harness.cli(command, run.trace).stdout, command
    assert "INCOMPLETE  call:" in harness.cli("advise", run.trace).stdout
    script = mini("""
class Server:
    def answer(self): return op(b"aten::sum")
def train_step(): return op(b"aten::linear")
for _ in range(3):
    train_step(), Server().answer()
""")
    none = harness.run_kprof(script, tmp_path / "none", shapes=False, schedule="wait=1,active=1", KPROF_STEP=f"call:{asked}").ok()
    assert ("end; did you mean" in none.err) == bool(meant), none.explain()


def test_the_search_for_a_misspelt_call_runs_no_code_of_other_classes(mini, tmp_path):
    """A metaclass may make what it is asked for."""
    script = mini("""
class Meta(type):
    def __getattr__(cls, name): print("asked", cls.__name__, name); raise AttributeError(name)
class Elsewhere(metaclass=Meta): pass
class Server:
    def answer(self): return op(b"aten::sum")
for _ in range(3): Server().answer()
""")
    run = harness.run_kprof(script, tmp_path / "out", shapes=False, schedule="active=1000", KPROF_STEP="call:__main__:Sever.answer").ok()
    assert "did you mean call:__main__:Server.answer?" in run.err and run.out == "", run.explain()


def test_a_program_that_ends_behind_its_last_call_was_not_cut_short(tmp_path):
    run = harness.run_kprof("calls.py", tmp_path, "looked_at", shapes=False, schedule="active=1000", KPROF_STEP="call:__main__:step").ok()
    assert "steps by call" in run.err and "cut short" not in run.err, run.explain()
    assert "cut short" not in harness.cli("report", run.trace).stdout


def test_generate_leads_to_its_tokens(tmp_path):
    harness.needs("transformers")
    run = harness.run_kprof("inference.py", tmp_path, "generate", schedule="active=1000").ok()
    model = facts.load(run.trace)["kprof"]["model"]
    said = harness.cli("report", run.trace).stdout
    assert re.fullmatch(r"transformers\.models\.\w+\.\w+:\w+\.forward", model), model
    assert f"         To count each call of the model (a token): --step call:{model}\n" in said, said
    tokens = harness.run_kprof("inference.py", tmp_path / "tokens", "generate", schedule="active=1000", KPROF_STEP=f"call:{model}").ok()
    whole, each = (int(re.search(r"\((\d+) steps by call", r.err)[1]) for r in (run, tokens))
    assert whole == 8 and each > whole, tokens.explain()
    advice = harness.cli("advise", tokens.trace).stdout  # the first step has the start of recording in it, and is left out
    found = re.search(r"note     steps ([\d, ]+?)(?: and (\d+) more)?(?:, each \d+\w+ step,)? process a prompt, [\d.]+ ms \(median of 7\); the other steps .*, "
                      rf"[\d.]+ ms \(median of {each - 8}\)\n", advice)
    assert found and {int(n) % (each // 8) for n in found[1].split(", ")} == {0}, advice


def test_a_token_of_an_encoder_and_decoder_is_a_call_of_both(tmp_path):
    """The encoder is called first, once an answer."""
    harness.needs("transformers")
    run = harness.run_kprof("inference.py", tmp_path, "encoded", schedule="active=1000").ok()
    model = facts.load(run.trace)["kprof"]["model"]
    assert model == "transformers.models.whisper.modeling_whisper:WhisperForConditionalGeneration.forward", model
    tokens = harness.run_kprof("inference.py", tmp_path / "tokens", "encoded", schedule="active=1000", KPROF_STEP=f"call:{model}").ok()
    assert "(40 steps by call" in tokens.err, tokens.explain()


def test_a_function_that_is_not_there_counts_nothing(tmp_path):
    run = harness.run_kprof("calls.py", tmp_path, "step", shapes=False, schedule=NEVER, KPROF_STEP="call:served:no_such").ok()
    assert "iterations 12" in run.out


@pytest.mark.parametrize("kind, rule", [
    ("generate", "auto"), ("compiled", "call:__main__:answer"), ("vllm", "auto"), ("vllm_worker", "auto"), ("sglang", "auto"),
    pytest.param("pipeline", "auto", marks=pytest.mark.slow), pytest.param("asyncio", "call:__main__:answer_later", marks=pytest.mark.slow)])
def test_a_window_of_inference_holds_two_requests(tmp_path, kind, rule):
    if kind in ("generate", "pipeline"):
        harness.needs("transformers")
    run = harness.run_kprof("inference.py", tmp_path, kind, schedule="wait=1,warmup=1,active=2,repeat=1", KPROF_STEP=rule).ok()
    assert "iterations 8" in run.out and re.search(r"\(2 steps by call( of __main__:answer\w*)?, ", run.err), run.explain()
    assert facts.requests_of_steps(facts.load(run.trace)) == [1, 1]


@pytest.mark.parametrize("kind", ["bare", "nested", "threads", "asyncio_alone", "compiled_model", "scripted"])
def test_calls_of_a_model_are_steps_where_nothing_else_is(tmp_path, kind):
    """Nothing is set but the schedule; after 16 calls they count."""
    run = harness.run_kprof("inference.py", tmp_path, kind, schedule="wait=1,warmup=1,active=2,repeat=1").ok()
    assert "iterations 24" in run.out and "(2 steps by module (the first 16 calls not counted)," in run.err, run.explain()
    assert "not taken" not in run.err, run.explain()
    assert facts.requests_of_steps(facts.load(run.trace)) == [1, 1]


@pytest.mark.parametrize("where, before", [("loader", 0), ("prepared", 1), ("evaluated", 1)])
def test_modules_that_are_not_trained_do_not_spend_the_schedule(tmp_path, where, before):
    """Their calls may count while nothing else does: the optimizer's first step begins the schedule anew."""
    run = harness.run_kprof("before_training.py", tmp_path, where, schedule="wait=2,warmup=1,active=2,repeat=1").ok()
    assert len(run.traces) == before + 1, run.explain()
    trace = facts.load(run.traces[-1])
    steps = facts.steps(trace)
    assert [e["name"] for e in steps] == ["ProfilerStep#3", "ProfilerStep#4"], run.explain()
    ends = [facts.begin(e) for e in facts.spans(trace) if e["name"].startswith("Optimizer.step#")]
    assert [sum(facts.begin(step) <= at < facts.end(step) for at in ends) for step in steps] == [1, 1], run.explain()
    told = "(2 steps by optimizer, and 2 by calls of a model before its first, " if before else "(2 steps by optimizer, "
    assert told in run.err, run.explain()
    assert facts.load(run.traces[0])["kprof"]["step_source"] == ("module" if before else "optimizer")


def test_steps_that_were_guessed_until_the_optimizers_first_are_told(tmp_path):
    """64 calls of the model come before the training; from the 17th on they count, with the one of the training's first step."""
    run = harness.run_kprof("before_training.py", tmp_path, "evaluated", schedule="wait=1,warmup=1,active=100").ok()
    guessed, trained = run.traces
    assert re.search(r"\(10 steps by optimizer, and 48 by calls of a model before its first, ", run.err), run.explain()
    ours = facts.load(guessed)["kprof"]
    assert (ours["step_source"], ours["steps_until"]) == ("module", "optimizer")
    assert "steps_until" not in facts.load(trained)["kprof"]
    told = "\n         a step is a call of a model and the time since the call before: they ran before the first step by optimizer\n"
    assert told in harness.cli("report", guessed).stdout and "a step is" not in harness.cli("report", trained).stdout
    both = harness.cli("advise", guessed, trained).stdout
    assert both.index(str(trained)) < both.index(str(guessed)) < both.index("guess    before the training (") < both.index(" are calls of a model: ")


def test_the_closing_line_leaves_out_the_batches_of_an_optimizer(tmp_path):
    run = harness.run_kprof("data_loader.py", tmp_path, "fork", "40").ok()
    assert re.search(r"\(3 steps by optimizer, .* 0 dropped\)", run.err), run.explain()


def test_an_actor_of_ray_has_a_step_for_each_request(tmp_path):
    """The actor is a process of its own, started by daemons of Ray. Its driver has no steps and says so."""
    harness.needs("ray")
    run = harness.run_kprof("ray_actor.py", tmp_path, schedule="wait=1,warmup=1,active=2,repeat=1", RAY_USAGE_STATS_ENABLED=0).ok()
    assert "iterations 24" in run.out, run.explain()
    assert facts.requests_of_steps(facts.load(run.trace)) == [1, 1]
