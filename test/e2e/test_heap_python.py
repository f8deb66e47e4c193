# SPDX-License-Identifier: Apache-2.0
"""KPROF_MALLOC=trace with KPROF_WITH_STACK: a block's stack names Python's lines between the C that runs them."""
import json
import os
import re
import shutil
import subprocess

import pytest

import facts
import harness
import spoolrecords
from test_heap import SOURCE, profile_of

PROGRAM = SOURCE / "pyleaks.py"


def line_of(mark):
    return next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))


@pytest.fixture(scope="session")
def cleaks(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    library = tmp_path_factory.mktemp("cleaks") / "libcleaks.so"
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", SOURCE / "cleaks.c", "-o", library, "-pthread"], check=True)
    return library


def record(folder, *args, stack="ops", schedule=None):
    return harness.run_kprof(None, folder, command=[harness.PYTHON, PROGRAM, *args], schedule=schedule, shapes=False,
                             KPROF_MALLOC="trace", KPROF_WITH_STACK=stack).ok()


def folded(run, *flags, by="leaked"):
    """[(frames from the outermost on, bytes)] of the profile beside the trace."""
    said = harness.cli("memory", profile_of(run.trace), "--format", "folded", "--by", by, *flags)
    assert said.returncode == 0, said.stderr
    lines = [line.rsplit(" ", 1) for line in said.stdout.splitlines()]
    return [(frames.split(";"), int(size)) for frames, size in lines]


AT_END = "still there at the end"


def of_python(frames):
    return [frame for frame in frames if re.search(r"\(\d+\): ", frame)]


def at(frame, mark, function):
    return frame.endswith(f"pyleaks.py({line_of(mark)}): {function}")


@pytest.mark.parametrize("stack", ["ops", "native", "1"])
def test_leaked_lists_name_their_line(stack, tmp_path):
    run = record(tmp_path, "lists", stack=stack)
    left = [(frames, size) for frames, size in folded(run, "--all-frames") if of_python(frames) and at(of_python(frames)[-1], "lists", "leak_lists")]
    assert 7 * 30_000 * 8 <= sum(size for _, size in left) < 7 * 30_000 * 8 + 10_000
    frames = max(left, key=lambda one: one[1])[0]
    python = [n for n, frame in enumerate(frames) if frame in of_python(frames)]
    # C around the module's code and inside the function; the two of Python follow on each other
    assert python[0] > 0 and python[-1] < len(frames) - 1 and python == list(range(python[0], python[-1] + 1))
    assert frames[python[0]].endswith(": <module>") and frames[python[0] - 1].startswith("_PyEval_EvalFrameDefault")
    for frames, _ in folded(run):  # where Python's lines stand, the interpreter's calls do not
        assert not of_python(frames) or not any("_PyEval_EvalFrameDefault" in frame for frame in frames), frames
    drawn = [harness.cli("memory", profile_of(run.trace), "--svg", "--by", "leaked", *flags).stdout for flags in ([], ["--all-frames"])]
    assert "leak_lists" in drawn[0] and "leak_lists" in drawn[1]
    assert drawn[0].count("_PyEval_EvalFrameDefault") < drawn[1].count("_PyEval_EvalFrameDefault")


def test_leaked_tensors_name_their_line(tmp_path):
    run = record(tmp_path, "tensors", schedule="none")
    profile, size = profile_of(run.trace), 11 * 1000 * 50 * 4
    left = [(frames, n) for frames, n in folded(run) if n == size]
    assert len(left) == 1, left
    frames = left[0][0]
    assert at(of_python(frames)[-1], "tensors", "leak_tensors")
    inside = frames[frames.index(of_python(frames)[-1]) + 1:]
    assert any("THPVariable" in frame or "torch" in frame or "at::" in frame for frame in inside)
    said = harness.cli("memory", run.trace).stdout.split(AT_END)[1].split("there at the peak")[0]
    assert f"{size / (1 << 20):.2f} MiB in 11 blocks" in said and f"leak_tensors at {PROGRAM.name}:{line_of('tensors')} in Python\n" in said
    sites = facts.load(run.trace)["kprof_heap"]["sites"]
    stack = next(site["stack"] for site in sites if site["live_bytes"] == size)
    assert any(at(frame, "tensors", "leak_tensors") for frame in stack)
    found = json.loads(harness.cli("memory", profile, "--format", "json").stdout)
    functions = [one for address in found["addresses"] for one in address["functions"] if address["module"] == "Python"]
    assert {"name": "leak_tensors", "file": PROGRAM.name, "line": line_of("tensors")} in functions


def test_heaptrack_and_pprof_name_the_line(tmp_path):
    """Of a program without torch: pprof takes half a minute of a core to read the import's blocks, of which it tells nothing more."""
    if not shutil.which("heaptrack_print") and not shutil.which("go"):
        pytest.skip("no heaptrack_print and no go")
    profile = profile_of(record(tmp_path, "lists").trace)
    if shutil.which("heaptrack_print"):
        said = subprocess.run(["heaptrack_print", "-m", "0", "-p", "0", "-T", "0", "-a", "0", "-l", "1", "-n", "30", profile],
                              capture_output=True, text=True, timeout=harness.LONG, check=True).stdout
        assert re.search(rf"^ *leak_lists\n +at .*pyleaks.py:{line_of('lists')}$", said, re.M)
    if shutil.which("go"):
        assert harness.cli("memory", profile, "--format", "pprof", "-o", tmp_path / "p.pb").returncode == 0
        said = subprocess.run(["go", "tool", "pprof", "-top", "-cum", "-lines", "-nodecount=3000", "-sample_index=inuse_space",
                               tmp_path / "p.pb"], check=True, capture_output=True, text=True, timeout=harness.LONG,
                              env=os.environ | {"HOME": str(tmp_path)}).stdout
        assert re.search(rf"leak_lists .*pyleaks.py:{line_of('lists')}$", said, re.M)


def test_a_thread_that_never_ran_python_has_no_line(cleaks, tmp_path):
    left = {n: frames for frames, n in folded(record(tmp_path, "c", cleaks))}
    assert at(of_python(left[123_456])[-1], "released", "leak_in_c") and left[123_456][-1] == "leak_here"
    assert not of_python(left[234_567]) and "leak_there" in left[234_567]
    assert not of_python(left[345_678]) and "on_signal" in left[345_678]  # nor has a handler


PLAIN = """keep = []
def cache(bytes_each):
    for i in range(30):
        keep.append(bytes(bytes_each + i))  # plain
def main():
    import time
    for i in range(200):
        cache(20000)
        time.sleep(0.005)
main()
"""


def test_a_script_without_extension_modules_names_its_line(tmp_path):
    """No library is loaded after Python's start, and Python gives back at its end what the script kept."""
    script = tmp_path / "plain.py"
    script.write_text(PLAIN)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, "-S", script], schedule="active=1000", shapes=False,
                            KPROF_STEP="time:100ms", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    line = PLAIN.split("# plain")[0].count("\n") + 1
    said = harness.cli("memory", profile_of(run.trace)).stdout.split("what the program kept until Python ended, most bytes first:\n")[1]
    first = said.splitlines()
    assert re.fullmatch(r" +11[45]\.\d\d MiB in 6000 blocks", first[0]) and first[1].strip() == f"your line: cache at plain.py:{line}"
    leaks = harness.cli("memory", "--leaks", run.trace).stdout
    assert "still there when the last began" in leaks
    where = leaks.split("where, most bytes first:\n")[1].splitlines()
    assert "step" in where[0] and where[1].strip() == f"your line: cache at plain.py:{line}"


def test_without_stacks_there_is_none_of_python(tmp_path):
    assert not any(of_python(frames) for frames, _ in folded(record(tmp_path, "lists", stack="0"), by="allocated"))


def test_leaks_of_each_step(tmp_path):
    """The kept tensors are there, by step and line; `still there` of a step's site is what the program kept."""
    run = harness.run_kprof(None, tmp_path, command=[harness.PYTHON, SOURCE / "stepleaks.py"], shapes=False,
                            schedule="wait=1,warmup=1,active=5,repeat=1", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    assert run.said[-1].endswith(f"; next: kprof memory {tmp_path}"), run.explain()  # it has ops, but the heap was asked for
    profile = profile_of(run.trace)
    found = json.loads(harness.cli("memory", profile, "--format", "json").stdout)
    steps = [one["step"] for one in found["steps"]]
    assert steps == [2, 3, 4, 5, 6]
    kept = {one["step"]: one["bytes"] for one in found["leaks"] if 4000 <= one["bytes"] < 4100}
    assert kept == {step: 4 * (1000 + step) for step in steps}
    assert {one["step"]: one["bytes"] for one in found["leaks"] if one["bytes"] == 20_000} == {3: 20_000, 5: 20_000}
    for one in found["steps"]:
        of_step = [leak for leak in found["leaks"] if leak["step"] == one["step"]]
        assert (one["still_bytes"], one["still_blocks"]) == (sum(leak["bytes"] for leak in of_step), sum(leak["blocks"] for leak in of_step))
        assert one["left_bytes"] >= one["still_bytes"]
    said = harness.cli("memory", "--leaks", run.trace)
    assert said.returncode == 0, said.stderr
    first = said.stdout.split("where, most bytes first:\n")[1].split(" KiB in 4 blocks")[1]  # what step 6, the last, has is its row's
    assert first.startswith(": step 2 3.91 KiB, step 3 3.92 KiB, step 4 3.92 KiB, step 5 3.93 KiB\n        your line: train at stepleaks.py:14\n") and "train at stepleaks.py:14 in Python" in first
    def longest(*flags):  # lines of a call stack that has a line of the program's
        text = harness.cli("memory", "-n", "-1", *flags, run.trace).stdout
        return max(len(re.match(r"(?: {8}.*\n)+", part)[0].splitlines()) for part in re.split(r"^(?= {8}your line: )", text, flags=re.M)[1:])

    assert longest() <= 1 + 3 + 3 + 3 and longest("--all-frames") > 13  # three frames, three of Python, what is left out
    part = harness.cli("memory", "--leaks", "--steps", "4-5", run.trace).stdout
    assert re.findall(r"^ +(\d+) +[\d.]+ (?:[KM]i)?B in ", part, re.M) == ["4", "5"] and "step 4 3.92 KiB, step 5 3.93 KiB" in part
    few, all_rows = (harness.cli("memory", "--leaks", "-n", rows, run.trace).stdout for rows in ("1", "0"))
    row = re.compile(r"^ +(\d+) +[\d.]+ (?:(?:[KM]i)?B|bytes) in ", re.M)
    assert len(row.findall(few)) == 1 and f"\n    {len(found['steps']) - 1} more steps: -n 0\n" in few and re.search(r"more call stacks, [\d.]+ (?:[KM]i)?B of that sum: -n 0 shows all", few), few
    assert len(row.findall(all_rows)) == len(found["steps"]) and "-n 0" not in all_rows, all_rows
    whole = harness.cli("memory", run.trace).stdout
    assert "\nwhat the steps left, without the start-up: kprof memory --leaks\n" in whole
    assert len(re.findall(r"^ {4}[\d.]+ (?:[KMG]i)?B in \d+ block", whole.split(AT_END)[1].split("\n\n")[0], re.M)) == 3, whole
    assert harness.cli("memory", "--leaks", "--steps", "40", run.trace).returncode != 0
    if shutil.which("heaptrack_print"):  # sizes of each step on their own change nothing for it
        said = subprocess.run(["heaptrack_print", profile], capture_output=True, text=True, timeout=harness.LONG, check=True).stdout
        assert int(re.search(r"^calls to allocation functions: (\d+)", said, re.M).group(1)) == found["total"]["allocations"]


def test_a_profile_without_steps_says_so(tmp_path):
    said = harness.cli("memory", "--leaks", profile_of(record(tmp_path, "lists").trace))
    assert said.returncode != 0 and "no step in it; record with a schedule" in said.stderr and "--step time:1s" in said.stderr


SMALL = """import time
class Record:
    def __init__(self, i):
        self.pair = [i, i + 1]
kept = []
def remember(n):
    for i in range(n):
        kept.append(Record(i))  # record
for i in range(30):
    remember(3000)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("small", ["", "malloc"])
def test_small_objects_of_python(small, tmp_path):
    """In arenas they are no blocks, and the first lines say so and name lines; with PYTHONMALLOC=malloc each is one."""
    script = tmp_path / "small.py"
    script.write_text(SMALL)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script], schedule="active=1000", shapes=False,
                            KPROF_STEP="time:100ms", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops",
                            **({"PYTHONMALLOC": small} if small else {})).ok()
    line = SMALL.split("# record")[0].count("\n") + 1
    said = harness.cli("memory", "--leaks", tmp_path / "log").stdout
    head, rows = said.split("where, most bytes first:\n")
    if not small:
        found = re.search(r": (\d+) arenas, .*\n(\d+) of the arenas .* came in steps after the start-up", head)
        assert found and int(found[1]) >= int(found[2]) >= 5, said
        assert re.search(rf"your lines that needed a new one: .*__init__ at small.py:4 \(\d+\)", head), said
        assert "PYTHONMALLOC=malloc kprof run" in head
        assert "PYTHONMALLOC" in harness.cli("memory", profile_of(run.trace)).stdout
        advice = harness.cli("advise", tmp_path / "log").stdout
        assert "Python's small objects, which grew (PYTHONMALLOC=malloc; kprof memory --leaks)" in advice, advice
        return
    assert "small objects" not in harness.cli("advise", tmp_path / "log").stdout
    assert "arenas" not in said and "PYTHONMALLOC" not in said
    own = re.findall(r"^ +([\d.]+ (?:[KM]i)?B) in (\d+) blocks?: step.*\n +your line: (\S+) at small.py:(\d+)$", rows, re.M)
    assert {(name, int(at)) for _, blocks, name, at in own if int(blocks) > 40_000} >= {("remember", line), ("__init__", 4)}, said
    assert not re.search(r"small|PYTHONMALLOC", head)


def test_leaks_of_a_program_that_ran_another(tmp_path):
    """The folder has a trace of each: --leaks takes the program's, and names the other."""
    inner = "import time; x = [bytes(5000 + i) for i in range(50)]; time.sleep(0.7); x += [bytes(6000)]"
    script = tmp_path / "outer.py"
    script.write_text(f"import subprocess, sys, time\nkept = []\nfor i in range(6):\n    kept.append(bytes(70000 + i)); time.sleep(0.05)\n"
                      f"subprocess.run([sys.executable, '-c', {inner!r}])\n")
    folder = tmp_path / "log"
    harness.run_kprof(None, folder, command=[harness.PYTHON, script], schedule="active=4,repeat=1", shapes=False,
                      KPROF_STEP="time:100ms", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    names = {facts.load(path)["kprof"].get("script"): path
             for path in folder.glob("*.pt.trace.json*")}
    assert len(names) == 2, names
    said = harness.cli("memory", "--leaks", folder)
    assert said.returncode == 0 and "your line: <module> at outer.py:4" in said.stdout, said.stdout + said.stderr
    other = next(path for script, path in names.items() if script != "outer.py")
    assert "this is of the program itself" in said.stderr and str(other) in said.stderr


def test_a_library_loaded_by_a_relative_path_has_its_names(cleaks, tmp_path):
    """The program leaves the folder after it loaded the library; its functions have their names all the same."""
    script = tmp_path / "relative.py"
    shutil.copy(cleaks, tmp_path / "libcleaks.so")
    script.write_text("import ctypes, os\nlib = ctypes.CDLL('./libcleaks.so')\nos.chdir('/')\nlib.leak_here.restype = ctypes.c_void_p\n"
                      "kept = lib.leak_here(123456)\n")
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script], schedule=None, shapes=False, cwd=tmp_path,
                            KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    left = {n: frames for frames, n in folded(run)}
    assert left[123_456][-1] == "leak_here", left[123_456]
    said = harness.cli("memory", profile_of(run.trace)).stdout
    assert re.search(r"leak_here at \S*cleaks.c:\d+ in libcleaks.so", said), said


LEAVING = """import ctypes, sys, torch
library = ctypes.CDLL(sys.argv[1])
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    loss = model(torch.ones(32, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    library.leak_here(int(sys.argv[2]))  # left
    optimizer.step()
for _ in range(12):
    train()
"""


def test_advise_names_what_each_step_leaves(cleaks, tmp_path):
    """And it says that the tracing makes steps longer, and does not ask for the memory of tensors."""
    script = tmp_path / "leaving.py"
    script.write_text(LEAVING)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script, cleaks, "60000"], shapes=False,
                            schedule="wait=1,warmup=1,active=8,repeat=1", KPROF_STEP="optimizer", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    said, advice = harness.cli("advise", run.trace).stdout, json.loads(harness.cli("advise", "--json", run.trace).stdout)
    first = advice["findings"][0]
    line = LEAVING.split("# left")[0].count("\n") + 1
    assert first["id"] == "heap-grows" and first["line"] == f"leaving.py:{line} train" and first["step_bytes"] == 60_000, advice
    assert first["where"].startswith("leak_here")
    assert re.search(r"WARNING  each step leaves memory on the host's heap: 58.59 KiB \(\d+ of \d+ steps\)\n", said)
    assert "note     recording every allocation (KPROF_MALLOC=trace)" in said and "--profile-memory" not in said
    assert not {"no-op-runs", "input-in-step"} & {finding["id"] for finding in advice["findings"]}
    profile_of(run.trace).unlink()
    assert "heap-grows" not in harness.cli("advise", "--json", run.trace).stdout and "--profile-memory" in harness.cli("advise", run.trace).stdout


LEAVING_TWICE = """import torch
kept, model = [], torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(11):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    kept.append((bytearray(112000), torch.ones(27540)))
"""


def test_a_line_that_leaves_memory_by_two_functions_is_one_finding(tmp_path):
    script = tmp_path / "twice.py"
    script.write_text(LEAVING_TWICE)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script], shapes=False, schedule="wait=1,warmup=1,active=8,repeat=1",
                            KPROF_STEP="optimizer", KPROF_MALLOC="trace", KPROF_WITH_STACK="1").ok()
    findings = json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"]
    first, = [finding for finding in findings if finding["id"] == "heap-grows"]
    assert first["line"] == "twice.py:7 <module>" and first["step_bytes"] == pytest.approx(112000 + 27540 * 4, abs=2048), first


def test_advise_says_nothing_of_a_heap_that_each_step_leaves_as_it_was(cleaks, tmp_path):
    """The healthy twin: the same program, recorded in the same way, leaves blocks of no bytes."""
    script = tmp_path / "leaving.py"
    script.write_text(LEAVING)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script, cleaks, "0"], shapes=False,
                            schedule="wait=1,warmup=1,active=8,repeat=1", KPROF_STEP="optimizer", KPROF_MALLOC="trace", KPROF_WITH_STACK="ops").ok()
    advice = json.loads(harness.cli("advise", "--json", run.trace).stdout)
    assert profile_of(run.trace).exists() and "heap-grows" not in {finding["id"] for finding in advice["findings"]}, advice


LEAVING_SOME = """import torch
kept, model = [], torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(43):
    model(torch.ones(4, 8)).sum().backward()
    if step % 5 == 4 and step > 20 * EARLY:
        kept.append(torch.ones(50_000))
    optimizer.step()
"""


@pytest.mark.parametrize("early", (0, 1))
def test_a_line_that_leaves_memory_in_each_fifth_step_is_a_warning(early, tmp_path):
    """One that leaves some in the second half of the recording alone is none: it may soon stop."""
    script = tmp_path / "some.py"
    script.write_text(LEAVING_SOME.replace("EARLY", str(early)))
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script], shapes=False, schedule="wait=1,warmup=1,active=40,repeat=1",
                            KPROF_STEP="optimizer", KPROF_MALLOC="trace", KPROF_WITH_STACK="1").ok()
    findings = [f for f in json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"] if f["id"] == "heap-grows"]
    said = [(f["line"], f["severity"], f["what"].startswith("some steps leave "), f["step_bytes"] == pytest.approx(40_000, rel=0.1)) for f in findings]
    assert said == [("some.py:7 <module>", "warning", True, True)] * (not early), findings


LEAVING_SIX = """import torch
kept, model = [], torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(11):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    kept.append(torch.ones(40_000))
    kept.append(torch.ones(35_000))
    kept.append(torch.ones(30_000))
    kept.append(torch.ones(25_000))
    kept.append(torch.ones(20_000))
    kept.append(torch.ones(15_000))
"""


def test_advise_names_five_lines_that_leave_most_and_cplusplus_as_a_reader_does(tmp_path):
    script = tmp_path / "six.py"
    script.write_text(LEAVING_SIX)
    run = harness.run_kprof(None, tmp_path / "log", command=[harness.PYTHON, script], shapes=False, schedule="wait=1,warmup=1,active=8,repeat=1",
                            KPROF_STEP="optimizer", KPROF_MALLOC="trace", KPROF_WITH_STACK="1").ok()
    findings = [finding for finding in json.loads(harness.cli("advise", "--json", run.trace).stdout)["findings"] if finding["id"] == "heap-grows"]
    assert [finding["line"] for finding in findings] == [f"six.py:{line} <module>" for line in range(7, 12)], findings
    assert all("_ZN" not in finding["where"] for finding in findings) and any("alloc_cpu" in finding["where"] for finding in findings), findings


def test_stacks_are_walked_in_the_warm_up_and_nothing_is_recorded_there(tmp_path):
    """What unwinding learns, and the texts of frames, would cost the first recorded step much time."""
    run = harness.run_kprof("heap/warmed.py", tmp_path, schedule="wait=2,warmup=1,active=1,repeat=1", shapes=False, KPROF_MALLOC="trace", KPROF_WITH_STACK="ops",
                            KPROF_STEP="api", KPROF_EXPORT="none").ok()
    texts = " ".join(spoolrecords._names(run.spools[0].read_bytes()).values())
    assert ["only_in_the_wait" in texts, "only_in_the_warm_up" in texts, "only_in_the_window" in texts] == [False, True, True], run.explain()
    told = harness.cli("memory", run.spools[0], "--format", "folded").stdout
    assert "only_in_the_window" in told and "only_in_the_warm_up" not in told
