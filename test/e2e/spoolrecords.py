# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a spool byte by byte, for tests of sources (docs/internals/spool-format.md); not the project's own reader."""
import collections
import pathlib
import struct

CHUNK, CELL = 65536, 32
KINDS = {1: "OP", 8: "API", 9: "KERNEL", 10: "MEMCPY", 11: "MEMSET", 15: "GRAPHRUN", 16: "NVTX"}
API = struct.Struct("<QQIIIIiI")
KERNEL = struct.Struct("<QQQIIII3I3IIIIIQI")
COPY = struct.Struct("<QQQIIIIBBBB4xQI")
RUN = struct.Struct("<QQIIII")
NVTX = struct.Struct("<QQQIB")
FIELDS = {
    "API": (API, "start end correlation cbid tid thread_id result stream"),
    "KERNEL": (KERNEL, "start end queued correlation device context stream gx gy gz bx by bz static_smem dynamic_smem local registers node graph"),
    "MEMCPY": (COPY, "start end bytes correlation device context stream kind src dst is_async node graph"),
    "MEMSET": (COPY, "start end bytes correlation device context stream kind src dst is_async node graph"),
    "GRAPHRUN": (RUN, "start end correlation device context stream"),
    "NVTX": (NVTX, "start ticks id domain type"),
}
TYPES = {kind: collections.namedtuple(kind.capitalize(), "name flags owner " + fields) for kind, (_, fields) in FIELDS.items()}


def _chunks(data):
    for at in range(CHUNK, len(data) - CHUNK + 1, CHUNK):
        magic, kind, cycle, tid, _, used = struct.unpack_from("<6I", data, at)
        if magic == 0x4843504B:
            yield at, kind, tid, used


def _names(data):
    names = {0: ""}
    for at, kind, _, _ in _chunks(data):
        if kind != 2:
            continue
        for cell in range(at + 64, at + CHUNK, CELL):
            magic, number, _, length = struct.unpack_from("<IIQI", data, cell)
            if magic == 0x5453504B:
                names[number] = data[cell + 20:cell + 20 + length].decode(errors="replace")
    return names


def load(path):
    """{kind: [record, ...]} of all cycles, by start; names as text."""
    data = pathlib.Path(path).read_bytes()
    names, found = _names(data), collections.defaultdict(list)
    for at, chunk_kind, tid, used in _chunks(data):
        if chunk_kind not in (1, 4):
            continue
        place, owner = at + 64, tid
        while place < at + used:
            kind, flags, size, name = struct.unpack_from("<BBHI", data, place)
            if kind == 4:
                owner = struct.unpack_from("<I", data, place + 8)[0]
            elif KINDS.get(kind) in FIELDS:
                layout, _ = FIELDS[KINDS[kind]]
                values = layout.unpack_from(data, place + 8)
                found[KINDS[kind]].append(TYPES[KINDS[kind]](names.get(name, "?"), flags, owner, *values))
            place += size
    for record in found["NVTX"]:
        assert record.domain in names, record
    found["NVTX"] = [record._replace(domain=names[record.domain]) for record in found["NVTX"]]
    for records in found.values():
        records.sort(key=lambda record: record.start)
    return found


def monotonic(path):
    """A function from ticks to CLOCK_MONOTONIC ns, by the first and the last clock sample of the spool."""
    data, samples = pathlib.Path(path).read_bytes(), []
    for at, chunk_kind, _, used in _chunks(data):
        place = at + 64
        while chunk_kind == 3 and place < at + used:
            kind, _, size, _ = struct.unpack_from("<BBHI", data, place)
            if kind == 6:
                ticks, _, mono_ns = struct.unpack_from("<QQQ", data, place + 8)
                samples.append((ticks, mono_ns))
            place += size
    (first, first_ns), (last, last_ns) = min(samples), max(samples)
    assert last > first
    return lambda ticks: first_ns + (ticks - first) * (last_ns - first_ns) / (last - first)
