# SPDX-License-Identifier: Apache-2.0
"""Each command that `kprof help` lists takes --json, and what it prints then is JSON. A new command needs a row here."""
import gzip
import json
import pathlib
import re
import shutil
import subprocess

import harness
import pytest
import viewing

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def kprof(*words, folder=None):
    return subprocess.run([harness.KPROF, *words], cwd=folder, capture_output=True, text=True, timeout=120)


def values(text):
    """The JSON values of a text that has nothing else."""
    found, at = [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(value)
    return found


COMMANDS = [name for name in re.findall(r"^  ([a-z]+)  ", kprof("help").stdout, re.M) if name != "help"]


@pytest.fixture
def folder(tmp_path):
    """A trace and a spool whose program is gone."""
    shutil.copy(DATA / "traces/memory.pt.trace.json.gz", tmp_path / "a.pt.trace.json.gz")
    (tmp_path / "left").mkdir()
    (tmp_path / "left/node_1.1.kprof").write_bytes(gzip.open(DATA / "spools/version1.kprof.gz").read())
    return tmp_path


def written(folder, line, events=True):
    """The line names a file that is there, with its bytes."""
    assert (folder / line["file"]).stat().st_size == line["bytes"] > 0
    assert not events or line["events"] > 0


def report(folder, said):
    assert said[0]["rows"] and said[0]["wall_ms"] > 0


def advise(folder, said):
    assert said[0]["schema"] == 1 and "findings" in said[0]


def page(folder, said):
    written(folder, said[0])
    assert said[0]["traces"] == 1 and said[0]["events"] == 2409


def view(folder, said):
    tabs = {tab["tab"]: tab["rows"] for tab in said[0]["tabs"]}
    assert list(tabs) == ["Findings", "Steps", "Ops", "Tree", "Kernels", "Memory"]
    assert len(tabs["Steps"]) == 3 and tabs["Steps"][0]["step"] >= 0 and tabs["Steps"][0]["time_ms"] > 0
    rows = json.loads(kprof("report", "a.pt.trace.json.gz", "--json", "-n", "0", folder=folder).stdout)["rows"]
    ours = {row["name"]: row for row in tabs["Ops"] if row["level"] == 0}
    for row in rows:
        if row["name"].startswith("outside any op"):
            continue  # the report's alone: the tab has ops
        assert ours[row["name"]]["self_ms"] == pytest.approx(row["self_ms"]) and ours[row["name"]]["calls"] == row["count"]


def stacks(folder, said):
    lines = kprof("stacks", "a.pt.trace.json.gz", folder=folder).stdout.splitlines()
    assert [";".join(s["frames"]) + " %d" % s["value"] for s in said[0]["stacks"]] == lines
    assert (said[0]["metric"], said[0]["unit"], said[0]["traces"]) == ("cpu", "us", 1)


def export(folder, said):
    assert len(said) == 1
    written(folder, said[0])


def recover(folder, said):
    assert said[-1] == {"recovered": len(said) - 1, "removed": 1, "left": 0, "failed": 0} and len(said) > 1
    for line in said[:-1]:
        written(folder, line)
    assert not list((folder / "left").glob("*.kprof"))


def anything(folder, said):
    assert said


def ran(folder, said):
    assert said == [{"exit": 3, "traces": []}]


TRACE = "a.pt.trace.json.gz"
ROWS = {
    "run": (["--json", "--", "sh", "-c", "echo its own; exit 3"], ran),
    "report": ([TRACE, "--json"], report),
    "advise": ([TRACE, "--json"], advise),
    "html": ([TRACE, "--json", "-o", "page.html"], page),
    "view": ([TRACE, "--json"], view),
    "diff": ([TRACE, TRACE, "--json"], anything),
    "events": ([TRACE, "--json"], anything),
    "stacks": ([TRACE, "--json"], stacks),
    "memory": ([TRACE, "--json"], anything),
    "why": ([TRACE, "--json"], anything),
    "slice": ([TRACE, "--from", "0", "--to", "5000", "--json", "-o", "part.json"], export),
    "export": ([TRACE, "--format", "perfetto", "--json"], export),
    "recover": (["left", "--json", "--force"], recover),
    "config": (["--json"], anything),
    "doctor": (["--json"], anything),
    "path": (["--json"], lambda folder, said: (folder / said[0]["library"]).stat()),
    "ctl": None,  # asks a running program; test_ctl.py reads its answers
    "hang": None,  # the same; test_hang.py
    "watch": None,  # reads what running programs write; test_summary.py
}


def test_each_command_has_a_row():
    assert sorted(COMMANDS) == sorted(ROWS) and len(COMMANDS) > 10


@pytest.mark.parametrize("command", COMMANDS)
def test_its_help_and_the_manual_name_json(command):
    assert re.search(r"^ +--json\b", kprof("help", command).stdout, re.M)
    manual = (DATA.parents[1] / "docs/kprof.1.scd").read_text()
    own = re.search(r"^\*%s\*\n(.*?)(?=^\*|^# )" % command, manual, re.M | re.S)[1]
    assert "--json" in own


@pytest.mark.parametrize("command", [name for name in COMMANDS if ROWS.get(name)])
def test_what_it_prints_is_json(command, folder):
    words, check = ROWS[command]
    ended = kprof(command, *words, folder=folder)
    assert ended.returncode == (3 if command == "run" else 0), ended.stderr
    if command == "run":
        assert ended.stdout == "its own\n"
    check(folder, values(ended.stderr if command == "run" else ended.stdout))


GPU_TRACE = str(DATA / "gpu/h200_waits/h200_waits.pt.trace.json.gz")
RANKS = [str(DATA / f"traces/gloo_rank{rank}.pt.trace.json.gz") for rank in (0, 1)]
MORE = [["report", GPU_TRACE, "--json", "--by", "kernel"], ["report", *RANKS, "--json"], ["advise", GPU_TRACE, "--json"], ["view", GPU_TRACE, "--json"],
        *(["report", TRACE, "--json", "--by", by] for by in ("step", "line", "class", "shape")), ["memory", GPU_TRACE, "--json"],
        ["stacks", TRACE, "--json", "--torch"], ["diff", *RANKS, "--json"], ["events", GPU_TRACE, "--json"], ["export", "left/node_1.1.kprof", "-o", "out", "--json"]]


@pytest.mark.parametrize("command", [name for name in COMMANDS if ROWS.get(name)])
def test_its_schema_accepts_what_it_prints_and_refuses_other_members(command, folder):
    schema = json.loads(kprof(command, "--json-schema").stdout)
    assert command in ("run", "config", "doctor") or json.loads(kprof(command, "an argument", "--json-schema").stdout) == schema
    assert re.search(r"^ +--json-schema\b", kprof("help", command).stdout, re.M)
    ended = [kprof(*words, folder=folder) for words in ([command, *ROWS[command][0]], *(more for more in MORE if more[0] == command))]
    said = [value for one in ended for value in values(one.stderr if command == "run" else one.stdout)]
    wrong = [{key: value for key, value in line.items() if key != next(iter(line))} for line in said] + [{"no such": []}]
    judged = viewing.judge(schema, said + wrong)
    assert len(said) >= len(ended) and not any(judged[:len(said)]), judged
    assert all(judged[len(said):]) or command == "run", judged  # of a run either of the first members may be missing


@pytest.mark.parametrize("words", [["html", TRACE], ["slice", TRACE, "--from", "0"], ["slice", TRACE, "--from", "0", "-o", "-"]])
def test_the_file_may_not_be_where_the_json_is(words, folder):
    ended = kprof(*words, "--json", folder=folder)
    assert ended.returncode == 2 and ended.stdout == "" and "-o names the file" in ended.stderr


def test_a_spools_export_is_json(folder):
    ended = kprof("export", "left/node_1.1.kprof", "-o", "out", "--json", folder=folder)
    said = values(ended.stdout)
    assert ended.returncode == 0 and said and all(line["complete"] in (True, False) and "dropped" in line for line in said)
    for line in said:
        written(folder, line)
