# SPDX-License-Identifier: Apache-2.0
"""What a trace states about the GPU, as multisets, and the rules that the events of one file must keep among themselves."""
import bisect
import collections
import math
import struct

import facts

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
API = ("cuda_runtime", "cuda_driver")


def of(trace, *categories):
    return [event for event in facts.spans(trace) if event.get("cat") in categories]


def args(event):
    return event.get("args", {})


def launches(trace):
    """correlation -> API event; a runtime call goes before the driver call inside it."""
    found = {}
    for event in of(trace, "cuda_driver") + of(trace, "cuda_runtime"):
        if "correlation" in args(event):
            found[args(event)["correlation"]] = event
    return found


def as_long(one, other):
    """Whether two ns counts of one record agree: each profiler fits the counter's clock by itself (a part of 10 000) and rounds to ns."""
    return abs(one - other) <= 1 + max(one, other) // 10_000


def window(trace):
    marks = facts.steps(trace)
    return (facts.begin(marks[0]), facts.end(marks[-1])) if marks else (float("-inf"), float("inf"))


def gpu_facts(trace):
    """Property name -> multiset. Of the stepped window: API calls that begin in it, and the work that they launched."""
    low, high = window(trace)
    calls = launches(trace)
    ops = {args(e)["External id"]: e["name"] for e in of(trace, "cpu_op") if "External id" in args(e)}
    inside = {c for c, e in calls.items() if low <= facts.begin(e) < high}
    said = collections.OrderedDict()
    for category in GPU:
        said[category] = collections.Counter(e["name"] for e in of(trace, category) if args(e).get("correlation") in inside)
    for category in API:
        said[category] = collections.Counter(e["name"] for e in of(trace, category) if low <= facts.begin(e) < high)
    work = [e for e in of(trace, *GPU) if args(e).get("correlation") in inside]
    said["launched by"] = collections.Counter((e["name"], calls[args(e)["correlation"]]["name"]) for e in work)
    said["op of the work"] = collections.Counter((e["name"], ops.get(args(e).get("External id"))) for e in work)
    said["op of the call"] = collections.Counter(
        (e["name"], ops.get(args(e).get("External id"))) for e in of(trace, *API) if low <= facts.begin(e) < high)
    said["kernel shapes"] = collections.Counter(
        (e["name"], str(args(e).get("grid")), str(args(e).get("block")), args(e).get("shared memory"), args(e).get("registers per thread"))
        for e in work if e["cat"] == "kernel")
    said["bytes"] = collections.Counter((e["name"], args(e).get("bytes")) for e in work if e["cat"] != "kernel")
    said["streams"] = collections.Counter((e["name"], args(e).get("device"), args(e).get("stream")) for e in work)
    said["ac2g"] = flows(trace, inside)
    said["gpu ranges"] = collections.Counter(e["name"] for e in of(trace, "gpu_user_annotation"))
    said["memory on the GPU"] = collections.Counter(
        (args(e).get("Device Type"), args(e).get("Bytes")) for e in trace["traceEvents"]
        if e.get("name") == "[memory]" and args(e).get("Device Type") == 1 and low <= facts.begin(e) < high)
    return said


def flows(trace, inside):
    """ac2g arrows: calls that begin one, work that ends one. The ends that Kineto also puts on other calls, left out (docs/decisions/016)."""
    calls = launches(trace)
    work = {(str(e["pid"]), str(e["tid"]), facts.begin(e)) for e in of(trace, *GPU)}
    found = collections.Counter()
    for event in trace["traceEvents"]:
        if event.get("cat") != "ac2g" or event["id"] not in inside:
            continue
        if event["ph"] == "s":
            if not calls[event["id"]]["name"].startswith("__cudaLaunchKernel"):  # ours alone
                found["s", calls[event["id"]]["name"]] += 1
        elif (str(event["pid"]), str(event["tid"]), facts.begin(event)) in work:
            found["f", "work"] += 1
    return found


# --- rules inside one file ---

def broken_rules(trace):
    """Lines, each a rule that an event breaks; none in a good file."""
    bad = []
    calls = launches(trace)
    for event in of(trace, *GPU):
        call = calls.get(args(event).get("correlation"))
        if facts.ns(event["dur"]) < 0:
            bad.append(f"{event['name'][:60]} lasts less than nothing")
        if call is None:
            bad.append(f"{event['name'][:60]} has no launch of correlation {args(event).get('correlation')}")
        elif facts.begin(event) < facts.begin(call):
            bad.append(f"{event['name'][:60]} begins {facts.begin(call) - facts.begin(event)} ns before its launch")
        elif args(event).get("External id") != args(call).get("External id"):
            bad.append(f"{event['name'][:60]} and its launch differ in External id")
        if event["pid"] != args(event).get("device") or event["tid"] != args(event).get("stream"):
            bad.append(f"{event['name'][:60]} lies on {event['pid']}/{event['tid']}")
    return bad + loose_arrows(trace) + foreign_ops(trace) + overlaps(trace)


def loose_arrows(trace):
    """An arrow ends at every piece of work and began at its launch. Kineto begins none at __cudaLaunchKernel, the launch of nvcc 13's stubs."""
    is_kinetos = "kprof" not in trace
    ends = collections.defaultdict(set)
    for event in trace["traceEvents"]:
        if event.get("cat") == "ac2g" and event.get("ph") in "sf":
            ends[event["id"]].add(event["ph"])
    calls, bad = launches(trace), []
    for correlation in {args(e).get("correlation") for e in of(trace, *GPU)}:
        name = calls[correlation]["name"] if correlation in calls else ""
        if "f" not in ends[correlation] or ("s" not in ends[correlation] and not (is_kinetos and name.startswith("__cudaLaunchKernel"))):
            bad.append(f"arrow {correlation} of {name} has only {ends[correlation]}")
    return bad + [f"arrow {i} never ends" for i, phases in ends.items() if phases == {"s"} and i not in calls]


def foreign_ops(trace):
    """A launch's External id must be that of the innermost op open on its thread."""
    lines = collections.defaultdict(list)
    for event in of(trace, "cpu_op"):
        lines[event["tid"]].append((facts.begin(event), facts.end(event), args(event).get("External id"), event["name"]))
    bad = []
    for line in lines.values():
        line.sort(key=lambda entry: (entry[0], -entry[1]))
    for event in of(trace, *API):
        if "External id" not in args(event) or "Launch" not in event["name"]:
            continue
        line, at = lines.get(event["tid"], []), facts.begin(event)
        k = bisect.bisect_right(line, (at, float("inf"), 0, "")) - 1
        while k >= 0 and line[k][1] < at:
            k -= 1
        if k >= 0 and line[k][2] != args(event)["External id"] and line[k][1] >= facts.end(event):
            bad.append(f"{event['name']} says op {args(event)['External id']}, innermost is {line[k][3]} ({line[k][2]})")
    return bad


def overlaps(trace):
    """Work of one stream follows one another."""
    bad, streams = [], collections.defaultdict(list)
    for event in of(trace, *GPU):
        streams[event["pid"], event["tid"]].append(event)
    for line in streams.values():
        line.sort(key=facts.begin)
        for before, after in zip(line, line[1:]):
            if facts.end(before) > facts.begin(after) + 50:  # ns: CUPTI maps times by samples, which a busy machine takes late
                bad.append(f"{before['name'][:40]} and {after['name'][:40]} overlap on stream {after['tid']}")
    return bad


# --- occupancy, by the rules that NVIDIA documents for its calculator ---

MOST_BLOCKS = {(7, 0): 32, (7, 5): 16, (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24, (9, 0): 32, (10, 0): 32, (10, 3): 32, (12, 0): 24}


def _up(value, step):
    return (value + step - 1) // step * step


def _single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def active_blocks(device, registers, shared, threads):
    """Blocks of a kernel that fit on one multiprocessor of this device."""
    capability = (device["computeMajor"], device["computeMinor"])
    warps = (threads + 31) // 32
    most = MOST_BLOCKS[capability]
    by_warps = device["maxThreadsPerMultiprocessor"] // 32 // warps
    per_warp = _up(max(registers, 1) * 32, 256)
    by_registers = most if registers == 0 else (device["regsPerMultiprocessor"] // 4 // per_warp) * 4 // warps
    if _up(warps, 4) * per_warp > device["regsPerBlock"]:
        by_registers = 0
    reserved, step = (1024, 128) if capability[0] >= 8 else (0, 256)
    total = _up(shared + reserved, step)
    by_shared = most if total == 0 else device["sharedMemPerMultiprocessor"] // total
    if shared > device["sharedMemPerBlock"]:
        by_shared = 0
    return min(by_warps, most, by_registers, by_shared)


def wrong_occupancy(trace):
    """(kernels looked at, lines of those whose blocks per SM, warps per SM or occupancy are not what the rules give)."""
    devices = {d["id"]: d for d in trace.get("deviceProperties", [])}
    bad, n = [], 0
    for event in of(trace, "kernel"):
        said = args(event)
        if "est. achieved occupancy %" not in said:
            continue
        n += 1
        device, threads = devices[said["device"]], math.prod(said["block"])
        blocks = _single(math.prod(said["grid"]) / device["numSms"])
        active = active_blocks(device, said["registers per thread"], said["shared memory"], threads)
        occupancy = math.floor(min(active, blocks) * threads / device["maxThreadsPerMultiprocessor"] * 100 + 0.5)
        for what, expected, found in (("blocks per SM", blocks, said["blocks per SM"]),
                                      ("warps per SM", blocks * threads / 32, said["warps per SM"]),
                                      ("occupancy", occupancy, said["est. achieved occupancy %"])):
            if abs(expected - found) > 1e-4 * max(1, abs(expected)):
                bad.append(f"{event['name'][:60]}: {what} {found}, by the rules {expected}")
    return n, bad
