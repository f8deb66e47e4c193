# SPDX-License-Identifier: Apache-2.0
"""What is no trace, or a damaged one, ends each command with a clear line; odd times and types end none."""
import base64
import errno
import gzip
import os
import pathlib
import random
import resource
import subprocess

import harness
import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/traces"
PACKED = (DATA / "memory.pt.trace.json.gz").read_bytes()
WHOLE = gzip.decompress(PACKED)
EVENT = b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":%s,"dur":%s,"args":{}}'


def events(*times):
    return b'{"traceEvents":[%s]}' % b",".join(EVENT % pair for pair in times)


ENOENT, NO_TRACE = os.strerror(errno.ENOENT), "byte 1: not a trace, which is JSON"
NO_EVENT, IN_AN_EVENT, IN_JSON = "no such event in it", "the file ends inside an event", "the file ends inside the JSON"
ALL_EVENTS = NO_EVENT + "; kprof events FILE lists all\n"
AGAIN = "; copy it again, or write it again where its spool was left: kprof recover FOLDER\n"
REFUSED = {  # what each command says
    "torn": (WHOLE[:len(WHOLE) // 2], f"byte 474024: {IN_AN_EVENT} (1116 events read before it)"),
    "torn_gzip": (PACKED[:20000], f"byte 317133: {IN_AN_EVENT} (747 events read before it)"),
    "head": (WHOLE[:300], IN_AN_EVENT + AGAIN),
    "empty": (b"", "the file is empty" + AGAIN),
    "empty_gzip": (gzip.compress(b""), "the file is empty"),
    "blank": (b" \n", IN_JSON),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, NO_TRACE),
    "log": (b"step 1 loss 0.5\n" * 100, NO_TRACE),
    "metrics": (b'{"loss":[1,2,3]}', "not a trace"),
    "no_list": (b'{"traceEvents":5}', "not a trace"),
    "deep": (b"[" * 100000, IN_JSON),
    "not_a_number": (events((b"1", b"2"), (b"5", b"NaN")), "place of a number (1 events read before it)"),
    "infinite": (events((b"-Infinity", b"2")), "not JSON: NaN or Infinity"),
    "a_string_of_17_mb": (b'{"traceEvents":[{"ph":"X","name":"' + b"a" * (17 << 20), "of more than 16 MB begins near here"),
    "an_event_of_66_mb": (b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","args":{"a":[' + (b'"' + b"a" * (1 << 20) + b'",') * 66,
                          "an event of more than 64 MB begins near here"),
    "nul": (b'{"traceEvents":[{"ph":"X","name":"\x00\x01\xff"}]}', "control character"),
    "utf16": (events((b"1", b"2")).decode().encode("utf-16"), NO_TRACE + " (this is UTF-16)"),
    "page": (b"<!DOCTYPE html><html>404</html>", NO_TRACE + " (this is HTML or XML): expected a value"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "(this is a Git LFS pointer: git lfs pull)"),
    "archive": (b"PK\x03\x04" + bytes(60), "(this is a ZIP archive: unpack it)"),
}
TAKEN = {
    "negative": events((b"-5", b"3"), (b"-100", b"-7"), (b"4", b"-1")),
    "huge": events((b"1e300", b"1e300"), (b"99999999999999999999", b"9"), (b"-1e300", b"5")),
    "quoted": events((b'"5"', b'"NaN"')),
    "types": b'{"traceEvents":[{"ph":1,"cat":[],"name":{},"ts":null,"dur":true,"pid":[1],"args":[1]}]}',
    "numbers": b'{"traceEvents":[1,2,3]}',
    "no_events": b'{"traceEvents":[]}',
    "marked": b"\xef\xbb\xbf" + events((b"1", b"2")),
}
EXPORTS = ("perfetto", "ndjson", "speedscope", "sqlite")
COMMANDS = [["report"], ["advise"], ["html", "-o", "OUT"], ["view", "--json"], ["memory"], ["events"], ["diff", str(DATA / "memory.pt.trace.json.gz")], ["stacks"],
            ["slice", "--from", "-9", "--to", "9", "-o", "OUT"]] + [["export", "--format", name, "-o", "OUT"] for name in EXPORTS]


def memory_bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (250 << 20, 250 << 20))


def each(folder, data):
    """Runs each command in 250 MB: its words, how it ended, what it said; whether it left a file."""
    trace, out = folder / "x.pt.trace.json", folder / "out"
    trace.write_bytes(data)
    for words in COMMANDS:
        out.unlink(missing_ok=True)
        given = [str(out) if word == "OUT" else word for word in words[1:]]
        ended = subprocess.run([harness.KPROF, words[0], trace, *given], capture_output=True, text=True, errors="replace", timeout=60,
                               preexec_fn=memory_bounded)
        yield words, ended, out.exists()
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("name", REFUSED)
def test_each_command_says_in_a_line_why_it_is_no_trace(name, tmp_path):
    data, words = REFUSED[name]
    for command, ended, is_written in each(tmp_path, data):
        assert ended.returncode == 1 and not is_written, command
        assert words in ended.stderr and "x.pt.trace.json" in ended.stderr, (command, ended.stderr)
        has_part = command[0] == "report" and name.startswith("torn")  # it reports what was read, and fails all the same
        assert (ended.stdout == "") != has_part and len(ended.stderr.splitlines()) == 1, (command, ended.stderr)


@pytest.mark.parametrize("name", TAKEN)
def test_odd_times_and_types_end_no_command(name, tmp_path):
    for command, ended, is_written in each(tmp_path, TAKEN[name]):
        assert ended.returncode in (0, 1), (command, ended.returncode, ended.stderr)
        assert ended.returncode == 0 or ended.stderr.startswith("kprof"), command
        assert is_written == ("OUT" in command and ended.returncode == 0), command


def test_what_was_read_before_the_end_is_not_lost(tmp_path):
    (tmp_path / "x.json").write_bytes(REFUSED["torn"][0])
    ended = subprocess.run([harness.KPROF, "report", "--partial", tmp_path / "x.json"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and "aten::addmm" in ended.stdout and "1116 events" in ended.stderr


def report(*args):
    return subprocess.run([harness.KPROF, "report", *args], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_cut_in_the_middle_is_of_its_whole_steps(packed, tmp_path):
    """The step that the cut runs through is no whole one, and its ops that are lost are no waiting."""
    first = b'{"schemaVersion":1,"kprof":{"version":"1"},"traceEvents":['
    step = b'{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":1000,"args":{}},'
    op = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":90,"args":{}},\n'
    text = first + b"".join(step % (n, 1000 * n) + b"".join(op % (1000 * n + 100 * i) for i in range(10)) for n in range(2, 7))
    cut = text.index(op % 6300) + 40
    path = tmp_path / "x.pt.trace.json"
    path.write_bytes(gzip.compress(text[:cut]) if packed else text[:cut])
    ended = report(path)
    assert ended.returncode == 1 and f"byte {cut}: the file ends inside" in ended.stderr
    assert "up to 4.2 ms, 4 whole steps (2 to 5), step 6 cut short; see --partial" in ended.stderr
    assert "4 steps (2 to 5)" in ended.stdout and "90.0 % in operators" in ended.stdout, ended.stdout
    part = report("--partial", path)
    assert part.returncode == 0 and part.stdout == ended.stdout
    assert report("--json", path).stdout == "" and report("--torch", path).stdout == ""


# ---- what is no file, and names that a trace does not have ----

def kprof(*words, cwd=None):
    return subprocess.run([harness.KPROF, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=cwd)


def refused(*words, cwd=None):
    """What a command says that fails."""
    ended = kprof(*words, cwd=cwd)
    assert ended.returncode == 1 and ended.stdout == "" and ended.stderr.startswith("kprof"), (words, ended.stderr)
    return ended.stderr


def test_an_export_of_a_folder_says_what_exports_its_files(tmp_path):
    (tmp_path / "c8").mkdir()
    assert refused("export", "c8", cwd=tmp_path) == "kprof export: c8: no spools and no traces in this folder; check the name\n"
    (tmp_path / "c8/host_7.1790857026000000000.pt.trace.json").write_bytes(WHOLE)
    said = refused("export", "c8", cwd=tmp_path)
    assert said == "kprof export: c8: is a folder with traces; as other files: kprof export --format perfetto|ndjson|speedscope|sqlite c8\n"
    (tmp_path / "c8/host_8.1790857027000000000.kprof").write_bytes(b"")
    assert "c8: is a folder with spools; name them: kprof export c8/*.kprof\n" in refused("export", "c8", cwd=tmp_path)


def test_what_does_not_listen_is_told_with_the_flag(tmp_path):
    said = kprof("ctl", tmp_path, "status").stderr
    assert said.startswith(f"kprof ctl: {tmp_path}: no process here was started with --control (")


def test_a_name_that_is_not_there_gets_a_guess(tmp_path):
    trace = DATA / "memory.pt.trace.json.gz"
    for words, said in ((("report", trace, "--within", "conv2d"), "is named conv2d (did you mean aten::conv2d?); Python's calls are not recorded: --with-stack 1\n"),
                        (("slice", trace, "--within", "conv2d", "-o", tmp_path / "x.json"), "is named conv2d (did you mean aten::conv2d?); Python's calls are not recorded: --with-stack 1\n"),
                        (("report", trace, "--within", "convolution_back"), "(did you mean aten::convolution_backward?)"),
                        (("events", trace, "--cat", "cpuop"), "no event of category cpuop (did you mean cpu_op?); it has "),
                        (("events", trace, "--cat", "pyton_function"), "no event of category pyton_function; it has "),
                        (("events", DATA / "stack.pt.trace.json.gz", "--cat", "pyton_function"), "(did you mean python_function?)"),
                        (("events", trace, "--cat", "cpu_op", "--name", "nobody"), ALL_EVENTS),
                        (("events", trace, "--name", "conv2d"), NO_EVENT + " (did you mean aten::conv2d?)\n"),
                        (("events", trace, "--cat", "cpu_op", "--name", "aten::con2vd"), NO_EVENT + " (did you mean aten::conv2d?)\n"),
                        (("events", trace, "--cat", "user_annotation", "--name", "aten::con2vd"), ALL_EVENTS),
                        (("events", trace, "--to", "-1", "--name", "aten::conv2d"), ALL_EVENTS),
                        (("events", trace, "--name", "/conv2e/"), ALL_EVENTS),
                        (("memory", trace, "--step", "99"), "no step 99 in it: it has steps "),
                        (("memory", trace, "--step", "98-99"), "no steps 98 to 99 in it: it has steps ")):
        assert said in refused(*words), words
    assert "it has " in refused("events", trace, "--cat", "pyton_function") and "cpu_op" in refused("events", trace, "--cat", "pyton_function")


def test_a_folder_that_is_not_there_is_told_with_those_beside_it(tmp_path):
    why = ". A run that recorded nothing made no folder, and its last line says why\n"
    assert refused("report", "nosuch", cwd=tmp_path) == f"kprof: nosuch: {ENOENT}{why}"
    for name in ("c8", "ranks", "empty"):
        (tmp_path / name).mkdir()
    for name in ("c8", "ranks"):
        (tmp_path / name / "host_7.1790857026000000000.pt.trace.json").write_bytes(WHOLE)
    for words in (["report"], ["advise"], ["events"], ["html"]):
        assert refused(*words, "nosuch", cwd=tmp_path) == f"kprof: nosuch: {ENOENT}; folders there with traces: c8, ranks{why}", words
    assert refused("report", "nosuch/latest", cwd=tmp_path) == f"kprof: nosuch: {ENOENT}; folders there with traces: c8, ranks{why}"
    assert "kprof: empty: no traces in" in refused("report", "empty/latest", cwd=tmp_path)
    assert refused("report", "rank", cwd=tmp_path) == f"kprof: rank: {ENOENT} (did you mean ranks?)\n"
    assert refused("report", f"{tmp_path}/rnaks/") == f"kprof: {tmp_path}/rnaks/: {ENOENT} (did you mean {tmp_path}/ranks?)\n"
    for number in range(9):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}/host_7.1790857026000000000.kprof").write_bytes(b"")
    assert "folders there with traces: c8, d0, d1, d2, d3 and 6 more. A run that" in refused("report", "nosuch", cwd=tmp_path)


def test_a_large_page_is_told_with_what_makes_it_smaller(tmp_path):
    step = b'{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":22000,"args":{}}'
    op = b'{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1,"args":{}}'
    lines = [step % (n, 22000 * n) for n in (0, 1)] + [op % (base64.b64encode(random.Random(at).randbytes(375)), at) for at in range(44000)]
    path, page = tmp_path / "x.pt.trace.json", tmp_path / "x.html"
    path.write_bytes(b'{"traceEvents":[%s]}' % b",\n".join(lines))
    ended = kprof("html", path, "-o", page)
    first, told = ended.stderr.splitlines()
    assert ended.returncode == 0 and first == f"kprof: wrote {page}" and page.stat().st_size > 20 << 20
    assert told == (f"kprof html: that is {page.stat().st_size / (1 << 20):.2f} MiB; of fewer steps it is smaller: kprof slice --step A-B cuts them out of a trace, "
                    "kprof run --schedule records them alone"), told
    assert kprof("slice", "--step", "1", path, "-o", tmp_path / "part.json").returncode == 0
    assert kprof("html", tmp_path / "part.json", "-o", page).stderr == f"kprof: wrote {page}\n" and page.stat().st_size < 20 << 20
