# SPDX-License-Identifier: Apache-2.0
"""kprof report prints torch's own table of the same run, letter for letter; bad files and bad options are refused."""
import gzip
import json
import os
import pathlib
import subprocess

import pytest

import harness

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KPROF = os.environ.get("KPROF", str(ROOT / "build" / "kprof"))
DATA = ROOT / "test" / "data"
PROGRAMS = ["train", "train_shapes", "train_memory", "train_stack", "threads", "threads_shapes", "threads_overloads",
            "threads_stack", "tiny", "unfinished"]
REFERENCE = {
    "default": [],
    "self_cpu": ["--sort-by", "self_cpu_time_total", "--row-limit", "15"],
    "header_toplevel_ms": ["--sort-by", "cpu_time_total", "--row-limit", "10", "--header", "HEADER TEXT",
                           "--top-level-events-only", "--time-unit", "ms"],
    "by_shape": ["--group-by-input-shape", "--sort-by", "cpu_time_total", "--row-limit", "25"],
    "mem": ["--sort-by", "self_cpu_memory_usage", "--row-limit", "15"],
    "by_stack5": ["--group-by-stack-n", "5", "--sort-by", "self_cpu_time_total", "--row-limit", "12"],
    "python_functions": ["--include-python-functions", "--sort-by", "self_cpu_time_total", "--row-limit", "12"],
}
VARIANTS = ["plain", "shapes", "stack", "memory", "noschedule", "full", "verbose"]


def kprof(*argv, cwd=None):
    return subprocess.run([KPROF, *map(str, argv)], cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=harness.LONG)


def by_torch(script, folder, *args):
    """torch's own tables, in a fork that has torch."""
    harness.Run([harness.PYTHON, HERE / "report" / script, *args], folder, harness.clean_environment(), harness.LONG, warm_start=True).ok()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Each program run once, on first use."""
    done = {}

    def run(program):
        if program not in done:
            out = tmp_path_factory.mktemp(program)
            by_torch("make_tables.py", out, out, program)
            done[program] = out
        return done[program]

    return run


def differences(ours, theirs):
    ours, theirs = ours.splitlines(), theirs.splitlines()
    lines = [f"line {i + 1}\n  kprof {a!r}\n  torch {b!r}" for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    if len(ours) != len(theirs):
        lines.append(f"{len(ours)} lines, torch has {len(theirs)}")
    return lines


def wrong_tables(trace, tables, least):
    """What `kprof report` prints otherwise than torch's texts say it must."""
    wanted, wrong = json.loads(tables.read_text(encoding="utf-8")), []
    assert len(wanted) >= least
    for table in wanted:
        told = kprof("report", "--torch", *table["argv"], trace)
        assert told.returncode == 0 and table["text"], told.stderr
        if told.stdout != table["text"]:
            wrong.append(table["name"] + ": " + "\n".join(differences(told.stdout, table["text"])[:4]))
    return "\n".join(wrong)


def test_a_table_of_many_windows_is_the_one_of_acc_events(tmp_path):
    by_torch("accumulated.py", tmp_path, tmp_path)
    assert not wrong_tables(tmp_path / "window2.pt.trace.json", tmp_path / "tables.json", least=3)  # the others are in argv
    alone = kprof("report", "--torch", tmp_path / "window2.pt.trace.json").stdout
    assert alone == kprof("report", "--acc-events", tmp_path / "window2.pt.trace.json").stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_table_of_a_run_is_the_one_torch_prints(runs, program):
    out = runs(program)
    assert not wrong_tables(out / "trace.json", out / "tables.json", least=10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_reference_tables_are_printed_again(variant):
    seen = 0
    for name, argv in REFERENCE.items():
        expected = DATA / "tables" / f"{variant}.{name}.txt"
        if not expected.exists():
            continue
        told = kprof("report", "--torch", *argv, DATA / "traces" / f"{variant}.pt.trace.json.gz")
        assert told.stdout == expected.read_text(encoding="utf-8"), name
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize("name", ["amd_mi250", "triton_a100", "event_sync_multi_a100", "nccl_a100",
                                  "tb_resnet50_nw0_v100_2021"])
def test_a_gpu_trace_gives_the_tables_torch_makes_of_its_events(name, real_gpu_trace, tmp_path):
    trace = real_gpu_trace(name)
    by_torch("torch_tables.py", tmp_path, trace, tmp_path, "GPU")
    assert not wrong_tables(trace, tmp_path / "tables.json", least=6)


def test_a_gzip_trace_gives_the_table_of_the_plain_one(runs, tmp_path):
    plain = runs("tiny") / "trace.json"
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert kprof("report", "--torch", packed).stdout == kprof("report", "--torch", plain).stdout != ""


def test_several_files_get_a_heading_each(runs):
    trace = runs("tiny") / "trace.json"
    alone = kprof("report", "--torch", trace).stdout
    assert kprof("report", "--torch", trace, trace).stdout == f"{trace}:\n{alone}" * 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_torn_trace_is_told_with_its_byte_and_read_with_partial(runs, tmp_path, packed):
    text = (runs("tiny") / "trace.json").read_bytes()
    cut = text.index(b'"aten::add"') + 200
    torn = tmp_path / "torn.json"
    torn.write_bytes(gzip.compress(text[:cut]) if packed else text[:cut])
    told = kprof("report", "--torch", torn)
    assert told.returncode == 1 and told.stdout == ""
    assert str(torn) in told.stderr and f"byte {cut}:" in told.stderr and told.stderr.count("\n") == 1
    part = kprof("report", "--torch", "--partial", torn)
    assert part.returncode == 0 and "aten::ones" in part.stdout


def test_a_gzip_cut_short_is_told(runs, tmp_path):
    packed = gzip.compress((runs("train") / "trace.json").read_bytes())
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(packed[: len(packed) // 2])
    told = kprof("report", "--torch", torn)
    assert told.returncode == 1 and "byte " in told.stderr and str(torn) in told.stderr
    assert "aten::" in kprof("report", "--torch", "--partial", torn).stdout


@pytest.mark.parametrize("text,byte", [('{"traceEvents": [{"ph": "X",, ]}', 28), ("", 0), ("not JSON", 1), ("[1, 2", 5)])
def test_broken_json_is_told_with_its_byte(tmp_path, text, byte):
    path = tmp_path / "broken.json"
    path.write_text(text)
    told = kprof("report", "--torch", path)
    assert told.returncode == 1 and told.stderr.count("\n") == 1
    offset = int(told.stderr.split("byte ")[1].split(":")[0])
    assert abs(offset - byte) <= 2


@pytest.mark.parametrize("argv", [["--sort-by", "nonsense"], ["--row-limit", "x"], ["--time-unit", "h"], [],
                                  ["--max-name-column-width", "0"], ["--nonsense", "x"]])
def test_bad_options_are_usage_errors(runs, argv, tmp_path):
    files = [runs("tiny") / "trace.json"] if argv else []
    told = kprof("report", "--torch", *argv, *files, cwd=tmp_path)  # without a file there is no latest run here
    assert told.returncode == 2 and told.stdout == "" and told.stderr
    assert "kprof help report" in told.stderr


def test_a_missing_file_is_bad_input(tmp_path):
    told = kprof("report", "--torch", tmp_path / "none.json")
    assert told.returncode == 1 and "none.json" in told.stderr


def events(*argv):
    told = kprof("events", *argv)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_events_are_those_of_the_trace_in_order_of_time(runs):
    trace = runs("train_shapes") / "trace.json"
    written = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and "cat" in e]
    listed = [json.loads(line) for line in events("--json", trace)]
    listed = [e for e in listed if e["ph"] == "X"]
    assert [e["ts"] for e in listed] == sorted(e["ts"] for e in listed)

    def key(e):
        return json.dumps([e["ts"], -e["dur"], e["name"], e["cat"], e["pid"], e["tid"], e.get("args")], sort_keys=True)

    assert sorted(map(key, listed)) == sorted(map(key, written))
    assert len(events(trace)) == len(events("--json", trace)) + 1


def test_events_are_filtered_by_name_category_step_time_and_thread(runs):
    trace = runs("train_shapes") / "trace.json"
    every = [json.loads(line) for line in events("--json", trace)]
    names = [json.loads(line)["name"] for line in events("--json", "--name", "aten::conv*", trace)]
    assert names and names == [e["name"] for e in every if e["name"].startswith("aten::conv")]
    names = [json.loads(line)["name"] for line in events("--json", "--name", "/^aten::(mm|addmm)$/", trace)]
    assert names and set(names) <= {"aten::mm", "aten::addmm"}
    cats = {json.loads(line)["cat"] for line in events("--json", "--cat", "user_annotation", trace)}
    assert cats == {"user_annotation"}
    step = next(e for e in every if e["name"] == "ProfilerStep#2")
    inside = [e for e in every if step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
    assert len(events("--json", "--step", "2", trace)) == len(inside) > 0
    both = len(events("--json", "--step", "1-2", trace))
    assert both > len(inside)
    assert len(events("--json", "--tid", step["tid"], trace)) <= len(every)
    first = events(trace)[1].split()
    assert len(events("--from", "0", "--to", first[0], trace)) >= 2
    assert kprof("events", "--step", "5-2", trace).returncode == 2
