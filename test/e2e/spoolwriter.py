# SPDX-License-Identifier: Apache-2.0
"""Writes a spool from Python, byte by byte as collector/format/kp_format.h says: a second witness of the format."""
import struct

CHUNK, CELL = 65536, 32
DATA, STRINGS, META = 1, 2, 3
OP, STEP, CYCLE, CLOCK = 1, 3, 5, 6
SEQ, HANDLE = 1, 2
MASK = (1 << 64) - 1
PI, E, ROOT = 0x243F6A8885A308D3, 0xB7E151628AED2A6B, 0x6A09E667F3BCC909


def fold(a, b):
    m = a * b
    return (m & MASK) ^ (m >> 64)


def hash64(data):
    h = PI ^ fold(len(data) ^ ROOT, E)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        h = fold(h ^ int.from_bytes(data[at:at + 8], "little"), E)
    if whole < len(data):
        tail = data[-8:] if len(data) >= 8 else data
        h = fold(h ^ int.from_bytes(tail, "little"), ROOT)
    return fold(h ^ ROOT, PI)


class Spool:
    """Ticks are ns of the Unix epoch (clock kind: monotonic, wall = ticks)."""

    def __init__(self, pid, text="", start_ns=0):
        head = struct.pack("<8s6IQII64s64s", b"KPROFSP1", 1, CHUNK, 1976, pid, 1, 2, start_ns, 0, 1, b"node7", b"python")
        head += bytes(32 * 7 * 8) + struct.pack("<II", len(text.encode()), 0)
        assert len(head) == 1976
        self.chunks = [bytearray((head + text.encode()).ljust(CHUNK, b"\0"))]
        self.open, self.ids, self.order = {}, {}, 0

    def chunk(self, kind, cycle, tid, number, name):
        self.order += 1
        self.chunks.append(bytearray(struct.pack("<6IQ16s16x", 0x4843504B, kind, cycle, tid, number, 64, self.order, name)))
        return self.chunks[-1]

    def put(self, key, record, kind=DATA, cycle=0, tid=0, number=0, name=b""):
        at = self.open.get(key)
        if at is None or len(at) + len(record) > CHUNK:
            at = self.open[key] = self.chunk(kind, cycle, tid, number, name)
        at += record

    def name(self, data):
        if data not in self.ids:
            self.ids[data] = len(self.ids) + 1
            cell = struct.pack("<IIQI", 0x5453504B, self.ids[data], hash64(data), len(data)) + data + b"\0"
            self.put("strings", cell.ljust(-(-len(cell) // CELL) * CELL, b"\0"), STRINGS)
        return self.ids[data]

    def op(self, tid, name, start, dur, scope=0, rt_tid=1, seq=None, fwd=0, handle=0, cycle=1, thread_name=b"python"):
        """dur 0: still open."""
        flags = (SEQ if seq is not None else 0) | (HANDLE if handle else 0)
        more = struct.pack("<qQ", seq, fwd) if seq is not None else b""
        more += struct.pack("<Q", handle) if handle else b""
        body = struct.pack("<BBHIQQIB3x", OP, flags, 32 + len(more), self.name(name), start, dur, rt_tid, scope)
        self.put(("data", tid), body + more, DATA, cycle, tid, tid, thread_name)

    def step(self, tid, start, end, number, cycle=1):
        self.put(("data", tid), struct.pack("<BBHIQQQ", STEP, 0, 32, 0, start, end - start, number), DATA, cycle, tid, tid, b"python")

    def clock(self, ns):
        self.put("meta", struct.pack("<BBHIQQQ", CLOCK, 0, 32, 0, ns, ns, ns), META)

    def cycle(self, number, begin, end, steps=0):
        self.put("meta", struct.pack("<BBHIIIQQQQQQ", CYCLE, 1 if end else 0, 64, 0, number, steps, begin, end, begin, 0, 0, 0), META)

    def save(self, path):
        with open(path, "wb") as f:
            for chunk in self.chunks:
                if chunk is not self.chunks[0]:
                    struct.pack_into("<I", chunk, 20, len(chunk))
                f.write(bytes(chunk).ljust(CHUNK, b"\0"))
