# SPDX-License-Identifier: Apache-2.0
"""Derives from the other events of a trace what its arrows, launches and GPU annotations should be, and prints both beside each other.

usage: check_rules.py TRACE...
A second opinion beside ../gpufacts.py: other hands wrote it, and it shares no code with the tests. docs/internals/research/trace-format.md has the rules.
"""
import bisect
import collections
import gzip
import json
import sys

GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
CALLS = ("cuda_runtime", "cuda_driver")
PAIRS = ("fwdbwd", "forward_backward")


def load(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


def ns(microseconds):
    return round(float(microseconds) * 1000)


def start(event):
    return float(event["ts"])


def end(event):
    return float(event["ts"]) + float(event["dur"])


def ends_of_arrows(events, phase, *cats):
    return {e["id"]: e for e in events if e.get("ph") == phase and e.get("cat") in cats}


def forward_and_backward(events, spans):
    """Arrows from forward to backward: both ends are ops of one sequence number, and its last forward op is where the arrow begins."""
    starts, ends = ends_of_arrows(events, "s", *PAIRS), ends_of_arrows(events, "f", *PAIRS)
    if not starts:
        return
    at, sides = collections.defaultdict(list), (collections.defaultdict(list), collections.defaultdict(list))
    for e in spans:
        if e.get("cat") == "cpu_op" and "Sequence number" in e.get("args", {}):
            at[e["tid"], e["ts"]].append(e)
            sides[bool(e["args"]["Fwd thread id"])][e["args"]["Sequence number"]].append(e)
    pairs = equal = roles = last = 0
    for number in starts.keys() & ends.keys():
        here, there = (at[e["tid"], e["ts"]] for e in (starts[number], ends[number]))
        common = {e["args"]["Sequence number"] for e in here} & {e["args"]["Sequence number"] for e in there}
        pairs += 1
        equal += bool(common)
        roles += any(not e["args"]["Fwd thread id"] for e in here) and any(e["args"]["Fwd thread id"] for e in there)
        last += any(sides[0][q] and max(sides[0][q], key=start)["ts"] == starts[number]["ts"] for q in common)
    both = sum(1 for q in sides[1] if q in sides[0])
    print(f"  fwdbwd pairs {pairs} seq equal {equal} fwd/bwd role ok {roles} forward is last-started of its seq {last}"
          f" | seqs having fwd and bwd ops: {both} | ids 1..n: {sorted(starts) == list(range(min(starts), min(starts) + len(starts)))}")


def calls_and_work(events, spans, calls):
    """Arrows from calls to the work they began, by correlation."""
    arrows = [collections.Counter(e["id"] for e in events if e.get("ph") == phase and e.get("cat") == "ac2g") for phase in "sf"]
    by_correlation, work = {e["args"].get("correlation"): e for e in calls}, collections.defaultdict(list)
    for e in spans:
        if e.get("cat") in GPU:
            work[e["args"].get("correlation")].append(e)
    print("  s:", dict(collections.Counter(by_correlation[i]["name"] for i in arrows[0] if i in by_correlation).most_common(8)))
    print("  no s:", dict(collections.Counter(e["name"] for c, e in by_correlation.items() if c not in arrows[0]).most_common(6)))
    print("  f:", dict(collections.Counter(e["cat"] for i in arrows[1] for e in work.get(i, []))),
          dict(collections.Counter(by_correlation[i]["name"] for i in arrows[1] if i in by_correlation and i not in work).most_common(6)))
    print("  s without any f:", sum(i not in arrows[1] for i in arrows[0]), "f without s:", sum(i not in arrows[0] for i in arrows[1]),
          "gpu ops without s:", sum(c not in arrows[0] for c in work))
    return arrows[0]


def ops_of_launches(spans, calls, launched):
    """The External id of a launch is that of the innermost op around it."""
    threads = collections.defaultdict(list)
    for e in spans:
        if e.get("cat") == "cpu_op":
            threads[e["tid"]].append((start(e), end(e), e["args"].get("External id")))
    for ops in threads.values():
        ops.sort(key=lambda op: (op[0], -op[1]))
    right = alone = 0
    launches = [e for e in calls if e["args"].get("correlation") in launched and ("Launch" in e["name"] or "Async" in e["name"])][:3000]
    for e in launches:
        ops, begun = threads.get(e["tid"], []), start(e)
        before = bisect.bisect_right(ops, (begun, float("inf"), 0))
        around = next((ops[i] for i in range(before - 1, max(-1, before - 400), -1) if ops[i][1] >= begun), None)
        alone += around is None
        right += around is not None and around[2] == e["args"].get("External id")
    if launches:
        print(f"  launch External id == innermost cpu_op: {right} of {len(launches)} (no enclosing op: {alone})")


def derived_annotations(spans, calls):
    """(pid, stream, External id, name) of each annotation that work was launched in -> start and end of that work."""
    threads, by_correlation, found = collections.defaultdict(list), {e["args"].get("correlation"): e for e in calls}, {}
    for e in spans:
        if e.get("cat") == "user_annotation":
            threads[e["tid"]].append((start(e), end(e), e["args"]["External id"], e["name"]))
    for e in spans:
        call = by_correlation.get(e["args"].get("correlation")) if e.get("cat") in GPU[:3] else None
        around = [a for a in threads.get(call["tid"], []) if a[0] <= start(call) <= a[1]] if call else []
        if around:
            innermost = min(around, key=lambda a: a[1] - a[0])
            key = (e["pid"], e["tid"], *innermost[2:])
            low, high = found.get(key, (10**30, 0))
            found[key] = (min(low, ns(e["ts"])), max(high, ns(e["ts"]) + ns(e["dur"])))
    return found


def annotations(spans, calls):
    there = {(e["pid"], e["tid"], e["args"]["External id"], e["name"]): (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]))
             for e in spans if e.get("cat") == "gpu_user_annotation"}
    if not there:
        return
    derived = derived_annotations(spans, calls)
    print("  gpu_user_annotation in file", len(there), "re-derived", len(derived), "keys equal", there.keys() == derived.keys(),
          "missing", [k for k in there if k not in derived][:3], "extra", [k for k in derived if k not in there][:3])
    apart = collections.Counter(tuple(a - b for a, b in zip(there[k], derived[k])) for k in there if k in derived)
    print("    (start, end) difference in ns, file minus derived:", apart.most_common(6))


def main():
    for path in sys.argv[1:]:
        events = load(path)["traceEvents"]
        spans = [e for e in events if e.get("ph") == "X"]
        calls = [e for e in spans if e.get("cat") in CALLS]
        print("==", path)
        forward_and_backward(events, spans)
        if calls:
            ops_of_launches(spans, calls, calls_and_work(events, spans, calls))
        annotations(spans, calls)


if __name__ == "__main__":
    main()
