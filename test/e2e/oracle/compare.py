# SPDX-License-Identifier: Apache-2.0
"""Compares two Kineto traces of the same program, property by property.

usage: compare.py REFERENCE CANDIDATE [--steps N] [--diff] [--json]
A property is a multiset of facts; its score is the size of the intersection over the size of the larger side. --diff names facts that only
one side has. A second opinion beside ../facts.py: other hands wrote it, and it shares no code with the tests.
"""
import argparse
import collections
import gzip
import json
import re

INPUTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")
OPS = ("cpu_op", "user_annotation")


def load(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


def args(event):
    return event.get("args", {})


def parents(ops):
    """(name of the op around it on its thread or "", name) of each op, and the number of threads."""
    threads, pairs = collections.defaultdict(list), collections.Counter()
    for event in ops:
        threads[event["pid"], event["tid"]].append(event)
    for events in threads.values():
        stack = []
        for event in sorted(events, key=lambda e: (float(e["ts"]), -float(e["dur"]))):
            start = float(event["ts"])
            while stack and stack[-1][1] <= start:
                stack.pop()
            pairs[stack[-1][0] if stack else "", event["name"]] += 1
            stack.append((event["name"], start + float(event["dur"])))
    return pairs, len(threads)


def links(ops):
    """(forward op, backward op) that have one sequence number."""
    forward = {args(e)["Sequence number"]: e["name"] for e in ops
               if args(e).get("Fwd thread id") == 0 and args(e).get("Sequence number", -1) >= 0}
    return collections.Counter((forward.get(args(e)["Sequence number"]), e["name"]) for e in ops
                               if args(e).get("Fwd thread id", 0) not in (0, None) and args(e).get("Sequence number", -1) in forward)


def flops(event):
    return {key: value for key, value in args(event).items() if "lops" in key or "LOP" in key}


def window(spans, steps):
    """Start and end of the first so many profiler steps (0: all), and how many those are."""
    found = [e for e in spans if re.match(r"ProfilerStep#\d+$", e.get("name", "")) and e.get("cat") == "user_annotation"]
    found.sort(key=lambda e: float(e["ts"]))
    found = found[:steps] if steps else found
    if not found:
        raise SystemExit("no ProfilerStep# annotations")
    return float(found[0]["ts"]), float(found[-1]["ts"]) + float(found[-1]["dur"]), len(found)


def properties(trace, steps):
    spans = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    low, high, count = window(spans, steps)
    inside = lambda e: low <= float(e["ts"]) < high
    of = lambda *cats: [e for e in spans if e.get("cat") in cats and inside(e)]
    ops = [e for e in of(*OPS) if not e["name"].startswith("ProfilerStep#")]
    nesting, threads = parents(ops)
    text = lambda e, key: json.dumps(args(e)[key], sort_keys=True)
    arrows = sum(e.get("ph") == "s" and e.get("cat") == "fwdbwd" for e in trace["traceEvents"])
    memory = [e for e in trace["traceEvents"] if e.get("name") == "[memory]" and inside(e)]
    found = {
        "steps": collections.Counter([count]),
        "op counts": collections.Counter(e["name"] for e in ops),
        "categories": collections.Counter((e["name"], e["cat"]) for e in ops),
        **{key: collections.Counter((e["name"], text(e, key)) for e in ops if key in args(e)) for key in INPUTS},
        "nesting": nesting,
        "threads with ops": collections.Counter([threads]),
        "fwd-bwd pairs": links(ops),
        "fwdbwd flows": collections.Counter(fwdbwd=arrows) if arrows else collections.Counter(),
        "memory events (bytes)": collections.Counter((args(e).get("Device Type"), args(e).get("Bytes")) for e in memory),
        "python functions": collections.Counter(re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"_\d+$", "", e["name"])) for e in of("python_function")),
        "flops": collections.Counter((e["name"], json.dumps(flops(e))) for e in ops if flops(e)),
    }
    found.update({cat: collections.Counter(e["name"] for e in of(cat)) for cat in GPU})
    return found


def differences(reference, candidate):
    for label, facts in (("ref", reference - candidate), ("cand", candidate - reference)):
        for fact, number in facts.most_common(4):
            print(f"      only {label:4s} {number} {str(fact)[:160]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reference")
    parser.add_argument("candidate")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--diff", action="store_true")
    options = parser.parse_args()
    reference, candidate = (properties(load(path), options.steps) for path in (options.reference, options.candidate))
    scores = {}
    for name in reference:
        theirs, ours = sum(reference[name].values()), sum(candidate[name].values())
        if theirs == ours == 0:
            continue
        score = sum((reference[name] & candidate[name]).values()) / max(theirs, ours)
        scores[name] = round(score, 4)
        if not options.json:
            print(f"{name:26s} {score:7.4f}   ref {theirs:6d}  cand {ours:6d}")
            if options.diff and score < 1:
                differences(reference[name], candidate[name])
    if options.json:
        print(json.dumps(scores))


if __name__ == "__main__":
    main()
