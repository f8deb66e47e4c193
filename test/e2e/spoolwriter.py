# SPDX-License-Identifier: Apache-2.0
"""Writes a spool from Python, byte by byte as collector/format/kp_format.h says: a second witness of the format."""
import struct

CHUNK, CELL = 65536, 32
DATA, STRINGS, META, DEVICE = 1, 2, 3, 4
OP, STEP, CYCLE, CLOCK = 1, 3, 5, 6
API, KERNEL, MEMCPY, MEMSET, SYNC, CUDAEVENT, OVERHEAD, GRAPHRUN, NVTX, DEVCLOCK, GPU, CONTEXT = range(8, 20)
TICKS, DRIVER, NO_TIME = 1, 4, 8
HAS_GRAPH, HAS_CHANNEL, HAS_PRIORITY, HAS_SHAPE = 1, 2, 4, 8
NONE = 0xFFFFFFFF
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

    # --- GPUs (kp_device.h); device times are ns of the Unix epoch too ---

    def _record(self, fmt, kind, flags, name, *fields):
        """One record, in a chunk of a lane unless it belongs to META."""
        size = struct.calcsize("<BBHI" + fmt)
        assert size % 8 == 0, (kind, size)
        data = struct.pack("<BBHI" + fmt, kind, flags, size, self.name(name) if name else 0, *fields)
        if kind in (DEVCLOCK, GPU, CONTEXT):
            self.put("meta", data, META)
        else:
            self.put("lane", data, DEVICE, self.lane_cycle, 0, 1, b"lane")

    lane_cycle = 1

    def devclock(self, ns, device=None, domain=0, width=50):
        self._record("QQQII", DEVCLOCK, 0, b"", ns, ns if device is None else device, width, domain, 0)

    def gpu(self, number, name, major=8, minor=0, memory=40 << 30, threads=1024, threads_sm=2048, regs=65536, regs_sm=65536,
            smem=49152, optin=166912, smem_sm=167936, sms=108):
        self._record("IIIIQIIIIIIIIIIIIQ16s", GPU, 0, name, number, major, minor, 32, memory, threads, threads_sm, regs, regs_sm,
                     smem, optin, smem_sm, sms, 32, 64, 1410000, 0, 0, bytes(16))

    def context(self, number, device):
        self._record("IIII", CONTEXT, 0, b"", number, device, 7, 108)

    def api(self, tid, name, start, end, correlation, cbid=0, flags=0, thread_id=0, result=0):
        self._record("QQIIIIiI", API, flags, name, start, end, correlation, cbid, tid, thread_id, result, NONE)

    def kernel(self, name, start, end, correlation, device=0, context=1, stream=7, grid=(1, 1, 1), block=(32, 1, 1), smem=(0, 0), regs=16,
               graph=None, channel=None, priority=None, queued=0, flags=0):
        has = HAS_SHAPE | (HAS_GRAPH if graph else 0) | (HAS_CHANNEL if channel else 0) | (HAS_PRIORITY if priority is not None else 0)
        self._record("QQQIIII6I2I2IQIIi4B", KERNEL, flags, name, start, end, queued, correlation, device, context, stream, *grid, *block,
                     *smem, 0, regs, graph[1] if graph else 0, graph[0] if graph else 0, channel[0] if channel else 0, priority or 0,
                     channel[1] if channel else 0, 0, has, 0)

    def copy(self, start, end, correlation, size, kind=1, source=1, target=3, device=0, context=1, stream=7, peer=None, fill=False, flags=0,
             graph=None):
        """peer: source device and context, target device and context."""
        self._record("QQQIIII8BQIII4II", MEMSET if fill else MEMCPY, flags, b"", start, end, size, correlation, device, context, stream,
                     0 if fill else kind, 0 if fill else source, target, 1, 0, HAS_GRAPH if graph else 0, 1 if peer else 0, 0,
                     graph[1] if graph else 0, graph[0] if graph else 0, 0, 0, *(peer or (0, 0, 0, 0)), 0)

    def sync(self, kind, start, end, correlation, context=1, stream=NONE, event=NONE, flags=0):
        """kind: 1 event, 2 stream waits for event, 3 stream, 4 context."""
        self._record("QQIIIIIIQ", SYNC, flags, b"", start, end, correlation, kind, context, stream, event, 0, 0)

    def cuda_event(self, correlation, event, context=1, stream=7):
        self._record("IIIIQQ", CUDAEVENT, 0, b"", correlation, context, stream, event, 0, 0)

    def overhead(self, kind, start, end):
        self._record("QQIIIIII", OVERHEAD, 0, b"", start, end, kind, 0, 0, 0, 0, 0)

    def nvtx(self, tid, name, start, end, kind=0, domain=None, number=0, cycle=1):
        """kind: 0 range, 1 mark, 2 start, 3 end; end 0: still open."""
        size = struct.calcsize("<BBHIQQQIB3x")
        data = struct.pack("<BBHIQQQIB3x", NVTX, 0, size, self.name(name), start, end - start if end else 0, number,
                           self.name(domain) if domain else 0, kind)
        self.put(("data", tid), data, DATA, cycle, tid, tid, b"python")

    def save(self, path):
        with open(path, "wb") as f:
            for chunk in self.chunks:
                if chunk is not self.chunks[0]:
                    struct.pack_into("<I", chunk, 20, len(chunk))
                f.write(bytes(chunk).ljust(CHUNK, b"\0"))
