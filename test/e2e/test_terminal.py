# SPDX-License-Identifier: Apache-2.0
"""Every command on a terminal of 80 columns: no line is longer, and NO_COLOR takes the colours. Pipes get whole lines."""
import fcntl
import json
import os
import pty
import re
import runpy
import struct
import subprocess
import termios

import pytest

import harness

COLUMNS = 80
ESCAPES, COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), re.compile(r"\x1b\[[0-9;]*m")
LONG = "a_long_name_of_an_operator_that_takes_more_columns_than_a_terminal_has_and_goes_on::" + "x" * 40


def event(name, cat, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def memory(ts, size, address, total):
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
            "args": {"Total Allocated": total, "Bytes": size, "Addr": address, "Device Id": -1, "Device Type": 0}}


def training(path, span):
    """Five steps that wait for data most of the time, and keep a block each."""
    events = []
    for i in range(5):
        at = 1000 + i * span
        events += [event(f"ProfilerStep#{i}", "user_annotation", at, span),
                   event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", at + 10, span - 400),
                   event("aten::mm", "cpu_op", at + span - 380, 300, **{"Input Dims": [[512, 512], [512, 512]]}),
                   event(LONG, "cpu_op", at + span - 60, 50),
                   memory(at + span - 300, 1 << 20, 4096 + i * (1 << 20), (i + 1) << 20)]
    path.write_text(json.dumps({"schemaVersion": 1, "record_shapes": 1, "profile_memory": 1, "traceEvents": events}))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("terminal")
    training(made / "a.pt.trace.json", 4000)
    training(made / "b.pt.trace.json", 8000)
    for rank in range(2):  # ended, of a machine with a long name: KPROF_SUMMARY's file
        head = struct.pack("<8sIIiIIIQQQQ65s128s46s209x", b"KPSTEPS1", 512, 96, 4242, rank, 2, 1, 7, 10**18, 10**18, 0, b"node" * 15, b"train.py", b"")
        line = struct.pack("<7Q8I8x", 1234567, 10**18, *[123456789] * 5, 1, 0, 900, 90, 1000, 0, 0, 123456789)
        (made / f"node_r{rank}_4242.1.steps").write_bytes(head + line)
    return made


def on_terminal(folder, *argv, columns=COLUMNS, **env):
    """What a command writes to a terminal, its exit code, and its lines without colours."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**harness.clean_environment(), "TERM": "xterm", "PAGER": "cat", **env}
    process = subprocess.Popen([harness.KPROF, *argv], stdin=other, stdout=other, stderr=other, cwd=folder, env=environment)
    os.close(other)
    parts = []
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(main)
    text = b"".join(parts).decode(errors="replace").replace("\r\n", "\n")
    return process.wait(harness.LONG), text, [ESCAPES.sub("", line) for line in text.split("\n")]


# lines of the library are not the command's: it writes them inside of the program, and asks no terminal for its width
ROWS = {"run": ["--no-advise", "--log", "none", "--", "true"], "report": ["a.pt.trace.json"], "advise": ["a.pt.trace.json"], "html": ["a.pt.trace.json"],
        "view": ["no-such-file"], "diff": ["a.pt.trace.json", "b.pt.trace.json"], "events": ["a.pt.trace.json"],
        "stacks": ["a.pt.trace.json"], "memory": ["a.pt.trace.json"], "slice": ["--step", "1", "-o", "cut.json", "a.pt.trace.json"],
        "export": ["--format", "speedscope", "-o", "speed.json", "a.pt.trace.json"], "recover": ["."], "ctl": [".", "status"],
        "hang": ["."], "why": ["a.pt.trace.json"], "watch": ["."], "config": [], "doctor": [], "path": []}
MORE = [["report", "--by", "step", "a.pt.trace.json"], ["report", "--by", "shape", "a.pt.trace.json"], ["report", "no-such-file"],
        ["report", "--torch", "a.pt.trace.json"], ["memory", "--step", "1", "a.pt.trace.json"], ["diff", "--all", "a.pt.trace.json", "b.pt.trace.json"],
        ["run", "--schedule", "12-10", "--", "true"], ["nothing"], ["help"], ["help", "help"], ["stacks", "--svg", "a.pt.trace.json"],
        ["events", "--by", "name", "a.pt.trace.json"], ["report", "--gizmo"], []]
NAMES = re.findall(r"^  ([a-z]+)  ", harness.cli("help").stdout, re.M)


def commands():
    rows = [[name, *ROWS[name]] for name in NAMES if name in ROWS]
    return rows + MORE + [["help", name] for name in NAMES] + [[name, "--help"] for name in NAMES if name != "help"]


def test_each_command_has_its_row():
    assert set(ROWS) == set(NAMES) - {"help"}  # a new command needs its row above


@pytest.mark.parametrize("argv", commands(), ids=" ".join)
def test_no_line_is_longer_than_the_terminal(argv, folder):
    _, text, lines = on_terminal(folder, *argv, NO_COLOR="1")
    assert [line for line in lines if len(line) > COLUMNS] == []
    assert not COLOURS.search(text), text
    assert "\x1e" not in text and "\x0e" not in text


def test_findings_and_names_are_coloured_where_colours_are_wanted(folder):
    _, text, lines = on_terminal(folder, "advise", "a.pt.trace.json")
    assert re.search(r"\x1b\[1;3[13]m(CRITICAL|WARNING)\x1b\[0m", text), text
    assert max(map(len, lines)) <= COLUMNS
    _, text, lines = on_terminal(folder, "report", "a.pt.trace.json")
    assert "\x1b[1maten::mm" in text and max(map(len, lines)) <= COLUMNS
    assert ESCAPES.search(on_terminal(folder, "report", "a.pt.trace.json", NO_COLOR="")[1])
    assert not ESCAPES.search(on_terminal(folder, "report", "a.pt.trace.json", TERM="dumb")[1])


def test_numbers_are_not_cut(folder):
    """A narrow row has each number of a wide one. The longest call is left out first, then the last columns."""
    wide = on_terminal(folder, "report", "a.pt.trace.json", columns=300, NO_COLOR="1")[2]
    for columns in (40, 60, 80):
        narrow = on_terminal(folder, "report", "a.pt.trace.json", columns=columns, NO_COLOR="1")[2]
        row, = [line.split() for line in narrow if line.startswith("aten::mm")]
        whole, = [line.split() for line in wide if line.startswith("aten::mm")]
        head, = [re.split("  +", line) for line in wide if line.startswith("op ")]
        whole.pop(head.index("longest ms"))
        assert row == whole[:len(row)] and len(row) > 1


def test_memory_says_on_a_narrow_terminal_which_op_took_it(folder):
    narrow = on_terminal(folder, "memory", "a.pt.trace.json", NO_COLOR="1")[2]
    wide = on_terminal(folder, "memory", "a.pt.trace.json", columns=300, NO_COLOR="1")[2]
    heads = [[line for line in lines if "Outermost op" in line] for lines in (narrow, wide)]
    assert len(heads[0]) == len(heads[1]) and heads[0] and all(line.endswith("Outermost op") for line in heads[0]), narrow
    at = narrow.index(heads[0][-1]) + 1, wide.index(heads[1][-1]) + 1
    column = heads[0][-1].index("Outermost op"), heads[1][-1].index("Outermost op")
    ops = [re.split("  +", lines[row][where:])[0].strip(".") for lines, row, where in zip((narrow, wide), at, column)]
    assert ops[0] and ops[1].startswith(ops[0]), ops


def test_a_pipe_gets_whole_lines_without_colours(folder):
    told = harness.cli("advise", folder / "a.pt.trace.json", COLUMNS="40")
    assert max(map(len, told.stdout.splitlines())) > COLUMNS and "\x1b" not in told.stdout


@pytest.mark.parametrize("argv, name", [(["html"], "page.html"), (["stacks", "--svg"], "flames.svg"), (["memory", "--html"], "memory.html")])
def test_a_drawing_without_a_name_goes_to_a_file_on_a_terminal_and_to_a_pipe_else(argv, name, folder):
    (folder / name).unlink(missing_ok=True)
    code, text, _ = on_terminal(folder, *argv, "a.pt.trace.json", NO_COLOR="1")
    assert code == 0 and f"kprof: wrote {name}; open it: xdg-open {name}" in text and "<" not in text
    written = (folder / name).read_text()
    assert written.startswith("<")
    (folder / name).unlink()
    piped = harness.cli(*argv, folder / "a.pt.trace.json")
    assert piped.stdout.startswith("<") and not (folder / name).exists()


def test_help_has_the_first_thought_of_each_flag_and_goes_through_the_pager(folder):
    _, _, lines = on_terminal(folder, "help", "run", NO_COLOR="1")
    flags = [line for line in lines if re.match(r" {2}(-\w, | {4})--", line)]
    full = [line for line in harness.cli("run", "--help").stdout.splitlines() if re.match(r" {2}(-\w, | {4})--", line)]
    assert len(flags) == len(full) > 20
    assert [line for line in lines if re.search(r"[^.]\.\.$", line)] == [] and len(lines) < 120
    _, text, _ = on_terminal(folder, "help", "report", PAGER="sed 's/^/paged: /'")
    assert "paged: usage: kprof report" in text
    assert harness.cli("help", "help").stdout.startswith("usage: kprof help")


# ---- the stored and built traces of test/golden ----

GOLDEN = runpy.run_path(str(harness.ROOT / "test/golden/compare.py"))
TEXTS = [words for words in GOLDEN["OF_A_TRACE"] if not {"--json", "--html", "--svg", "html"} & set(words)] + [("why",), ("diff", "--all")]
EACH = 1 if os.environ.get("KPROF_TEST_TERMINAL") else 8  # of the inputs each command takes each eighth, another one first; KPROF_TEST_TERMINAL=1: all


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return list(GOLDEN["inputs"](tmp_path_factory.mktemp("golden")).items())


@pytest.mark.parametrize("turn, words", list(enumerate(TEXTS)), ids=[" ".join(words) for words in TEXTS])
def test_no_line_of_a_stored_trace_is_longer_than_the_terminal(turn, words, folder, inputs):
    for name, path in inputs[turn % EACH::EACH]:
        _, _, lines = on_terminal(path.parent, *words, *[path.name] * (2 if words[0] == "diff" else 1), NO_COLOR="1")
        assert [line for line in lines if len(line) > COLUMNS] == [], name
        assert any(lines), name
