#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""heap_leaks - what real programs never free, by call stack: valgrind's memcheck beside KPROF_MALLOC=trace

usage: heap_leaks.py [NAME ...]        with valgrind and a build in build/; exit 1 where they differ

Each program runs once under each. A stack is the module and the place in its page of every frame, since the two runs
have other addresses. Lost are the blocks that memcheck calls definitely lost; kept are all that are left at the end.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {
    "sqlite3": ["sqlite3", ":memory:", "create table a(b); insert into a values (1), (2); select sum(b) from a"],
    "sed": ["sed", "-n", "s/a\\(b\\)*/\\1/p", "MAKEFILE"],
    "objdump": ["objdump", "-d", "OBJECT"],
    "as": ["as", "-o", "/dev/null", "/dev/null"],
    "readelf": ["readelf", "-aW", "OBJECT"],
    "openssl": ["openssl", "dgst", "-sha256", "MAKEFILE"],
}
DEPTH = 60


def key(frames):
    """frames: (module, address in the call) from the allocator's caller outwards. Inlined functions have their caller's address.

    Without frames of libstdc++: memcheck has an operator new of its own."""
    places = [(pathlib.Path(module).name, address & 0xfff) for module, address in frames if "libstdc++" not in module]
    return tuple(place for at, place in enumerate(places) if at == 0 or places[at - 1] != place)


def add(found, stack, size, blocks):
    known = found.get(stack, (0, 0))
    found[stack] = (known[0] + size, known[1] + blocks)


def memcheck(command, folder):
    """Of all records and of those definitely lost: stack -> (bytes, blocks)."""
    subprocess.run(["valgrind", "--leak-check=full", "--show-leak-kinds=all", "--leak-resolution=high", f"--num-callers={DEPTH}", "--run-libc-freeres=no",
                    "--run-cxx-freeres=no", "--show-below-main=yes", "--xml=yes", f"--xml-file={folder}/v.xml", *command], cwd=folder, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    every, lost = {}, {}
    for error in xml.etree.ElementTree.parse(f"{folder}/v.xml").getroot().iter("error"):
        kind = error.findtext("kind")
        if not kind.startswith("Leak_"):
            continue
        frames = []
        for frame in error.find("stack"):
            module = frame.findtext("obj")
            if module and "vgpreload" not in module:  # without a module: words of the stack above _start
                frames.append((module, int(frame.findtext("ip"), 16)))
        size, blocks = int(error.findtext("xwhat/leakedbytes")), int(error.findtext("xwhat/leakedblocks"))
        add(every, key(frames), size, blocks)
        if kind == "Leak_DefinitelyLost":
            add(lost, key(frames), size, blocks)
    return every, lost


def kprof(command, folder):
    settings = [f"LD_PRELOAD={ROOT}/build/libkprof.so", "KPROF_MALLOC=trace", f"KPROF_DIR={folder}/k"]
    subprocess.run(["env", *settings, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    said = json.loads(subprocess.run([ROOT / "build/kprof", "memory", "--format", "json", f"{folder}/k"], capture_output=True, text=True, check=True).stdout)
    found = {}
    for site in said["sites"]:
        if site.get("live_blocks"):
            frames, at = [], site["frame"]
            while at >= 0:
                number, at = said["frames"][at]
                frames.append((said["addresses"][number].get("module") or "?", said["addresses"][number]["offset"] - 1))  # it is the return address
            add(found, key(frames), site["live_bytes"], site["live_blocks"])
    return found


def total(found):
    return f"{sum(size for size, _ in found.values())} bytes in {sum(blocks for _, blocks in found.values())} blocks of {len(found)} stacks"


def main():
    bad = 0
    print("| program | memcheck: lost | kept | KPROF_MALLOC: kept | stacks of lost blocks that differ | of kept ones |\n|---|---|---|---|---|---|")
    for name, command in PROGRAMS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "Makefile").write_text("all: a b\na b:\n\techo $@ ab abab\n")
            subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-g", "-fPIC", "-c", "-o", f"{folder}/o.o", ROOT / "test/hosts/heap.c"], check=True)
            real = [{"OBJECT": f"{folder}/o.o", "MAKEFILE": f"{folder}/Makefile"}.get(word, word) for word in command]
            (every, lost), ours = memcheck(real, folder), kprof(real, folder)
        differ = [sum(ours.get(stack) != every[stack] for stack in of) for of in (lost, every)]
        differ[1] += sum(stack not in every for stack in ours)
        bad += sum(differ)
        print(f"| {name} | {total(lost)} | {total(every)} | {total(ours)} | {differ[0]} | {differ[1]} |", flush=True)
    sys.exit(bad != 0)


main()
