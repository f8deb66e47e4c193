# SPDX-License-Identifier: Apache-2.0
"""crafted.py - files that once ended a command, or would make it take all there is; spools as collector/format/ has them"""
import gzip
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import spoolwriter

NOTE, FRAME, SYMBOL, FRAMES = 7, 25, 26, 5
OP_STACK, FRAME_MAGIC = 16, 0x454D4152464B5052
MASK = (1 << 64) - 1


def spool(text=""):
    made = spoolwriter.Spool(4242, text, 1000)
    made.clock(1000)
    made.cycle(1, 1000, 10**9)
    made.clock(10**9 + 1000)
    return made


def saved(made, path):
    made.save(path)
    return path


def clocks_of_any_width(path):
    """Samples of a GPU's clock whose widths leave no sample that is good enough."""
    made = spool("cupti=12.8\n")
    for i, width in enumerate((MASK, MASK - 500, MASK - 1000, 0)):
        made.devclock(2000 + 1000 * i, width=width)
    made.gpu(0, b"GPU")
    made.context(1, 0)
    made.kernel(b"kernel", 3000, 4000, 7)
    made.op(7, b"aten::mul", 2000, 5)
    return saved(made, path)


def calls_that_end_at_nothing(path):
    """Calls by name whose end is 0, or before their begin."""
    made = spool()
    for i, ticks in enumerate((MASK - 1999, MASK, 5)):
        made.put(("data", 7), struct.pack("<BBHIQQ", SYMBOL, 0, 24, made.name(b"f\0lib.so"), 2000 + i * 1000, ticks), 1, 1, 7, 7, b"python")
    return saved(made, path)


def escapes(path):
    made = spool("KPROF_WITH_STACK=1\nworker=\x1b]0;evil\x07\n")
    made.op(7, b"\x1b]52;c;ZXZpbA==\x07aten::x\nfake: line\x9b2J\xff", 2000, 5)
    made.nvtx(7, b"\x1b[2J\x00", 3000, 4000)
    return saved(made, path)


def modules_that_are_no_files(path):
    """Ops called by machine code in what must not be opened, or can only be waited for: a device, a FIFO, a folder."""
    made = spool("KPROF_WITH_STACK=native\n")
    fifo = path.with_suffix(".fifo")
    os.mkfifo(fifo)
    frames = made.chunk(FRAMES, 0, 0, 0, b"")
    first = (len(made.chunks) - 1) * spoolwriter.CHUNK // spoolwriter.CELL
    for i, module in enumerate((b"/dev/watchdog", b"/dev/zero", b"/proc/self/mem", b"/", b"..", b"\n", os.fsencode(fifo))):
        name, cell, offset = made.name(module + b"\0ab12 0 0 fffffff"), first + len(frames) // spoolwriter.CELL, 0x1000 + i
        check = (offset ^ name) * 0x9E3779B97F4A7C15 & MASK
        frames += struct.pack("<BBHIQIIQ", FRAME, 0, 32, name, offset, 0, 0, check ^ check >> 32 ^ FRAME_MAGIC)
        op = struct.pack("<BBHIQQIB3xII", spoolwriter.OP, OP_STACK, 40, made.name(b"aten::mul"), 2000 + i * 1000, 500, 1, 0, 0, cell)
        made.put(("data", 7), op, spoolwriter.DATA, 1, 7, 7, b"python")
    return saved(made, path)


def many_notes(path, notes):
    """Each NOTE once walked through all text before it."""
    made = spool()
    for i in range(notes):
        made.put("meta", struct.pack("<BBHI16s", NOTE, 0, 24, 0, b"key%d=1" % i), 3)
    made.op(7, b"aten::mul", 2000, 5)
    return saved(made, path)


def long_names(path, ops):
    made = spool()
    for i in range(ops):
        made.op(7, b"n" * 60000, 2000 + i, 1)
    return saved(made, path)


def text_file(path, *pieces):
    opened = gzip.open(path, "wb", 6) if path.suffix == ".gz" else open(path, "wb")
    with opened as file:
        for piece, times in pieces:
            for _ in range(times):
                file.write(piece)
    return path


EVENT = b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},\n'


def make(folder, large):
    """The files: those that end a command at once, and with `large` those that only take too much."""
    head = b'{"traceEvents":[\n'
    files = [
        clocks_of_any_width(folder / "clocks.kprof"), calls_that_end_at_nothing(folder / "calls.kprof"), escapes(folder / "escapes.kprof"),
        modules_that_are_no_files(folder / "modules.kprof"), many_notes(folder / "notes.kprof", 50000 if large else 3000),
        text_file(folder / "key.pt.trace.json", (b'{"kprof\\u0000' + b"A" * 65000 + b'":1,"traceEvents":[' + EVENT + b"{}]}", 1)),
        text_file(folder / "deep.pt.trace.json", (head, 1), (b'{"ph":"X","args":', 1), (b"[" * 1000, 200), (b"]" * 1000, 200), (b"}]}", 1)),
        text_file(folder / "numbers.pt.trace.json", (head, 1), (EVENT.replace(b'"ts":1', b'"ts":' + b"9" * 400).replace(b'"dur":1', b'"dur":-1e999'), 50), (b"{}]}", 1)),
    ]
    if large:
        files += [
            long_names(folder / "names.kprof", 13000), text_file(folder / "events.pt.trace.json.gz", (head, 1), (EVENT * 1000, 4000), (b"{}]}", 1)),
            text_file(folder / "string.pt.trace.json.gz", (head + b'{"ph":"X","name":"', 1), (b"s" * (1 << 20), 128), (b'"}]}', 1)),
        ]
    return files
