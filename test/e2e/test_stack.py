# SPDX-License-Identifier: Apache-2.0
"""KPROF_WITH_STACK: calls of Python functions beside torch.profiler's with_stack, and in every Python there is beside sys.setprofile."""
import collections
import json
import re
import shutil
import subprocess

import pytest

import facts
import harness
from test_steps import KNOWN, PYTHONS

STEPPED = {"KPROF_STEP": "api", "KPROF_GZIP": "0"}

OWN_PROFILE = "profile function of its own"


def run(python, torch_double, folder, how, stack="1"):
    return harness.run_kprof("python_calls.py", folder, torch_double, how, python=python, shapes=False, KPROF_WITH_STACK=stack, **STEPPED).ok()


def calls_in(trace):
    return [e for e in trace["traceEvents"] if e.get("cat") == "python_function"]


def is_ours(name):
    """Of this program's own frames and the C functions in them: threading differs from run to run."""
    return "python_calls.py" in name


def versions(**marks):
    return pytest.mark.parametrize("version", KNOWN, **marks)


def python_of(version):
    if version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    return PYTHONS[version]


@versions()
def test_the_calls_are_those_that_sys_setprofile_sees(torch_double, tmp_path, version):
    python = python_of(version)
    said = harness.run_plain("python_calls.py", tmp_path / "oracle", torch_double, "oracle", python=python).ok()
    oracle = collections.Counter(json.loads(said.out.splitlines()[0]))
    trace = facts.load(run(python, torch_double, tmp_path / "ours", "plain").trace)
    calls = calls_in(trace)
    began = [e for e in calls if not e["name"].endswith((": main", ": <module>", ": step", ": early"))]
    ours = collections.Counter(e["name"].rpartition("/")[2] for e in began if is_ours(e["name"]))
    theirs = collections.Counter({name: n for name, n in oracle.items() if is_ours(name) and not name.endswith(": step")})
    theirs["python_calls.py(%d): op" % line_of("def op")] += 3  # of the thread that was there: sys.setprofile is for new ones
    assert ours == theirs
    built_in = collections.Counter(re.match(r"<built-in (?:method|function) (\w+)", e["name"])[1] for e in calls
                                   if e["name"][0] == "<" and is_ours(e["args"]["CallFrom"]))
    assert built_in == collections.Counter({name[2:]: n for name, n in oracle.items() if name.startswith("C ") and name != "C setprofile"})
    assert built_in["len"] == built_in["sorted"] == built_in["send"] == 3
    by_id = {e["args"]["Python id"]: e for e in calls}
    assert sorted(by_id) == list(range(1, len(calls) + 1))
    for e in calls:
        parent = by_id.get(e["args"].get("Python parent id"))
        if parent:
            assert parent["tid"] == e["tid"] and facts.begin(parent) <= facts.begin(e) and facts.end(e) <= facts.end(parent), (parent, e)
    depth = [e for e in calls if e["name"].endswith(": recurse")]
    assert len(depth) == 63 and all(": recurse" in by_id[e["args"]["Python parent id"]]["name"] for e in depth[1:21])
    late = [e for e in calls if e["name"].endswith(": late")]
    assert len(late) == 3 and len({e["tid"] for e in late}) == 3
    assert all(by_id[e["args"]["Python parent id"]]["name"].endswith(": run") for e in late)


@versions()
def test_calls_that_end_roughly_are_those_that_sys_setprofile_sees(torch_double, tmp_path, version):
    """900 deep, by exceptions through all of them, generators closed and thrown into, coroutines, short threads, under a trace function."""
    python = python_of(version)
    plain = harness.run_plain("python_rough.py", tmp_path / "oracle", torch_double, "oracle", python=python).ok()
    ours = harness.run_kprof("python_rough.py", tmp_path / "ours", torch_double, "plain", python=python, shapes=False, KPROF_WITH_STACK="1", **STEPPED).ok()
    seen, _, traced = plain.out.partition("\n")
    assert ours.out == traced and "'deep'" in traced
    theirs = collections.Counter({name: n for name, n in json.loads(seen).items() if "python_rough.py" in name and not name.endswith(": step")})
    calls = calls_in(facts.load(ours.trace))
    mine = collections.Counter(e["name"].rpartition("/")[2] for e in calls if "python_rough.py" in e["name"]
                               and not e["name"].endswith((": main", ": <module>", ": step", ": crossing")))
    assert mine == theirs
    by_id = {e["args"]["Python id"]: e for e in calls}
    deepest = max(sum(1 for _ in callers(by_id, e)) for e in calls)
    assert deepest > 900 and not any(OWN_PROFILE in line for line in ours.said), ours.explain()
    for e in calls:
        parent = by_id.get(e["args"].get("Python parent id"))
        assert not parent or (parent["tid"] == e["tid"] and facts.begin(parent) <= facts.begin(e) and facts.end(e) <= facts.end(parent)), (parent, e)


def callers(by_id, e):
    while e is not None:
        yield e
        e = by_id.get(e["args"].get("Python parent id"))


def line_of(text):
    lines = (harness.SCRIPTS / "python_calls.py").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.startswith(text))


@versions()
def test_ops_alone_carry_the_lines_that_run(torch_double, tmp_path, version):
    trace = facts.load(run(python_of(version), torch_double, tmp_path, "plain", stack="ops").trace)
    assert not calls_in(trace)
    stacks = collections.defaultdict(set)
    for e in facts.spans(trace):
        stacks[e["name"]].add(re.sub(r"\S*/(?=[\w.]+\()", "", e["args"].get("Call stack", "")))
    inner = f"python_calls.py({line_of('def op') + 1}): op;python_calls.py("
    assert len(stacks["aten::add"]) == 1 and len(stacks["aten::late"]) == 1
    (add,), (late,) = stacks["aten::add"], stacks["aten::late"]
    assert add.startswith(f"{inner}{line_of('def work') + 2}): work;python_calls.py(") and add.endswith("): <module>;")
    assert late.startswith(f"{inner}{line_of('def late') + 1}): late;threading.py(") and late.endswith("): _bootstrap;")


@versions()
def test_ops_beside_calls_carry_the_line_that_called_them(torch_double, tmp_path, version):
    """The double's op is an object of ctypes: no call of C that Python tells of."""
    trace = facts.load(run(python_of(version), torch_double, tmp_path, "plain").trace)
    lines = collections.defaultdict(set)
    for e in facts.spans(trace):
        if e.get("cat") == "cpu_op":
            lines[e["name"]].add(e["args"].get("CallFrom", "").rpartition("/")[2])
    called = {f"python_calls.py:{line_of('def op') + 1}"}
    assert lines["aten::add"] == called and lines["aten::late"] == called, lines


@versions()
@pytest.mark.parametrize("how", ["own_before", "own_within", "own_removed", "cprofile", "cprofile_around"])
def test_a_program_keeps_its_own_profile_function(torch_double, tmp_path, version, how):
    """And calls are recorded before it is there and behind it: the window has the program's work three times, numbers 2 to 4."""
    python = python_of(version)
    plain = harness.run_plain("python_calls.py", tmp_path / "plain", torch_double, how, python=python).ok()
    ours = run(python, torch_double, tmp_path / "ours", how)
    assert ours.out == plain.out and "done" in ours.out
    shares = how.startswith("cprofile") and version in ("3.12", "3.13", "3.14")  # there it is no profile function
    said = [line for line in ours.said if OWN_PROFILE in line]
    assert len(said) == (0 if shares else 1), ours.explain()
    if how.startswith("cprofile"):
        assert re.search("'recurse', ('step', )?'throw', 'work'", ours.out)
    else:
        assert re.search(r"own calls (\d+)", ours.out)[1] == {"own_before": "6", "own_within": "3", "own_removed": "1"}[how]
    calls = calls_in(facts.load(ours.trace))
    works = [e for e in calls if e["name"].endswith(": work")]
    assert len(works) == (3 if shares else {"own_before": 0, "own_within": 1, "own_removed": 2, "cprofile": 2, "cprofile_around": 1}[how])
    for e in calls:  # what sets the other function ends there
        if re.match(r"<built-in (method enable|function setprofile)", e["name"]):
            assert e["dur"] < 1000, e
    if how in ("own_within", "own_removed", "cprofile") and not shares:
        mains = [e for e in calls if e["name"].endswith(": main") and "further part" not in e["args"]]
        assert len(mains) == (1 if how == "own_within" else 2), mains


@versions()
def test_a_programs_profile_function_sees_what_it_sees_without_us(torch_double, tmp_path, version):
    python = python_of(version)
    plain = harness.run_plain("own_profile.py", tmp_path / "plain", torch_double, python=python).ok()
    ours = harness.run_kprof("own_profile.py", tmp_path / "ours", torch_double, python=python, shapes=False, KPROF_WITH_STACK="1",
                             schedule="wait=0,warmup=0,active=1,repeat=0", **STEPPED).ok()
    assert plain.out.count("c_return") > 6
    assert ours.out.splitlines() == plain.out.splitlines()
    assert any(OWN_PROFILE in line for line in ours.said), ours.explain()


FIELDS = 7  # as python_find.c spoils them; two in each Python


@pytest.mark.parametrize("version, field", [(version, 1 + (2 * i + more) % FIELDS) for i, version in enumerate(KNOWN) for more in (0, 1)])
def test_a_python_with_a_field_elsewhere_is_left_alone_with_one_line(torch_double, tmp_path, version, field):
    python = python_of(version)
    done = harness.run_kprof("python_calls.py", tmp_path, torch_double, "plain", python=python, shapes=False, KPROF_WITH_STACK="1",
                             KPROF_TEST_FAIL=f"layout:1:{field}", **STEPPED).ok()
    assert "done" in done.out and not calls_in(facts.load(done.trace))
    assert sum("its frames are not where they should be" in line for line in done.said) == 1, done.explain()


def test_a_python_without_a_gil_is_left_alone_with_one_line(torch_double, tmp_path):
    free = [python for version, python in PYTHONS.items() if version.endswith("t")]
    if not free:
        pytest.skip("no Python without a GIL here (KPROF_PYTHONS)")
    done = run(free[0], torch_double, tmp_path, "plain")
    assert "done" in done.out and not calls_in(facts.load(done.trace))
    assert sum("without a GIL: its frames are not known here" in line for line in done.said) == 1, done.explain()


# ---- beside torch.profiler ----


def test_torchs_own_profiler_with_stacks_tells_what_it_tells_without_us(tmp_path):
    check_own_profiler(tmp_path)


def check_own_profiler(folder, **python):
    plain = harness.run_plain("stack_own.py", folder / "plain", **python).ok()
    ours = harness.run_kprof("stack_own.py", folder / "ours", schedule=None, KPROF_WITH_STACK="1", **python).ok()
    assert [n for name, n in json.loads(plain.out).items() if name.startswith("python_function") and name.endswith("): work")] == [3]
    assert ours.out == plain.out, ours.explain()


OWN = re.compile(r"torch/profiler/profiler\.py|kineto\.py|runpy")


def window_of(trace):
    steps = facts.steps(trace)
    return facts.begin(steps[0]), facts.end(steps[-1])


def counted(trace):
    """Calls that begin in the window, without those of torch.profiler itself and of what runs it."""
    low, high = window_of(trace)
    calls = calls_in(trace)
    by_id = {e["args"]["Python id"]: e for e in calls}

    def is_own(e):
        if OWN.search(e["name"]) or (e["name"][0] == "<" and OWN.search(e["args"].get("CallFrom", ""))):
            return True
        while e is not None:
            if e["name"].startswith("torch/profiler/profiler.py") or facts.WAITS.match(e["name"]):
                return True
            e = by_id.get(e["args"].get("Python parent id"))
        return False

    return collections.Counter(re.sub(r" at 0x[0-9a-f]+", "", e["name"]) for e in calls if low < facts.begin(e) < high and not is_own(e))


@pytest.mark.parametrize("program", ["transformer.py", "lstm.py", "gan.py", "threads.py", "calls_in_torch.py"])
def test_calls_are_those_of_torch_profiler(oracle, ours, program):
    settings = {"KPROF_STEP": "range:Optimizer.step#"} if program == "gan.py" else {}
    theirs = counted(facts.load(oracle(program, stack=True).trace))
    mine = counted(facts.load(ours(program, KPROF_WITH_STACK=1, **settings).trace))
    common = sum((theirs & mine).values())
    assert common / max(sum(theirs.values()), sum(mine.values())) >= 0.99, ((theirs - mine).most_common(8), (mine - theirs).most_common(8))



@versions()
def test_a_class_may_be_gone_when_its_method_is_called_again(torch_double, tmp_path, version):
    run_ = harness.run_kprof("python_gone_class.py", tmp_path, torch_double, python=python_of(version), shapes=False, KPROF_WITH_STACK="1", **STEPPED).ok()
    names = {e["name"] for e in calls_in(facts.load(run_.trace))}
    assert any(re.match(r"<built-in method append of Gonex{40} object at 0x", name) for name in names), names

def test_modules_are_named_and_numbered_as_torch_profiler_does(oracle, ours):
    def modules(run):
        return collections.Counter((e["name"], e["args"]["Python module id"]) for e in calls_in(facts.load(run.trace)) if "Python module id" in e["args"])

    mine = modules(ours("transformer.py", KPROF_WITH_STACK=1))
    assert mine == modules(oracle("transformer.py", stack=True)) and sum(mine.values()) > 20


def test_a_program_under_its_own_torch_profiler_keeps_its_calls(tmp_path):
    own = tmp_path / "own.json"
    run_ = harness.run_kprof("stack_profiled.py", tmp_path / "ours", own, KPROF_WITH_STACK=1, shapes=False).ok()
    names = [e["name"] for e in calls_in(facts.load(own))]
    assert sum(name.endswith(": inside") for name in names) == 3
    assert sum(OWN_PROFILE in line for line in run_.said) == 1, run_.explain()


def test_stacks_of_a_run_are_folded_as_torch_exports_them(tmp_path):
    trace, exported = tmp_path / "verbose.json", tmp_path / "stacks.txt"
    harness.run_plain("stack_exported.py", tmp_path, trace, exported, warm_start=True).ok()
    lines = exported.read_text()
    assert len(lines.splitlines()) > 50
    assert harness.cli("stacks", "--torch", trace).stdout == lines
    said = facts.load(trace)  # what torch leaves out of files that are not verbose is found again
    for e in said["traceEvents"]:
        e.get("args", {}).pop("Call stack", None)
    (tmp_path / "bare.json").write_text(json.dumps(said))
    assert harness.cli("stacks", "--torch", tmp_path / "bare.json").stdout == lines


def test_a_flame_graph_of_our_own_run_opens(ours, tmp_path):
    run_ = ours("transformer.py", KPROF_WITH_STACK=1)
    svg = harness.cli("stacks", run_.trace, "--svg").stdout
    (tmp_path / "flames.svg").write_text(svg)
    assert svg.count('<g class="b"') > 20 and "nn.Module: " in svg
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no browser here to open it with")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
                           f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom",
                           (tmp_path / "flames.svg").as_uri()], capture_output=True, text=True, timeout=harness.LONG)
    assert 'width="100%" height="' in done.stdout and 'width="100%" height="' not in svg.split("<rect")[0], done.stdout[:500]  # the script ran


@versions()
def test_a_program_that_trains_on_at_exit_prints_nothing_new(torch_double, tmp_path, version):
    """3.8 takes no calls for its main thread from there on, and tells the main thread so, also while another one asks."""
    python, options = python_of(version), dict(KPROF_PYTHON_GC="1", KPROF_COMPILE_RANGES="1")
    plain = harness.run_plain("python_late.py", tmp_path / "plain", torch_double, python=python).ok()
    ours = harness.run_kprof("python_late.py", tmp_path / "ours", torch_double, python=python, KPROF_WITH_STACK="1",
                             **options, **STEPPED).ok()
    assert ours.out == plain.out == "trained\n"
    assert "SystemError" not in ours.err, ours.explain()
