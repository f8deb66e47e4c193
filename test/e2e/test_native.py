# SPDX-License-Identifier: Apache-2.0
"""KPROF_WITH_STACK=native: frames are those of the C compiler's unwinder, Python's those of =ops, names those of the files."""
import collections
import glob
import json
import pathlib
import re
import struct

import pytest

import facts
import harness
import spoolrecords

PLACES = ["module", "recursion", "nested", "sorted", "forward", "backward", "thread"]
C_FRAME = re.compile(r"^[\w.+-]+\.so[\w.]*(: |\+0x)|^python[\d.]*(: |\+0x)|^0x[0-9a-f]+$")


@pytest.fixture(scope="module")
def spool(once):
    def make(folder):
        run = harness.run_kprof("native_stacks.py", folder, folder, schedule=None, shapes=False, KPROF_WITH_STACK="native", KPROF_EXPORT="none").ok()
        run.unwound = json.loads((folder / "unwound.json").read_text())
        return run

    return once("native spool", make)


@pytest.fixture(scope="module")
def exported(spool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    done = harness.cli("export", spool.spools[0], "-o", folder)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.json*"))


def stacks_in(data):
    """{"at PLACE": [return address, ...]} from the spool's bytes."""
    names, stacks = spoolrecords._names(data), {}
    for at, kind, _, used in spoolrecords._chunks(data):
        place = at + 64
        while kind == 1 and place < at + used:
            rec, flags, size, name = struct.unpack_from("<BBHI", data, place)
            if rec == 1 and flags & 16 and names.get(name, "").startswith("at "):
                more = place + 32 + (16 if flags & 1 else 0) + (8 if flags & 2 else 0)
                stacks[names[name].split("\0")[0]] = struct.unpack_from("<II", data, more)[1]
            place += size
    told = {}
    for where, cell in stacks.items():
        told[where] = []
        while cell:
            kind, _, _, module, offset, around = struct.unpack_from("<BBHIQI", data, cell * 32)
            assert kind == 25
            base = int(names[module].split("\0")[1].split()[1], 16) if module else 0
            told[where].append(base + offset)
            cell = around
    return told


def test_frames_are_those_of_the_compilers_unwinder(spool):
    told = stacks_in(spool.spools[0].read_bytes())
    for place in PLACES:
        ours, theirs = told[f"at {place}"], spool.unwound[place]
        if theirs[-1] == 0:
            theirs.pop()
        same = 0
        while same < min(len(ours), len(theirs)) and ours[-1 - same] == theirs[-1 - same]:
            same += 1
        # up to the interpreter that called both: what is inside of it are ctypes here, torch there
        assert same >= 5 and len(theirs) - same <= 8, (place, len(ours), len(theirs), same)
    assert len(told["at backward"]) > len(told["at thread"]) > 8 and len(told["at nested"]) > len(told["at recursion"])


def frames_of(event):
    return event["args"].get("Call stack", "").split(";")[:-1]


def split(frames):
    return [f for f in frames if C_FRAME.match(f)], [f for f in frames if not C_FRAME.match(f)]


def ops_by_thread(trace):
    threads = collections.defaultdict(list)
    for e in sorted(facts.spans(trace), key=facts.begin):
        if e["cat"] in ("cpu_op", "user_annotation"):
            threads[e["tid"]].append(e)
    return sorted(threads.values(), key=lambda line: (-len(line), line[0]["name"]))


def test_python_frames_are_those_of_ops_and_stand_before_their_interpreter(spool, exported):
    trace = facts.load(exported)
    run = harness.run_kprof("native_stacks.py", exported.parent / "ops", spool.folder, schedule=None, shapes=False, KPROF_WITH_STACK="ops").ok()
    plain = facts.load(run.trace)
    mine, theirs = ops_by_thread(trace), ops_by_thread(plain)
    assert [[e["name"] for e in line] for line in mine] == [[e["name"] for e in line] for line in theirs]
    seen = 0
    for line, other in zip(mine, theirs):
        for e, f in zip(line, other):
            native, python = split(frames_of(e))
            assert python == frames_of(f), e["name"]
            assert native, e["name"]
            seen += bool(python)
            frames = frames_of(e)
            for inner, outer in zip(frames, frames[1:]):  # a run of Python frames is run by the interpreter behind it
                if not C_FRAME.match(inner) and C_FRAME.match(outer):
                    assert outer.endswith("_PyEval_EvalFrameDefault"), (inner, outer)
            loops = sum(f.endswith("_PyEval_EvalFrameDefault") for f in native)
            runs = sum(C_FRAME.match(a) is not None and not C_FRAME.match(b) for a, b in zip(["x.so: x", *frames], frames))
            assert loops == runs, frames
    assert seen > 20


def test_names_are_those_of_torch_and_python(exported):
    trace = facts.load(exported)
    linear = next(e for e in facts.spans(trace) if e["name"] == "aten::linear")
    frames = [f.partition(": ")[2] if ".so" in f else f for f in frames_of(linear)]
    assert frames.index("at::_ops::linear::call") < frames.index("torch::autograd::THPVariable_linear")
    assert not frames[0].startswith("at::RecordFunction") and "c10::Dispatcher::runRecordFunction" not in frames
    assert any("linear.py" in f and f.endswith(": forward") for f in frames)
    backward = next(e for e in facts.spans(trace) if e["name"] == "at backward")
    text = ";".join(frames_of(backward))
    for part in ("torch::autograd::PyNode::apply", "torch::autograd::Node::operator()", "torch::autograd::Engine::thread_main",
                 "torch::autograd::Engine::execute"):
        assert part in text, text
    assert text.index("PyNode::apply") < text.index("Engine::thread_main")
    named = sum(": " in f for e in facts.spans(trace) for f in split(frames_of(e))[0])
    interpreter = f"{pathlib.Path(harness.PYTHON).resolve().name}+0x"  # Debian's own has no names
    bare = sum("+0x" in f and not f.startswith(interpreter) for e in facts.spans(trace) for f in split(frames_of(e))[0])
    assert named > 10 * bare


def test_a_trace_made_in_the_program_has_the_same_names(spool, exported):
    inside = harness.run_kprof("native_stacks.py", exported.parent / "inside", spool.folder, schedule=None, shapes=False, KPROF_WITH_STACK="native").ok()
    mine, theirs = ops_by_thread(facts.load(inside.trace)), ops_by_thread(facts.load(exported))
    assert [[(e["name"], frames_of(e)) for e in line] for line in mine] == [[(e["name"], frames_of(e)) for e in line] for line in theirs]


def test_lines_only_add_to_the_frames(spool, exported, tmp_path):
    done = harness.cli("export", spool.spools[0], "--lines", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    if "built without libdw" in done.stderr:
        pytest.skip("kprof was built without libdw")
    mine, theirs = ops_by_thread(facts.load(next(tmp_path.glob("*.json*")))), ops_by_thread(facts.load(exported))
    lines = 0
    for e, f in zip((e for line in mine for e in line), (f for line in theirs for f in line)):
        own = [frame for frame in frames_of(e) if not frame.endswith(" (inlined)")]
        bare = [re.sub(r" \S+:\d+$", "", frame) if C_FRAME.match(frame) else frame for frame in own]
        assert bare == frames_of(f), e["name"]
        lines += sum(a != b for a, b in zip(own, bare))
    if not glob.glob("/usr/lib/debug/.build-id/*"):
        pytest.skip("no debug files here: nothing has lines")
    assert lines > 20  # of the C library, at least


def test_tables_and_flame_graphs_show_them(exported, tmp_path):
    done = harness.cli("stacks", "--torch", exported)
    assert done.returncode == 0 and "libtorch_cpu.so:_at::_ops::linear::call" in done.stdout and "_PyEval_EvalFrameDefault;" in done.stdout, done.stderr
    table = harness.cli("report", "--torch", exported, "--group-by-stack-n", "3")
    assert table.returncode == 0 and "at::_ops" in table.stdout, table.stdout + table.stderr
