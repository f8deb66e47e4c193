# SPDX-License-Identifier: Apache-2.0
"""Turns a trace that Kineto wrote on a real GPU into the spool libkprof would have recorded, and reads back what our exporter makes of it."""
import collections
import decimal
import gzip
import json
import re

from spoolwriter import DRIVER, NONE, Spool

COPY_KINDS = {"HtoD": 1, "DtoH": 2, "HtoA": 3, "AtoH": 4, "AtoA": 5, "AtoD": 6, "DtoA": 7, "DtoD": 8, "HtoH": 9, "PtoP": 10}
MEMORY_KINDS = {"Unknown": 0, "Pageable": 1, "Pinned": 2, "Device": 3, "Array": 4, "Managed": 5, "Device Static": 6, "Managed Static": 7}
SYNC_KINDS = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
SMEM_SM = {(6, 0): 65536, (7, 0): 98304, (8, 0): 167936}  # what old files do not say
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path):
    """Numbers with a point stay decimal: a double does not hold ns."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=decimal.Decimal, strict=False)


def slices(trace):
    return [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") != "Trace"]


def ns(value):
    return int(round(decimal.Decimal(value) * 1000))


def key(event):
    """What an op is in both traces; External ids are counted anew."""
    return event["tid"], event["ts_ns"], event["dur_ns"], event["name"]


LEGACY = {"Operator": "cpu_op", "Runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}  # 2021


def prepared(trace):
    base = trace.get("baseTimeNanoseconds", 0)
    events = slices(trace)
    for e in events:
        e["cat"] = LEGACY.get(e["cat"], e["cat"])
        if isinstance(e["tid"], str):  # 2021, too: "5555", "stream 7"
            e["tid"] = int(e["tid"].split()[-1])
        if "external id" in e.get("args", {}):
            e["args"]["External id"] = e["args"].pop("external id")
        e["ts_ns"], e["dur_ns"] = ns(e["ts"]) + base, ns(e["dur"])
    return events


def write(trace, events, path):
    """The spool of a trace's events (prepared). Returns how many ops it has."""
    host = [e for e in events if e["cat"] in ("cpu_op", "user_annotation")]
    begin = min(e["ts_ns"] for e in events) - 1000
    end = max(e["ts_ns"] + e["dur_ns"] for e in events) + 1000
    pid = host[0]["pid"] if host else 4242
    spool = Spool(pid, "gpu_source=cupti\n", begin - 10**9)
    for t in (begin - 10**6, end + 10**6):
        spool.clock(t)
        spool.devclock(t)
    for d in trace.get("deviceProperties", []):
        cc = d["computeMajor"], d["computeMinor"]
        spool.gpu(d["id"], d["name"].encode(), *cc, d["totalGlobalMem"], d.get("maxThreadsPerBlock", 1024),
                  d.get("maxThreadsPerMultiprocessor", 2048), d.get("regsPerBlock", 65536), d.get("regsPerMultiprocessor", 65536), d["sharedMemPerBlock"], d.get("sharedMemPerBlockOptin", 0),
                  d.get("sharedMemPerMultiprocessor") or SMEM_SM[cc], d["numSms"])
    spool.cycle(1, begin, end)
    threads = {}
    for e in sorted(host, key=lambda e: (e["ts_ns"], -e["dur_ns"])):
        number = threads.setdefault(e["tid"], len(threads) + 1)
        args = e.get("args", {})
        spool.op(e["tid"], e["name"].encode(), e["ts_ns"], max(e["dur_ns"], 1), 7 if e["cat"] == "user_annotation" else 0, number,
                 args.get("Sequence number"), args.get("Fwd thread id", 0))
    for e in events:
        device_write(spool, e, pid)
    spool.save(path)
    return len(host)


def device_write(spool, e, pid):
    a, start, end = e.get("args", {}), e["ts_ns"], e["ts_ns"] + e["dur_ns"]
    where = {k: a[k] for k in ("device", "context", "stream") if k in a}
    graph = (a["graph id"], a["graph node id"]) if "graph id" in a else None
    if e["cat"] in ("cuda_runtime", "cuda_driver"):
        tid = max(e["tid"], 0)  # below 0: Kineto did not know the thread, and shows CUPTI's number of it
        spool.api(tid, e["name"].encode(), start, end, a["correlation"], a.get("cbid", 0), DRIVER if e["cat"] == "cuda_driver" else 0,
                  0 if tid else e["tid"] & 0xFFFFFFFF)
    elif e["cat"] == "kernel":
        spool.kernel(e["name"].encode(), start, end, a["correlation"], **where, grid=a.get("grid", (1, 1, 1)), block=a.get("block", (1, 1, 1)),
                     smem=(a.get("shared memory", 0), 0), regs=a.get("registers per thread", 0), graph=graph)
    elif e["cat"] == "gpu_memcpy":
        kind, source, target = re.match(r"Memcpy (\w+) \((.*) -> (.*)\)", e["name"]).groups()
        spool.copy(start, end, a["correlation"], a["bytes"], COPY_KINDS[kind], MEMORY_KINDS[source], MEMORY_KINDS[target], **where)
    elif e["cat"] == "gpu_memset":
        spool.copy(start, end, a["correlation"], a["bytes"], target=MEMORY_KINDS[re.search(r"\((.*)\)", e["name"])[1]], fill=True, **where)
    elif e["cat"] == "cuda_sync":
        stream = a["stream"] if 0 <= a["stream"] < NONE else NONE
        if a.get("wait_on_cuda_event_record_corr_id", -1) >= 0:
            spool.cuda_event(a["wait_on_cuda_event_record_corr_id"], a["wait_on_cuda_event_id"], a["context"], a["wait_on_stream"])
        spool.sync(SYNC_KINDS[e["name"]], start, end, a["correlation"], a["context"], stream, a.get("wait_on_cuda_event_id", NONE))
        spool.context(a["context"], a["device"])


def linked_op(events):
    """correlation -> the op that its work says it belongs to, as key()."""
    ops = {e["args"]["External id"]: key(e) for e in events if e["cat"] == "cpu_op" and "External id" in e.get("args", {})}
    found = collections.defaultdict(set)
    for e in events:
        if e["cat"] in WORK or e["cat"] in ("cuda_runtime", "cuda_driver"):
            found[e["args"]["correlation"]].add(ops.get(e["args"].get("External id")))
    return found
