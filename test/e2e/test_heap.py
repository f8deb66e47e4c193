# SPDX-License-Identifier: Apache-2.0
"""KPROF_MALLOC: allocations, leaks and peak beside heaptrack's and valgrind's, on every allocator there is, for each op."""
import glob
import json
import os
import re
import shutil
import subprocess

import pytest

import facts
import harness

SOURCE = harness.SCRIPTS / "heap"
POOL = 1  # libstdc++'s, for exceptions: made before our constructor; heaptrack brings a libstdc++ into every program
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heap")
    for source, compiler in (("known.c", "gcc"), ("ranged.c", "gcc"), ("sites.c", "gcc"), ("mixed.cpp", "g++")):
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}")
        subprocess.run([compiler, "-O1", "-g", "-w", SOURCE / source, "-o", folder / source.split(".")[0], "-pthread"], check=True)
    return folder


def ours(command, folder, how="trace", **env):
    run = harness.run_kprof(None, folder, command=command, schedule=None, shapes=False, KPROF_MALLOC=how, **env).ok()
    return facts.load(run.trace)


def heap(*args, **env):
    return ours(*args, **env)["kprof_heap"]


def heaptracks(command, tmp_path, **env):
    """(allocations, leaked) as heaptrack's own counters say."""
    if not shutil.which("heaptrack"):
        pytest.skip("no heaptrack")
    done = subprocess.run(["heaptrack", "-o", tmp_path / "ht", *map(str, command)], capture_output=True, text=True, timeout=harness.LONG,
                          env=harness.clean_environment(**env))
    found = [re.search(rf"\t{what}:\s+(\d+)", done.stdout + done.stderr) for what in ("allocations", "leaked allocations")]
    if not all(found):
        pytest.skip(f"heaptrack counts nothing here: {done.stderr[-200:]}")
    return tuple(int(one.group(1)) for one in found)


def valgrinds(command, **env):
    """(allocations, frees, blocks left, bytes left) as memcheck says."""
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    done = subprocess.run(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--leak-check=full", "--show-leak-kinds=all",
                           *map(str, command)], capture_output=True, text=True, timeout=harness.LONG, env=harness.clean_environment(**env))
    said = done.stderr.replace(",", "")
    total = re.search(r"total heap usage: (\d+) allocs (\d+) frees", said)
    if not total:
        pytest.skip(f"valgrind counts nothing here: {said[-200:]}")
    left = re.findall(r"(?:lost|reachable): (\d+) bytes in (\d+) blocks", said)
    return int(total.group(1)), int(total.group(2)), sum(int(blocks) for _, blocks in left), sum(int(size) for size, _ in left)


@pytest.fixture(scope="session")
def known(programs, tmp_path_factory):
    return {how: ours([programs / "known"], tmp_path_factory.mktemp("known"), how) for how in ("trace", "count")}


def test_what_a_program_is_known_to_do(known):
    h = known["trace"]["kprof_heap"]
    # churn, ten zeroed, one resized, four big, strdup, the buffer of stdout
    assert (h["allocations"], h["frees"]) == (1000 + 10 + 1 + 4 + 1 + 1, 1000 + 1 + 4)
    assert (h["live_blocks"], h["unknown_frees"]) == (12, 0)
    by_bytes = {site["live_bytes"]: site for site in h["sites"] if site["live_bytes"]}
    assert {5, 3000, 9000} <= by_bytes.keys()
    assert by_bytes[9000]["live_blocks"] == 9 and by_bytes[3000]["live_blocks"] == 1
    assert h["peak_bytes"] == 12000 + (4 << 18)
    at_peak = sorted(site["peak_bytes"] for site in h["sites"] if site["peak_bytes"])
    assert at_peak == [3000, 9000, 4 << 18]
    assert sum(site["allocations"] for site in h["sites"]) == h["allocations"]
    assert sum(site["bytes"] for site in h["sites"]) == h["bytes"]


@pytest.mark.parametrize("how", ["count", "trace"])
def test_a_range_has_what_was_allocated_in_it_and_nothing_behind_it(programs, tmp_path, how):
    spans = facts.spans(ours([programs / "ranged"], tmp_path / "out", how))
    ranges = {e["name"]: e["args"]["Host allocations"] for e in spans if e["name"] in ("one", "two")}
    assert (ranges["two"], ranges["one"]) == (2, 1)


def test_stacks_lead_to_main(known, programs):
    stacks = [site["stack"] for site in known["trace"]["kprof_heap"]["sites"]]
    assert all(len(stack) >= 3 for stack in stacks)
    assert sum(any(frame.startswith(f"{programs / 'known'}+0x") for frame in stack[:3]) for stack in stacks) >= 4


def test_counting_gives_the_same_numbers(known):
    traced, counted = known["trace"]["kprof_heap"], known["count"]["kprof_heap"]
    assert counted["mode"] == "count" and "sites" not in counted
    for key in ("allocations", "frees", "bytes"):
        assert counted[key] == traced[key]
    assert 0 <= counted["live_bytes"] - traced["live_bytes"] < 16 * 12  # as the allocator rounds them


def test_the_counter_shows_the_peak(known):
    points = [e for e in known["trace"]["traceEvents"] if e["ph"] == "C" and e["name"] == "Host heap"]
    assert max(e["args"]["bytes"] for e in points) == known["trace"]["kprof_heap"]["peak_bytes"]
    assert points == sorted(points, key=lambda e: e["ts"])
    assert points[-1]["args"]["bytes"] == known["trace"]["kprof_heap"]["live_bytes"]


def test_leaks_are_valgrinds(known, programs):
    h = known["trace"]["kprof_heap"]
    allocations, frees, blocks, size = valgrinds([programs / "known"])
    assert (h["allocations"], h["frees"], h["live_blocks"]) == (allocations, frees, blocks)
    # our output is a file or a pipe, as valgrind's: the buffer of stdout has one size
    assert h["live_bytes"] == size


def test_leaks_of_twelve_sites_are_valgrinds(programs, tmp_path):
    h = heap([programs / "sites"], tmp_path)
    assert (h["allocations"], h["frees"], h["live_blocks"], h["live_bytes"]) == valgrinds([programs / "sites"])


@pytest.mark.parametrize("program", ["known", "mixed"])
def test_as_many_as_heaptrack_counts(program, programs, known, tmp_path):
    h = known["trace"]["kprof_heap"] if program == "known" else heap([programs / program], tmp_path)
    assert (h["allocations"], h["live_blocks"]) == tuple(n - lack for n, lack in zip(heaptracks([programs / program], tmp_path), (POOL, 0)))


def test_python_as_heaptrack_counts_it(tmp_path, monkeypatch):
    # Python's tables take a block more from 22 names on, and from 43: both programs get some 30 variables, whoever calls. Names that hash
    # as they fall did so in one run of 60: a seed, which an isolated interpreter would not look at.
    kept = {key: os.environ[key] for key in ("HOME", "PATH", "TMPDIR") if key in os.environ}
    for key in list(os.environ):
        monkeypatch.delenv(key)
    for key, value in (kept | {f"FILLS{i}": "" for i in range(16)}).items():
        monkeypatch.setenv(key, value)
    command = [os.path.realpath(harness.PYTHON), "-S", "-s", SOURCE / "values.py"]
    assert 24 <= len(harness.clean_environment()) <= 32
    subprocess.run(command, env=harness.clean_environment(), check=True, stdout=subprocess.DEVNULL)  # compiles what was not yet
    allocations, _ = heaptracks(command, tmp_path)
    assert heap(command, tmp_path / "ours")["allocations"] == allocations - POOL


def test_constructors_of_a_library_that_comes_later_as_heaptrack_counts_them(tmp_path):
    where = subprocess.run([harness.PYTHON, "-c", "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"],
                           capture_output=True, text=True, check=True).stdout.strip()
    command = [os.path.realpath(harness.PYTHON), "-S", "-c", f"import ctypes; ctypes.CDLL({where + '/lib/libtorch_cpu.so'!r})"]
    theirs, _ = heaptracks(command, tmp_path)
    assert theirs > 100_000
    assert heap(command, tmp_path / "ours", "count")["allocations"] == pytest.approx(theirs, rel=0.001)


@pytest.mark.parametrize("first", [True, False], ids=["before_us", "behind_us"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_every_allocator(name, first, programs, tmp_path):
    found = glob.glob(f"/usr/lib/*/{ALLOCATORS[name]}")
    if not found:
        pytest.skip(f"no {name} here")
    order = f"{found[0]}:{harness.LIBRARY}" if first else f"{harness.LIBRARY}:{found[0]}"
    glibc = heap([programs / "mixed"], tmp_path / "glibc")
    for how in ("trace", "count"):
        h = heap([programs / "mixed"], tmp_path / how, how, LD_PRELOAD=order)
        assert (h["allocations"], h["frees"]) == (glibc["allocations"], glibc["frees"])
    assert heap([programs / "known"], tmp_path / "known", LD_PRELOAD=order)["peak_bytes"] == 12000 + (4 << 18)


def test_what_a_kill_leaves(programs, tmp_path):
    settings = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path, KPROF_MALLOC="trace")
    with subprocess.Popen([programs / "known", "waits"], env=settings, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "done\n"
        program.kill()
    assert harness.cli("recover", tmp_path).returncode == 0
    h = facts.load(next(tmp_path.glob("*.pt.trace.json.gz")))["kprof_heap"]
    assert (h["allocations"], h["live_blocks"]) == (1017, 12)


def test_the_spool_of_a_running_or_killed_program_is_read_as_its_profile(programs, tmp_path):
    settings = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path, KPROF_MALLOC="trace")

    def read(path, *how):
        said = harness.cli("memory", *how, path)
        assert said.returncode == 0, said.stderr
        return said.stdout

    forms = [("--format", "folded", "--by", "leaked"), ("--format", "json"), ("--format", "heaptrack")]
    with subprocess.Popen([programs / "known", "waits"], env=settings, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "done\n"
        spool = next(tmp_path.glob("*.kprof"))
        running = [read(spool, *form) for form in forms]
        assert json.loads(running[1])["total"]["live_blocks"] == 12
        assert "<svg" in read(spool, "--svg", "--by", "peak")
        program.kill()
    killed = [read(spool, *form) for form in forms]
    assert killed[0] == running[0] and json.loads(killed[1])["total"] == json.loads(running[1])["total"]
    kept = spool.with_name("leaks.txt")
    kept.write_text("of before")
    said = harness.cli("memory", "--leaks", spool, "-o", kept)  # a file is whole, or stays as it was
    assert said.returncode == 1 and "no step in it" in said.stderr and kept.read_text() == "of before"
    assert harness.cli("recover", tmp_path).returncode == 0
    profile = next(tmp_path.glob("*.heap.zst"))
    assert [read(profile, *form) for form in forms] == killed


def test_a_spool_without_a_heap_says_so(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "known"], schedule=None, shapes=False, KPROF_MALLOC="count", KPROF_EXPORT="none").ok()
    said = harness.cli("memory", "--format", "json", next(run.folder.glob("*.kprof")))
    assert said.returncode != 0 and "no profile of the heap; record with kprof run --malloc trace" in said.stderr


def test_off_leaves_no_trace_and_nothing_behind(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path / "off", command=[programs / "known"], schedule=None, shapes=False).ok()
    assert not run.said and not (tmp_path / "off").exists()


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    return {how: harness.run_kprof("transformer.py", tmp_path_factory.mktemp("train"), KPROF_MALLOC=how).ok() for how in ("count", "trace")}


@pytest.mark.parametrize("how", ["count", "trace"])
def test_each_op_and_step_has_its_own(how, training):
    trace = facts.load(training[how].trace)
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    with_heap = [e for e in spans if "Host allocations" in e["args"]]
    assert with_heap and trace["kprof_heap"]["allocations"]
    steps = [e for e in with_heap if e["name"].startswith("ProfilerStep#")]
    assert len(steps) == 3
    assert sum(e["args"]["Host allocations"] for e in steps) <= trace["kprof_heap"]["allocations"]
    lines = facts.by_thread([e for e in spans if e.get("cat") == "cpu_op"])
    for line in lines.values():  # an op has at least what the ops inside it have
        around = []
        for e in sorted(line, key=lambda e: (e["ts"], -e["dur"])):
            while around and around[-1]["ts"] + around[-1]["dur"] <= e["ts"]:
                around.pop()
            assert not around or around[-1]["args"].get("Host allocations", 0) >= e["args"].get("Host allocations", 0)
            around.append(e)


def test_ops_are_counted_alike(training):
    per_op = {}
    for how, run in training.items():
        trace = facts.load(run.trace)
        per_op[how] = sorted((e["name"], e["args"].get("Host allocations", 0)) for e in trace["traceEvents"] if e.get("cat") == "cpu_op")
    same = sum(a == b for a, b in zip(per_op["count"], per_op["trace"]))
    assert len(per_op["count"]) == len(per_op["trace"]) and same >= len(per_op["trace"]) * 0.95  # caches of torch fill differently


def profile_of(trace):
    return trace.parent / (trace.name.split(".pt.trace.json")[0] + ".heap.zst")


def heaptracks_reading(path):
    """(allocations, temporary ones, leaked as it prints bytes) of a profile, by heaptrack itself."""
    if not shutil.which("heaptrack_print"):
        pytest.skip("no heaptrack_print")
    said = subprocess.run(["heaptrack_print", path], capture_output=True, text=True, timeout=harness.LONG, check=True).stdout
    found = [re.search(rf"^{what}: ([\d.]+\w?)", said, re.M).group(1) for what in
             ("calls to allocation functions", "temporary memory allocations", "total memory leaked")]
    return int(found[0]), int(found[1]), found[2], said


def test_heaptrack_reads_the_profile_beside_the_trace(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "known"], schedule=None, shapes=False, KPROF_MALLOC="trace").ok()
    h = facts.load(run.trace)["kprof_heap"]
    allocations, temporary, leaked, said = heaptracks_reading(profile_of(run.trace))
    # what is freed right after it was taken: all of churn, and strdup's and stdout's stay
    assert (allocations, temporary, leaked) == (h["allocations"], 1002, f"{h['live_bytes'] / 1000:.2f}K")
    peak = said.split("PEAK MEMORY CONSUMERS")[1].split("\n\n")[0]
    assert "1.05M peak memory consumed over 4 calls from\npeaks\n" in peak
    most = said.split("MOST CALLS TO ALLOCATION FUNCTIONS\n")[1]
    assert most.startswith("1000 calls to allocation functions with 0B peak consumption from\nchurns\n")


def test_kprof_memory_tells_leaks_peak_and_counts(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "known"], schedule=None, shapes=False, KPROF_MALLOC="trace").ok()
    said = harness.cli("memory", run.trace)
    assert said.returncode == 0, said.stderr
    h = facts.load(run.trace)["kprof_heap"]
    assert f"host heap: {h['allocations']} allocations of {h['bytes'] / (1 << 20):.2f} MiB in all, {h['frees']} frees" in said.stdout
    assert f"peak: {h['peak_bytes'] / (1 << 20):.2f} MiB; at the end {h['live_bytes'] / (1 << 10):.2f} KiB in 12 blocks are still there" in said.stdout
    leaks, peak, most = said.stdout.split("first:\n")[1:] + said.stdout.split("window:\n")[1:]
    assert leaks.lstrip().startswith("8.79 KiB in 9 blocks")
    assert peak.lstrip().startswith("1.00 MiB in 4 blocks") and most.lstrip().startswith("97.66 KiB in 1000 blocks")
    assert json.loads(harness.cli("memory", run.trace, "--json").stdout)["kprof_heap"] == h


def test_kprof_memory_writes_the_profile_for_heaptrack_and_pprof(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "mixed"], schedule=None, shapes=False, KPROF_MALLOC="trace").ok()
    h, profile = facts.load(run.trace)["kprof_heap"], profile_of(run.trace)
    assert harness.cli("memory", profile, "--format", "heaptrack", "-o", tmp_path / "lines.heap").returncode == 0
    subprocess.run(["gzip", tmp_path / "lines.heap"], check=True)
    ours, with_lines = heaptracks_reading(profile), heaptracks_reading(tmp_path / "lines.heap.gz")
    assert ours[:3] == with_lines[:3] and ours[0] == h["allocations"]
    assert re.search(r"^ +at .*mixed.cpp:\d+$", with_lines[3], re.M)
    assert not re.search(r"^operator new", ours[3] + with_lines[3], re.M)  # left out of stacks, as in heaptrack's own files
    if not shutil.which("go"):
        pytest.skip("no pprof: go brings it")
    assert harness.cli("memory", run.trace, "--format", "pprof", "-o", tmp_path / "p.pb").returncode == 0
    for index, total in (("alloc_objects", h["allocations"]), ("alloc_space", h["bytes"]), ("inuse_space", h["live_bytes"]),
                         ("peak_space", h["peak_bytes"])):
        said = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", f"-sample_index={index}", tmp_path / "p.pb"], check=True,
                              capture_output=True, text=True, timeout=harness.LONG, env=os.environ | {"HOME": str(tmp_path)}).stdout
        shown = re.search(r"(?:of|% of) (\d+)B? total", said)
        assert shown and int(shown.group(1)) == total, (index, total, said)


def heaptracks_top_ten(path):
    """{order: [(site, its number)]}: by allocations, and by bytes that were left."""
    found = {}
    for order, flags, line in (("allocations", ("-a", "1", "-l", "0"), r"^(\d+) calls to allocation functions with .*from\n +(\w+)$"),
                               ("leaked", ("-a", "0", "-l", "1"), r"^(\d+)B leaked over \d+ calls from\n +(\w+)$")):
        said = subprocess.run(["heaptrack_print", "-m", "0", "-p", "0", "-T", "0", "-n", "10", *flags, path], capture_output=True, text=True,
                              timeout=harness.LONG, check=True).stdout
        found[order] = [(site, int(n)) for n, site in re.findall(line, said, re.M)]
    return found


def pprofs_top_ten(path, tmp_path):
    found = {}
    for order, index in (("allocations", "alloc_objects"), ("leaked", "inuse_space")):
        said = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", "-nodecount=10", f"-sample_index={index}", path], check=True,
                              capture_output=True, text=True, timeout=harness.LONG, env=os.environ | {"HOME": str(tmp_path)}).stdout
        found[order] = [(site, int(n)) for n, site in re.findall(r"^ +(\d+)B? .*% +(\w+)$", said, re.M)]
    return found


def test_heaptrack_and_pprof_show_the_same_ten_largest_sites(programs, tmp_path):
    known = {"allocations": [(f"site_{n}", 10 * n) for n in range(12, 2, -1)],
             "leaked": [(f"site_{n}", 1000 - 50 * n) for n in range(1, 11)]}
    if not shutil.which("heaptrack_print"):
        pytest.skip("no heaptrack_print")
    run = harness.run_kprof(None, tmp_path, command=[programs / "sites"], schedule=None, shapes=False, KPROF_MALLOC="trace").ok()
    assert heaptracks_top_ten(profile_of(run.trace)) == known
    heaptracks([programs / "sites"], tmp_path)  # and what it recorded itself
    assert heaptracks_top_ten(next(tmp_path.glob("ht.*"))) == known
    if not shutil.which("go"):
        pytest.skip("no pprof: go brings it")
    assert harness.cli("memory", run.trace, "--format", "pprof", "-o", tmp_path / "p.pb").returncode == 0
    assert pprofs_top_ten(tmp_path / "p.pb", tmp_path) == known


def test_folded_stacks_have_the_sums(programs, tmp_path):
    run = harness.run_kprof(None, tmp_path, command=[programs / "known"], schedule=None, shapes=False, KPROF_MALLOC="trace").ok()
    h = facts.load(run.trace)["kprof_heap"]
    for by, total in (("peak", "peak_bytes"), ("leaked", "live_bytes"), ("allocated", "bytes")):
        lines = harness.cli("memory", run.trace, "--format", "folded", "--by", by).stdout.splitlines()
        assert all(re.fullmatch(r"[^;]+(;[^;]+)* \d+", line) for line in lines)
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == h[total]
    profile = json.loads(harness.cli("memory", run.trace, "--format", "json").stdout)
    assert profile["total"]["allocations"] == h["allocations"] == sum(site["allocations"] for site in profile["sites"])
    refused = harness.cli("memory", run.trace, "--format", "xml")
    assert refused.returncode == 2 and "pprof, folded or json" in refused.stderr
