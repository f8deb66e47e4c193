# SPDX-License-Identifier: Apache-2.0
"""KPROF_SYMBOLS: counts beside uftrace's and gdb's on three programs, beside the ops recorded in torch; what the slices tell."""
import collections
import json
import os
import platform
import re
import shlex
import shutil
import subprocess

import pytest

import facts
import harness

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="there are stubs for x86-64 only")

SQL = """create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x<200) insert into t select x, hex(x) from c;
select count(*) from t where b like '3%';
select sum(a) from t;
"""
PYTHON = "import zlib; print(sum(len(zlib.decompress(zlib.compress(b'y' * i))) + zlib.crc32(b'x' * i) % 2 for i in range(70)))"
THROWS = """
#include <stdexcept>
#include <stdio.h>
#include <zlib.h>
extern "C" int again(int n, int (*fn)(int));
static int throws(int n) { if (!n) throw std::runtime_error("x"); return again(n - 1, throws); }
int main()
{
    int caught = 0;
    for (int i = 0; i < 40; i++) try { again(i % 5, throws); } catch (std::exception &) { caught += crc32(1, (const Bytef *)"ab", 2) != 0; }
    printf("%d\\n", caught);
}
"""
AGAIN = 'extern "C" int again(int n, int (*fn)(int)) { return fn(n) + 1; }'


def recorded(folder, command, symbols, stdin="", **env):
    """The trace and what the program wrote."""
    folder.mkdir()
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=harness.LONG, cwd=folder,
                          env=harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_SYMBOLS=symbols, **env))
    assert done.returncode == 0, done.stderr
    traces = sorted((folder / "kprof").glob("*.gz"))
    assert len(traces) == 1, done.stderr
    return facts.load(traces[0]), done


def slices(trace):
    return [e for e in trace["traceEvents"] if e.get("cat") == "symbol"]


def counts(trace):
    return collections.Counter(e["name"] for e in slices(trace))


def gdbs(command, names, folder, stdin=""):
    """How often gdb stops at each of these."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    script = ["set pagination off", "set confirm off", "set breakpoint pending on", "set debuginfod enabled off"]
    script += [f"break {name}" for name in names] + [f"ignore {i + 1} 100000000" for i in range(len(names))]
    (folder / "in").write_text(stdin)
    script += [f"run {shlex.join(command[1:])} < {folder}/in > /dev/null", "info breakpoints"]
    (folder / "gdb").write_text("\n".join(script) + "\n")
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", folder / "gdb", command[0]], capture_output=True, text=True, timeout=harness.LONG,
                          env=harness.clean_environment())
    hits, number = collections.Counter(), 0
    for line in done.stdout.splitlines():
        if re.match(r"\d+ +breakpoint", line):
            number = int(line.split()[0])
        hit = re.search(r"already hit (\d+) time", line)
        if hit:
            hits[names[number - 1]] = int(hit.group(1))
    if not hits:
        pytest.skip("gdb cannot run programs here: " + done.stderr[-200:])
    return hits


def nests(events):
    """Whether on each row what begins in a slice ends in it."""
    rows = collections.defaultdict(list)
    for e in events:
        rows[e["tid"]].append((facts.begin(e), facts.end(e)))
    for row in rows.values():
        open_ends = []
        for start, end in sorted(row, key=lambda x: (x[0], -x[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                return False
            open_ends.append(end)
    return True


def test_counts_of_sqlite_are_those_of_uftrace(tmp_path):
    if not shutil.which("sqlite3") or not shutil.which("uftrace"):
        pytest.skip("no sqlite3 or no uftrace")
    trace, done = recorded(tmp_path / "ours", ["sqlite3", ":memory:"], "sqlite3_*", SQL)
    assert done.stdout == "200\n20100\n"
    data = tmp_path / "data"
    subprocess.run(["uftrace", "record", "--force", "--nest-libcall", "--no-event", "-d", data, "sqlite3", ":memory:"], input=SQL, text=True,
                   capture_output=True, timeout=harness.LONG, env=harness.clean_environment())
    said = subprocess.run(["uftrace", "report", "-d", data], capture_output=True, text=True, timeout=harness.LONG).stdout
    theirs = {m.group(2): int(m.group(1)) for m in re.finditer(r"(\d+)  (sqlite3_\w+)$", said, re.M)}
    if len(theirs) < 10:
        pytest.skip("uftrace records nothing here")
    ours = counts(trace)
    assert {n: c for n, c in ours.items() if theirs.get(n) != c} == {}
    assert {n: c for n, c in theirs.items() if ours.get(n) != c} == {}
    assert nests(slices(trace))


def test_counts_of_a_python_are_those_of_gdb(tmp_path):
    command = [os.path.realpath("/usr/bin/python3"), "-c", PYTHON]
    names = ["crc32", "deflateInit2_", "deflate", "inflate", "inflateEnd"]
    trace, done = recorded(tmp_path / "ours", command, ",".join(names))
    ours = counts(trace)
    theirs = gdbs(command, names, tmp_path)
    assert ours["crc32"] >= 70 and ours["inflate"] >= 70, done.stderr
    assert {n: ours[n] for n in names} == {n: theirs[n] for n in names}
    told = json.loads(harness.cli("report", "--by", "symbol", "-n", "0", "--json", tmp_path / "ours" / "kprof").stdout)
    assert {row["name"]: row["count"] for row in told["rows"]} == dict(ours)
    assert {e["args"]["object"].split(".so")[0] for e in slices(trace)} <= {"libz"}


def test_calls_that_exceptions_leave_have_ends(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    (tmp_path / "again.cc").write_text(AGAIN)
    (tmp_path / "main.cc").write_text(THROWS)
    build = ["g++", "-O1", "-fno-optimize-sibling-calls"]
    subprocess.run([*build, "-fPIC", "-shared", tmp_path / "again.cc", "-o", tmp_path / "libagain.so"], check=True)
    subprocess.run([*build, tmp_path / "main.cc", "-o", tmp_path / "main", "-L", tmp_path, "-lagain", "-lz", f"-Wl,-rpath,{tmp_path}"], check=True)
    trace, done = recorded(tmp_path / "ours", [str(tmp_path / "main")], "again,crc32")
    assert done.stdout == "40\n"
    ours = counts(trace)
    assert ours == gdbs([str(tmp_path / "main")], ["again", "crc32"], tmp_path)
    assert ours["again"] == sum(i % 5 + 1 for i in range(40)) and ours["crc32"] == 40
    assert nests(slices(trace)) and not any("finished" in e["args"] for e in slices(trace))
    starts = sorted(e["ts"] for e in slices(trace) if e["name"] == "crc32")  # in the handler, behind what the exception left
    for e in slices(trace):
        if e["name"] == "again":
            assert e["ts"] + e["dur"] <= min(start for start in starts if start > e["ts"]) + 0.004


def test_what_is_not_hooked_is_said(tmp_path):
    folder = tmp_path / "ours"
    folder.mkdir()
    done = subprocess.run(["bash", "-c", ":"], capture_output=True, text=True, cwd=folder,
                          env=harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_SYMBOLS="no_such_function_*"))
    said = [line for line in done.stderr.splitlines() if line.startswith("kprof:")]
    assert len([line for line in said if "no_such_function_*" in line and "(0 such functions defined" in line]) == 1
    assert done.returncode == 0


HIDDEN = """
#define NI __attribute__((noinline, noipa))
static NI int hid_one(int n) { return n * 3; }
static NI int hid_same(int n) { return n * 5; }
__attribute__((visibility("hidden"))) NI int hid_hidden(int n) { return n + 7; }
NI int hid_never_called(int n) { return n; }
int hid_shown(int n) { return hid_one(n) + hid_same(n) + hid_hidden(n); }
"""
CALLS_HIDDEN = """
#include <stdio.h>
int hid_shown(int);
__attribute__((noinline, noipa)) static int hid_same(int n) { return n + 1; }
__attribute__((noinline, noipa)) int hid_of_program(int n) { return n + 2; }
int main(void) { printf("%d\\n", hid_shown(hid_same(hid_of_program(1)))); return 0; }
"""


def names(file, *options):
    """Functions of a file whose names begin with hid_, by nm."""
    lines = subprocess.run(["nm", "--defined-only", *options, file], capture_output=True, text=True, check=True).stdout.splitlines()
    return collections.Counter(line.split()[2] for line in lines if line.split()[1] in "tTwWi" and line.split()[2].startswith("hid_"))


def said_of_hidden(folder, preload=(), **env):
    """What the line says of the program made below: functions hooked, not hooked, static or hidden; stripped files."""
    (folder / "kprof").mkdir(exist_ok=True)
    done = subprocess.run([*preload, str(folder / "main")], capture_output=True, text=True, timeout=harness.LONG, cwd=folder,
                          env=harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY), KPROF_SYMBOLS="hid_*", **env))
    assert done.returncode == 0 and done.stdout == "43\n", done.stderr
    found = re.search(r"calls of (\d+) functions are recorded; not those of (\d+) without a PLT/GOT slot and (\d+) static or hidden.*", done.stderr)
    assert found, done.stderr
    stripped = re.search(r"static functions of (\d+) stripped files", found.group(0))
    trace = facts.load(max((folder / "kprof").glob("*.gz"), key=os.path.getmtime))
    assert f"hooked {found.group(1)}, " in trace["kprof"]["symbols"] and f"static or hidden {found.group(3)}, " in trace["kprof"]["symbols"]
    return [int(found.group(i)) for i in (1, 2, 3)], int(stripped.group(1)) if stripped else 0


@pytest.fixture
def hidden_program(tmp_path):
    if not shutil.which("objcopy"):
        pytest.skip("no binutils")
    (tmp_path / "hid.c").write_text(HIDDEN)
    (tmp_path / "main.c").write_text(CALLS_HIDDEN)
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-Wl,--build-id", tmp_path / "hid.c", "-o", tmp_path / "libhid.so"], check=True)
    subprocess.run(["gcc", "-O1", "-Wl,--build-id", tmp_path / "main.c", "-o", tmp_path / "main", "-L", tmp_path, "-lhid", f"-Wl,-rpath,{tmp_path}"],
                   check=True)
    return tmp_path


def test_static_and_hidden_functions_are_counted_as_nm_does(hidden_program):
    files = [hidden_program / "main", hidden_program / "libhid.so"]
    shown = [names(file, "-D") for file in files]
    hidden = [names(file) - of for file, of in zip(files, shown)]
    assert hidden[0] == {"hid_same": 1, "hid_of_program": 1} and hidden[1] == {"hid_one": 1, "hid_same": 1, "hid_hidden": 1}
    counts_of, stripped = said_of_hidden(hidden_program)
    assert counts_of == [1, sum(map(len, shown)) - 1, sum(h.total() for h in hidden)]
    subprocess.run(["strip", files[1]], check=True)  # the table is gone, what it shows to others is not
    assert said_of_hidden(hidden_program) == ([1, 1, hidden[0].total()], stripped + 1)


def test_static_functions_of_a_stripped_file_are_counted_from_its_debug_file(hidden_program):
    library, debug = hidden_program / "libhid.so", hidden_program / "debug"
    debug.mkdir()
    if not os.path.isdir("/usr/lib/debug") or subprocess.run(["unshare", "-rm", "mount", "--bind", debug, "/usr/lib/debug"], capture_output=True).returncode:
        pytest.skip("no /usr/lib/debug, or no mounts of one's own here")
    before, build_id = said_of_hidden(hidden_program)[0], re.search(r"Build ID: (\w+)", subprocess.run(
        ["readelf", "-n", library], capture_output=True, text=True, check=True).stdout).group(1)
    folder = debug / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", library, folder / f"{build_id[2:]}.debug"], check=True)
    subprocess.run(["strip", library], check=True)
    mounted = ["unshare", "-rm", "sh", "-c", f'mount --bind {debug} /usr/lib/debug && exec "$0"']
    assert said_of_hidden(hidden_program, mounted)[0] == before
    other = (folder / f"{build_id[2:]}.debug").read_bytes().replace(bytes.fromhex(build_id), bytes(len(build_id) // 2))
    (folder / f"{build_id[2:]}.debug").write_bytes(other)  # of another build: it does not count
    assert said_of_hidden(hidden_program, mounted)[0] == [1, 1, before[2] - 3]


def test_valgrind_reads_the_rules_of_stubs(tmp_path):
    """It ends a program whose .eh_frame holds some things it does not know."""
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    done = subprocess.run(["valgrind", "--tool=none", "true"], capture_output=True, text=True, timeout=harness.LONG, cwd=tmp_path,
                          env=harness.clean_environment(LD_PRELOAD=str(harness.LIBRARY)))
    assert done.returncode == 0, done.stderr[-2000:]


def test_calls_of_ops_are_the_ops_recorded(tmp_path):
    harness.needs("torch")
    program = ("import torch\ntorch.set_num_threads(1)\na = torch.ones(4, 4)\n"
               "for i in range(30): b = torch.add(a, a); c = torch.mm(a, b); d = torch.relu(c)\nprint(float(d.sum()))")
    script = tmp_path / "program.py"
    script.write_text(program)
    run = harness.run_kprof(None, tmp_path, command=[harness.PYTHON, script], schedule=None, shapes=False, KPROF_SYMBOLS="at::_ops::*::call",
                            OMP_NUM_THREADS="1").ok()
    trace = facts.load(run.trace)
    ops = collections.Counter(e["name"] for e in trace["traceEvents"] if e.get("cat") == "cpu_op")
    ours = counts(trace)
    told = json.loads(harness.cli("report", "--by", "symbol", "-n", "0", "--json", run.trace).stdout)
    assert {row["name"]: row["count"] for row in told["rows"]} == dict(ours)  # and no op
    for symbol, op in (("add_Tensor", "aten::add"), ("mm", "aten::mm"), ("relu", "aten::relu"), ("clamp_min", "aten::clamp_min")):
        assert ours[f"at::_ops::{symbol}::call"] == ops[op] == 30
    assert all(e["args"]["symbol"].startswith("_ZN2at4_ops") and e["args"]["object"].startswith("libtorch_cpu") for e in slices(trace))
    both = [e for e in trace["traceEvents"] if e.get("cat") in ("symbol", "cpu_op")]
    assert nests(both) and json.dumps(both)
