# SPDX-License-Identifier: Apache-2.0
"""Frames of machine code: functions, inlined functions and source lines are those of addr2line and gdb; files that are gone, changed, damaged."""
import json
import os
import re
import shutil
import subprocess

import pytest

import harness

SOURCE = harness.SCRIPTS / "lines" / "inlined.cpp"
WAYS = {
    "plain": ("g++", "-gdwarf-5"),
    "old": ("g++", "-gdwarf-4"),
    "split": ("g++", "-gdwarf-5", "-gsplit-dwarf"),
    "packed": ("g++", "-gdwarf-5", "-gz"),
    "clang": ("clang++", "-g"),  # writes no .debug_aranges
    "unoptimized": ("g++", "-gdwarf-5", "-O0"),
}


def built_with_libdw():
    return b"dwfl_report_offline" in harness.KPROF.read_bytes()


pytestmark = pytest.mark.skipif(not built_with_libdw(), reason="kprof was built without libdw")


def build(folder, *command):
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    subprocess.run([*command[:1], "-O2", *command[1:], "-w", "-Wl,--build-id", SOURCE, "-o", folder / "inlined"], check=True, cwd=folder)
    return folder / "inlined"


def record(program, folder):
    return harness.run_kprof(None, folder, command=[program], schedule=None, shapes=False, KPROF_MALLOC="trace").ok().trace


def memory(trace, *flags):
    done = harness.cli("memory", trace, "--row-limit", "-1", *flags, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def frames_of(trace, program, *flags):
    """{address of the call: [(function, file, line), ...]} of the program's own frames, and what the trace itself has."""
    told = json.loads(memory(trace, "--json", *flags).stdout)
    own = {frame for site in told["kprof_heap"]["sites"] for frame in site["stack"] if frame.startswith(f"{program}+0x")}
    return {int(frame.rpartition("+")[2], 16) - 1: [(p["function"], p.get("file"), p.get("line"), p.get("inlined", False)) for p in places]
            for frame, places in told["kprof_frames"].items() if frame in own}, own


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    done = {}

    def get(way):
        if way not in done:
            folder = tmp_path_factory.mktemp(way)
            program = build(folder, *WAYS[way])
            done[way] = (program, record(program, folder / "out"))
        return done[way]

    return get


def plain(name):
    """A function without what it takes, as kprof shows it."""
    name = re.sub(r" \[clone .*", "", name).replace("(anonymous namespace)", "{anonymous}")
    return re.sub(r"\(.*?\)( const)?", "", name)


def addr2lines(program, addresses):
    done = subprocess.run(["addr2line", "-a", "-f", "-i", "-C", "-e", program, *map(hex, addresses)], capture_output=True, text=True, check=True,
                          cwd=program.parent)
    told = {}
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            places = told[int(line, 16)] = []
        elif places and len(places[-1]) == 1:
            places[-1].append(line.partition(" (discriminator")[0])
        else:
            places.append([line])
    return told


@pytest.mark.parametrize("way", [way for way in WAYS if way != "split"])
def test_places_are_those_of_addr2line(way, recorded):
    program, trace = recorded(way)
    ours, own = frames_of(trace, program)
    theirs = addr2lines(program, ours)
    assert len(ours) == len(own) >= 7
    for at, places in ours.items():
        expected = [(plain(name), where) for name, where in theirs[at]]
        mine = [(plain(name), f"{file}:{line}" if line else "??:?") for name, file, line, _ in places]
        assert mine == expected, hex(at)
        assert [inlined for *_, inlined in places] == [True] * (len(places) - 1) + [False]
    deepest = max(ours.values(), key=len)
    assert [name for name, *_ in deepest] == ["shapes::Box<long>::take", "shapes::Box<long>::Box", "inner", "outer"]


def test_places_from_split_debug_files_are_the_same(recorded):
    split, plain_ones = (frames_of(trace, program)[0] for program, trace in (recorded("split"), recorded("plain")))
    assert [split[at] for at in sorted(split)] == [plain_ones[at] for at in sorted(plain_ones)]  # addr2line 2.40 does not read .dwo files


def test_lines_are_those_of_gdb(recorded):
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    program, trace = recorded("unoptimized")
    ours, _ = frames_of(trace, program)
    asked = [at for at, places in ours.items() if places[0][2]]
    done = subprocess.run(["gdb", "-nx", "-batch", *(word for at in asked for word in ("-ex", f"info line *{at:#x}")), program],
                          capture_output=True, text=True, timeout=harness.LONG, env=harness.clean_environment(DEBUGINFOD_URLS=""))
    theirs = re.findall(r'^Line (\d+) of "([^"]+)"', done.stdout, re.M)
    assert len(asked) >= 6 and [(f"{line}", file) for _, file, line, _ in (ours[at][0] for at in asked)] == theirs


def test_the_text_says_where_each_block_was_taken(recorded):
    program, trace = recorded("plain")
    said = memory(trace).stdout
    line = {word: n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) for word in re.findall(r"inner\(n\);|calloc|deeper\(n - 1\)", text)}
    assert f"        inner at {SOURCE}:9 (inlined)\n        outer at {SOURCE}:{line['inner(n);']} in inlined\n" in said
    assert re.search(rf"        deeper at {SOURCE}:{line['calloc']} in inlined\n(        deeper at {SOURCE}:{line['deeper(n - 1)']} in inlined\n){{3}}", said)
    assert f"        _start in {program}+0x" in said  # the C library's start file has no lines
    assert f"        {program}+0x" in memory(trace, "--no-lines").stdout and "inlined.cpp" not in memory(trace, "--no-lines").stdout


def strip_apart(program, debug):
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)


def build_id(program):
    return re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout).group(1)


@pytest.fixture(scope="module")
def stripped(recorded, tmp_path_factory):
    """A stripped program, its trace, and what stood in its debug information before."""
    source, trace = recorded("plain")
    folder = tmp_path_factory.mktemp("stripped")
    program = shutil.copy2(source, folder / "inlined")
    expected, _ = frames_of(trace, source)
    identity = build_id(program)
    strip_apart(program, folder / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug")
    return program, record(program, folder / "out"), expected, folder / "debug"


def test_a_debug_file_by_build_id(stripped):
    program, trace, expected, debug = stripped
    bare, own = frames_of(trace, program)
    assert len(own) == len(expected) and not any(line for places in bare.values() for _, _, line, _ in places)
    assert frames_of(trace, program, "--debuginfo-path", debug)[0] == expected


def test_a_debug_file_by_its_link(stripped, tmp_path):
    program, _, expected, debug = stripped
    linked = shutil.copy2(program, tmp_path / "linked")
    (tmp_path / ".debug").mkdir()
    shutil.copy2(next(debug.rglob("*.debug")), tmp_path / ".debug" / "linked.debug")
    subprocess.run(["objcopy", "--add-gnu-debuglink", tmp_path / ".debug" / "linked.debug", linked], check=True)
    assert frames_of(record(linked, tmp_path / "out"), linked)[0] == expected


def of_another_user(program):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.chown(program, 4242, 4242)


def test_a_file_of_another_users_leads_to_no_further_one(stripped, tmp_path):
    """By link or as a .dwo file it may name whatever there is: here a pipe, which would be waited for."""
    program, _, expected, debug = stripped
    linked = shutil.copy2(program, tmp_path / "linked")
    (tmp_path / ".debug").mkdir()
    pipe = tmp_path / ".debug" / "linked.debug"
    shutil.copy2(next(debug.rglob("*.debug")), pipe)
    subprocess.run(["objcopy", "--add-gnu-debuglink", pipe, linked], check=True)
    trace = record(linked, tmp_path / "out")
    pipe.unlink()
    os.mkfifo(pipe)
    of_another_user(linked)
    told, own = frames_of(trace, linked)
    assert len(own) == len(expected) and not any(line for places in told.values() for _, _, line, _ in places)
    assert frames_of(trace, linked, "--debuginfo-path", debug)[0] == expected  # found by its build id


def test_a_split_file_of_another_users_leads_to_no_further_one(tmp_path):
    program = build(tmp_path, *WAYS["split"])
    trace = record(program, tmp_path / "out")
    (dwo,) = tmp_path.glob("*.dwo")
    dwo.unlink()
    os.mkfifo(dwo)
    of_another_user(program)
    told, own = frames_of(trace, program)
    assert own and not any(line for places in told.values() for _, _, line, _ in places)


def test_a_changed_file_tells_nothing(recorded, tmp_path):
    source, _ = recorded("plain")
    program = shutil.copy2(source, tmp_path / "inlined")
    trace = record(program, tmp_path / "out")
    build(tmp_path, "g++", "-gdwarf-5", "-O1")
    done = memory(trace)
    assert done.stderr.count(f"{program} (changed file)") == 1
    # the names of functions are those of the recording, which the profile has
    assert f" in {program}+0x" in done.stdout and "inlined.cpp" not in done.stdout


def test_a_file_that_is_gone(stripped, tmp_path):
    source, _, expected, debug = stripped
    program = shutil.copy2(source, tmp_path / "inlined")
    trace = record(program, tmp_path / "out")
    program.unlink()
    done = memory(trace)
    assert done.stderr.count(f"{program} (file cannot be read)") == 1 and f"        {program}+0x" in done.stdout
    found, _ = frames_of(trace, program, "--debuginfo-path", debug)
    assert found == expected


def test_damaged_files_end_no_command(recorded, tmp_path):
    source, _ = recorded("plain")
    program = shutil.copy2(source, tmp_path / "inlined")
    trace = record(program, tmp_path / "out")
    whole = source.read_bytes()
    for kept in (0, 3, 63, 64, 1000, len(whole) // 2, len(whole) - 300):
        program.write_bytes(whole[:kept])
        memory(trace)
    sections = subprocess.run(["readelf", "-SW", source], capture_output=True, text=True, check=True).stdout
    for name, at, size in re.findall(r"\] (\.debug_\w+)\s+PROGBITS\s+\w+ (\w+) (\w+)", sections):
        for byte in (0, 0x7f, 0xff):
            damaged = bytearray(whole)
            start, length = int(at, 16), int(size, 16)
            damaged[start + length // 3 : start + length] = bytes([byte]) * (length - length // 3)
            program.write_bytes(damaged)
            done = memory(trace)
            assert "outer" in done.stdout, (name, byte)  # what the table of symbols tells is still there


def test_a_trace_itself_has_no_lines_to_give(recorded):
    _, trace = recorded("plain")
    done = harness.cli("stacks", "--torch", "--lines", trace)
    assert "lines come from its spool" in done.stderr
