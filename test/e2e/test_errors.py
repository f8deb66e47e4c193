# SPDX-License-Identifier: Apache-2.0
"""What each command says to each wrong use, and its exit status: test/data/errors.txt is the table.

After a change of words: KPROF_ERRORS_WRITE=1 pytest test/e2e/test_errors.py writes it; read the difference.
"""
import ctypes
import gzip
import os
import re
import shutil
import subprocess
import textwrap

import pytest

import harness

TABLE = harness.ROOT / "test/data/errors.txt"
TRACE = harness.ROOT / "test/data/traces/memory.pt.trace.json.gz"
READING = {"report": "", "advise": "", "html": "-o page.html", "view": "--json", "diff": "a.pt.trace.json.gz", "events": "", "stacks": "", "memory": "",
           "slice": "--step 3 -o cut.json", "export": "--format perfetto -o out.pftrace", "recover": "", "hang": "", "why": "", "watch": "--once"}
GIVEN = "nosuch nosuch.json empty notes cut.pt.trace.json other.pt closed closed.pt.trace.json zero.kprof".split()
WRITING = ("html", "stacks --svg", "memory --svg", "slice --step 3", "export --format perfetto", "report", "events")
MORE = """
report A --by gizmo|report A --by|report A -n -3|report A --top x|report A --step 99|report A --step 9-1|report A --step x|report A --rank 7
report A --within nobody|report A --sort gizmo|report A --torch --sort-by gizmo|report A --row-limit x|report A --from x|report A --from 5 --to 1
report A --from 900000|report A --torch --by line|report --vreport
advise A --step 3|advise A --from 5|view A --within x|advise A --colour|diff A|diff A A A|diff A A --fail-above x|diff A --vs|diff --vs A|diff A A -n x
events A --cat gizmo|events A --name gizmo|events A --name /[/|events A --tid x|events A --to 5 --from 9
stacks A --metric gizmo|stacks A --svg --html|stacks A --torch --step 3|stacks A --backward-at x|stacks A --step 99
memory A --device x|memory A --step 99|memory A --svg --html|memory A --leaks --json|memory A --by x|memory A --format x
slice A|slice A --step 99 -o x.json|slice A --step 3 --within x|slice A A --step 3 -o x.json|slice A --from 9 --to 5|slice A --within nobody
export A|export A --format gizmo|export A A --format speedscope -o x|export|recover
ctl|ctl .|ctl . gizmo|ctl . status|ctl nosuch status|ctl A status|ctl . start x|ctl . status x|hang a b|hang --svg --json|hang .
watch . --interval 0|watch a b|config x|config --gizmo|doctor --gizmo|doctor --steps|path x|path --gizmo|view --gizmo
run|run --|run --gizmo -- true|run nosuch|run ./empty|run train.py|run -o other.pt -- true|run ops -- true
run --schedule x -- true|run --schedule 12-10 -- true|run --schedule active=0 -- true|run --with-stack gizmo -- true|run --activities tpu -- true
run --ring x -- true|run --ring 2h -- true|run --hang 5ms -- true|run --trigger x -- true|run --keep -1 -- true|run --keep x -- true|run --max-mb 0 -- true
run --step x -- true|run --step call: -- true|run --ranks x -- true|run --malloc x -- true|run --symbols= -- true|run --export x -- true
run --phases x~[ -- true|run --record-shapes=7 -- true|run --on-oom x -- true|run --metadata x -- true
gizmo|repor|--gizmo|help gizmo|flamegraph A|top|report A --colour
"""
RIGHT = {"recover empty", "recover notes", "why cut.pt.trace.json"}  # these find nothing, which is no error
PR_CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2


def commands():
    for command, more in READING.items():
        yield from (f"{command} {name} {more}".rstrip() for name in GIVEN if f"{command} {name}" not in RIGHT)
        yield f"{command} {more}".rstrip() if command not in ("recover", "slice", "view") else f"{command} --gizmo"
    for command in WRITING:
        yield from (f"{command} A -o {out}".rstrip() for out in ("", "nosuch/x", "empty", "locked/x"))
    for line in MORE.split("\n"):
        yield from filter(None, line.split("|"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("errors")
    shutil.copy(TRACE, made / "a.pt.trace.json.gz")
    (made / "cut.pt.trace.json").write_bytes(gzip.decompress(TRACE.read_bytes())[:300000])
    (made / "other.pt").write_bytes(b"\x89PNG\r\n\x1a\n" * 50)
    (made / "zero.kprof").write_bytes(b"")
    (made / "train.py").write_text("import torch\n")
    (made / "closed.pt.trace.json").write_text("{}")
    for name in ("empty", "notes", "closed", "locked"):
        (made / name).mkdir()
    (made / "notes/readme.txt").write_text("no trace\n")
    for name, mode in (("closed", 0), ("closed.pt.trace.json", 0), ("locked", 0o500)):
        (made / name).chmod(mode)
    yield made
    for name in ("closed", "locked"):
        (made / name).chmod(0o700)


def obey_modes():
    """Root reads and writes whatever it likes; from here on it does not."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (DAC_OVERRIDE, DAC_READ_SEARCH) if os.geteuid() == 0 else ():
        if libc.prctl(PR_CAPBSET_DROP, right, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "PR_CAPBSET_DROP")


def said(folder, command):
    words = [{"A": "a.pt.trace.json.gz"}.get(word, word) for word in command.split()]
    ended = subprocess.run([harness.KPROF, *words], cwd=folder, env=harness.clean_environment(LC_ALL="C"), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, errors="replace", timeout=harness.LONG, preexec_fn=obey_modes)
    return ended.returncode, ended.stderr


@pytest.fixture(scope="module")
def rows(folder):
    return {command: said(folder, command) for command in commands()}


def test_the_table_has_each_text(rows):
    table = "".join(f"kprof {command}  [{status}]\n{textwrap.indent(text, '    ')}" for command, (status, text) in rows.items())
    if os.environ.get("KPROF_ERRORS_WRITE"):
        TABLE.write_text(table)
    assert table.splitlines() == TABLE.read_text().splitlines()


def test_wrong_use_and_bad_input_have_their_exit_status(rows):
    for command, (status, text) in rows.items():
        word = command.split()[0]
        usage = "see `kprof help " in text or "`kprof help` lists" in text
        wanted = (2,) if usage else (126, 127) if word == "run" else (1,)
        assert status in wanted, (command, status, text)


def test_an_error_is_one_sentence_of_two_lines_at_most_for_each_file(rows):
    for command, (_, text) in rows.items():
        lines = text.splitlines()
        assert len(lines) == 1, (command, text)
        for line in lines:
            assert re.match(r"kprof( [a-z]+)?: ", line), (command, line)
            plain = re.sub(r"\S*\.(?:pt\.trace\.json|kprof)\S*", "FILE", line)  # a name is as long as the user made it
            assert len(textwrap.wrap(plain, 80, subsequent_indent="  ", break_on_hyphens=False)) <= 2, (command, line)


def test_bad_input_says_what_to_do(rows):
    """It names a command, a flag, what to do with the file, or what is there."""
    todo = re.compile(r"kprof [a-z]+|--[a-z]+|; (check|name|make|your user|copy|-o names)|the trace has|it has|last line says why|not found|not an executable")
    unhelpful = [text for status, text in rows.values() if status == 1 and not todo.search(text.split(": ", 1)[1])]
    assert unhelpful == []


@pytest.mark.parametrize("flag", ["step", "within", "from", "to"])
def test_a_flag_that_other_commands_have_is_said_to_be_theirs(flag):
    """The list in the message is that of the commands whose help has the flag."""
    having = {c for c in READING if re.search(rf"--{flag} ", harness.cli(c, "--help").stdout)}
    assert "slice" in having and "advise" not in having
    said = harness.cli("advise", f"--{flag}=1").stderr
    named = re.search(r": kprof (.*) have it", said)[1]
    assert set(re.split(", | and ", named)) == having, said
