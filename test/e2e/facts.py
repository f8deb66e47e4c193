# SPDX-License-Identifier: Apache-2.0
"""What a trace states, as multisets, so that two traces of the same program can be compared property by property."""
import bisect
import collections
import decimal
import gzip
import json
import re

# How threads wait for each other, and all that calls: who comes first waits, so it differs from run to run (docs/decisions/026).
WAITS = re.compile(r"threading\.py\(\d+\): (wait|_wait|_enter|_exit|_release|notify(_all)?|_is_owned|<lambda>|__enter__|__exit__)$")
STEP = re.compile(r"ProfilerStep#(\d+)$")
INPUTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


class Number(float):
    """A number with a point, and its text: a double of 10^12 microseconds no longer tells nanoseconds apart."""

    __slots__ = ("text", "ns")

    def __new__(cls, text):
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __getattr__(self, name):
        """Asked for ns the first time, and for what is not there."""
        if name != "ns":
            raise AttributeError(name)
        self.ns = int(decimal.Decimal(self.text) * 1000)
        return self.ns


def ns(value):
    """Microseconds as in the file -> whole nanoseconds, exactly."""
    return value.ns if isinstance(value, Number) else int(decimal.Decimal(value) * 1000)


def begin(event):
    return ns(event["ts"])


def end(event):
    return ns(event["ts"]) + ns(event["dur"])


def _refuse(word):
    raise ValueError(f"{word} is not JSON")


def load(path):
    """Strict: NaN, control characters in strings and anything behind the object are errors."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_constant=_refuse, parse_float=Number)


def spans(trace):
    return [event for event in trace["traceEvents"] if event.get("ph") == "X"]


def steps(trace):
    """The ProfilerStep annotations in order of time."""
    found = [e for e in spans(trace) if e.get("cat") == "user_annotation" and STEP.match(e["name"])]
    return sorted(found, key=begin)


def requests_of_steps(trace):
    """Of each recorded step, how many ranges named request began in it."""
    begun = [begin(e) for e in spans(trace) if e["name"] == "request"]
    return [sum(begin(step) <= at < end(step) for at in begun) for step in steps(trace)]


def host_events(trace, ignore=None):
    """cpu_op and user_annotation events of the stepped window (of the whole file when it has no step)."""
    marks = steps(trace)
    low, high = (begin(marks[0]), end(marks[-1])) if marks else (float("-inf"), float("inf"))
    return [e for e in spans(trace) if e.get("cat") in ("cpu_op", "user_annotation") and low <= begin(e) < high
            and not STEP.match(e["name"]) and not (ignore and ignore.search(e["name"]))]


def by_thread(events):
    threads = collections.defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    for line in threads.values():
        line.sort(key=lambda e: (begin(e), -ns(e["dur"])))
    return threads


def with_parents(line):
    """(parent or None, event) of one thread's events; the last one that began and has not ended."""
    stack = []
    for event in line:
        start, last = begin(event), end(event)
        while stack and stack[-1][0] <= start:
            stack.pop()
        yield (stack[-1][1] if stack else None), event
        stack.append((last, event))


def _links(events):
    """(forward op, backward op) joined by sequence number and forward thread."""
    forward = {}
    for event in events:
        args = event.get("args", {})
        if args.get("Fwd thread id") == 0 and args.get("Sequence number", -1) >= 0:
            forward[args["Sequence number"]] = event["name"]  # the last one wins
    found = collections.Counter()
    for event in events:
        args = event.get("args", {})
        if args.get("Fwd thread id") and args.get("Sequence number", -1) in forward:
            found[forward[args["Sequence number"]], event["name"]] += 1
    return found


def _flows(trace, threads):
    """fwdbwd arrows as pairs of the names of the events they start and end at; a loose end has the name None."""
    starts = {}
    for key, line in threads.items():
        for event in line:
            starts.setdefault((key, begin(event)), event["name"])
    ends = collections.defaultdict(dict)
    for event in trace["traceEvents"]:
        if event.get("cat") == "fwdbwd" and event.get("ph") in "sf":
            ends[event["id"]][event["ph"]] = starts.get(((event["pid"], event["tid"]), begin(event)))
    return collections.Counter((pair.get("s"), pair.get("f")) for pair in ends.values())


def facts(trace, ignore=None):
    """Property name -> multiset. `ignore`: a pattern of names left out altogether."""
    ignore = re.compile(ignore) if isinstance(ignore, str) else ignore
    events = host_events(trace, ignore)
    threads = by_thread(events)
    marks = steps(trace)
    said = collections.OrderedDict()
    said["steps"] = collections.Counter(e["name"] for e in marks)
    said["op counts"] = collections.Counter(e["name"] for e in events)
    said["categories"] = collections.Counter((e["name"], e["cat"]) for e in events)
    begins = [begin(e) for e in marks]
    said["ops by step"] = collections.Counter((bisect.bisect_right(begins, begin(e)), e["name"]) for e in events)
    for key in INPUTS:
        said[key] = collections.Counter((e["name"], json.dumps(e["args"][key])) for e in events if key in e.get("args", {}))
    said["nesting"] = collections.Counter(
        (parent and parent["name"], e["name"]) for line in threads.values() for parent, e in with_parents(line))
    said["threads"] = collections.Counter([len(threads)])
    said["fwd-bwd pairs"] = _links(events)
    said["fwdbwd flows"] = _flows(trace, threads)
    return said


def ratio(reference, candidate):
    """Share of equal facts: 1.0 only for equal multisets."""
    most = max(sum(reference.values()), sum(candidate.values()))
    return 1.0 if most == 0 else sum((reference & candidate).values()) / most


def differences(reference, candidate, properties=None):
    """One readable line for each property that is not equal."""
    lines = []
    for name in properties or reference:
        if reference[name] != candidate[name]:
            only = [f"{label} {count} x {str(what)[:150]}" for label, side in
                    (("only ref", reference[name] - candidate[name]), ("only ours", candidate[name] - reference[name]))
                    for what, count in side.most_common(4)]
            lines.append(f"{name}: {ratio(reference[name], candidate[name]):.4f}; " + "; ".join(only))
    return lines


def crossings(trace):
    """Host events of one thread that partly overlap (a viewer drops them), or touch: Perfetto rounds, and may see touching ones overlap."""
    bad = []
    for line in by_thread([e for e in spans(trace) if isinstance(e["tid"], int) and e.get("cat") != "Trace"]).values():
        stack = []
        for event in line:
            start, last = begin(event), end(event)
            while stack and stack[-1][1] < start:
                stack.pop()
            if stack and last >= stack[-1][1]:
                bad.append((stack[-1][0], event["name"]))
            stack.append((event["name"], last))
    return bad
