# SPDX-License-Identifier: Apache-2.0
"""torch_tables.py TRACE OUTDIR GPU|EVERY [FLOPS] - torch's own tables of events taken from a trace file: an oracle for traces of runs
that cannot be repeated here, and for libkprof's own. The events are handed to torch's own post-processing in the form Kineto hands them
over. GPU, EVERY: a name of option_sets.py. FLOPS: what recorded.py wrote of the FLOPs of ops, which no file has.

Only for files whose GPU work carries op ids. Writes OUTDIR/tables.json as make_tables.py does, and the lines of export_stacks.
"""
import collections
import gzip
import json
import os
import sys
from decimal import Decimal

import option_sets
from torch.autograd import DeviceType
from torch.autograd.profiler import profile
from torch.autograd.profiler_util import EventList

HOST = {"cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "Operator", "operator", "Runtime",
        "overhead"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "Kernel", "Memcpy", "Memset"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime", "overhead"}
ENGINE = "autograd::engine::evaluate_function: "


def nanoseconds(text):
    return int((Decimal(text) * 1000).to_integral_value())


class Event:
    """What torch calls a KinetoEvent, backed by an event of a trace."""

    def __init__(self, raw, base):
        self.raw, self.args = raw, raw.get("args", {})
        self.begin = nanoseconds(raw["ts"]) + base
        self.length = nanoseconds(raw.get("dur", "0"))
        self.link = int(self.args.get("External id", self.args.get("external id", 0)))
        self.cat = raw["cat"]
        self.thread = hash((str(raw["pid"]), str(raw["tid"])))
        self.frames = [frame for frame in self.args.get("Call stack", "").split(";") if frame]
        self.operations = 0
        self.forward = int(self.args.get("Fwd thread id", 0))  # torch's number of the thread; Result makes it one of ours
        if self.cat == "gpu_user_annotation" and self.length >= 2:  # 1 ns longer at each end in files than in memory
            self.begin, self.length = self.begin + 1, self.length - 2

    def __getattr__(self, name):
        empty = {"overload_name": "", "device_index": 0, "device_resource_id": 0, "cuda_elapsed_us": -1, "privateuse1_elapsed_us": -1,
                 "is_async": False}
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda: empty.get(name)

    def name(self):
        return self.raw["name"]

    def start_ns(self):
        return self.begin

    def end_ns(self):
        return self.begin + self.length

    def device_type(self):
        if self.cat == "cpu_instant_event":
            return DeviceType.CUDA if int(self.args.get("Device Type", 0)) == 1 else DeviceType.CPU
        return DeviceType.CUDA if self.cat in DEVICE else DeviceType.CPU

    def nbytes(self):
        return int(self.args.get("Bytes", 0))

    def start_thread_id(self):
        return self.thread

    end_thread_id = start_thread_id

    def fwd_thread_id(self):
        return self.forward

    def sequence_nr(self):
        return int(self.args.get("Sequence number", -1))

    def scope(self):
        """1: a function of autograd's backward pass."""
        name = self.name()
        return int(self.cat == "cpu_op" and not name.startswith(ENGINE) and
                   (self.args.get("Fwd thread id", "0") != "0" or name == "torch::autograd::AccumulateGrad"))

    def stack(self):
        return self.frames

    def flops(self):
        return self.operations

    def correlation_id(self):
        return self.link if self.cat not in CALLS | DEVICE else int(self.args.get("correlation", 0))

    def linked_correlation_id(self):
        return self.link if self.cat in CALLS | DEVICE - {"gpu_user_annotation"} else 0  # seen in 2.15: its range is linked to no op

    def external_id(self):
        return self.link

    def shapes(self):
        dims = self.args.get("Input Dims", self.args.get("Input dims", []))
        return [[] if any(isinstance(d, list) for d in dim) else [int(d) for d in dim] for dim in dims]

    def is_user_annotation(self):
        return self.cat in ("user_annotation", "gpu_user_annotation")

    def is_python_function(self):
        return self.cat == "python_function"


class Result:
    def __init__(self, trace, flops):
        base = int(trace.get("baseTimeNanoseconds", 0))
        wanted = HOST | DEVICE | {"cpu_instant_event"}
        for e in trace["traceEvents"]:
            if e["name"] == "[memory]":
                e.setdefault("cat", "cpu_instant_event")  # files of 2021 have none
        self.list = [Event(e, base) for e in trace["traceEvents"] if e.get("cat") in wanted and e["ph"] in "Xi"]
        self.list = [e for e in self.list if (e.cat == "cpu_instant_event") == (e.raw["ph"] == "i")]
        self.list.sort(key=lambda e: (e.begin, int(e.args.get("Ev Idx", 1 << 40))))
        spans = [e for e in trace["traceEvents"] if e.get("cat") == "Trace" and e["name"].startswith("PyTorch Profiler")]
        self.start = nanoseconds(spans[0]["ts"]) + base if spans else min(e.begin for e in self.list)
        self.name_threads()
        if any(e.frames for e in self.list):
            self.link_stacks("kprof" in trace)
        for e in self.list:
            if e.cat == "cpu_op":
                e.operations = flops.get(f"{e.name()} {e.shapes()}", 0)

    def name_threads(self):
        """A thread's number in torch is that of most forward ops with the sequence numbers of what names it."""
        made = collections.defaultdict(list)
        for e in self.list:
            if e.cat == "cpu_op" and not e.forward and e.sequence_nr() >= 0:
                made[e.sequence_nr()].append(e.thread)
        votes = collections.defaultdict(collections.Counter)
        for e in self.list:
            if e.scope() and e.forward:
                votes[e.forward].update(made[e.sequence_nr()])
        for e in self.list:
            if e.forward:
                e.forward = votes[e.forward].most_common(1)[0][0] if votes[e.forward] else 0

    def link_stacks(self, by_time):
        """The parents that torch gives to what Kineto adds: an op, or by time what the thread is in. by_time: to every host event."""
        ops = {e.link: e for e in self.list if e.cat in ("cpu_op", "user_annotation") and e.link}
        calls = [e for e in self.list if e.cat == "python_function"]
        for e in self.list:
            op = ops.get(e.link) if e.cat in CALLS | DEVICE else None
            if e.cat == "cpu_instant_event" or e.frames:
                continue
            if op is None and e.cat in HOST and (by_time or e.cat in CALLS) and not (e.cat in CALLS and e.link):
                e.frames = self.around(calls, e, e.thread)
            elif op is not None and e.cat == "gpu_user_annotation":
                e.frames = self.around(calls, e, op.thread)
        for e in self.list:
            if e.cat in CALLS | DEVICE - {"gpu_user_annotation"} and e.link in ops and not e.frames:
                e.frames = ops[e.link].frames

    @staticmethod
    def around(calls, e, thread):
        """Names of the calls that are open when e begins, innermost first."""
        def order(call):
            return call.begin, -call.length, int(call.args.get("Ev Idx", 0))

        found = [c for c in calls if c.thread == thread and c.begin <= e.begin < c.end_ns() and (c.cat != e.cat or order(c) < order(e))]
        return [c.name() for c in sorted(found, key=order, reverse=True)]

    def events(self):
        return self.list

    def trace_start_ns(self):
        return self.start


def main():
    path, out, sets = sys.argv[1:4]
    flops = json.load(open(sys.argv[4])) if len(sys.argv) > 4 else {}
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        trace = json.load(f, parse_float=str, parse_int=str)
    result = Result(trace, flops)
    with_gpu = any(e.cat in DEVICE for e in result.list)
    prof = profile(enabled=True)
    prof.use_device = "cuda" if with_gpu else None
    events = EventList(prof._parse_kineto_results(result), use_device=prof.use_device,
                       profile_memory=any(e.name() == "[memory]" for e in result.list), with_flops=bool(flops))
    events._build_tree()

    def key_averages(group_by_input_shape=False, **more):
        return events.key_averages(group_by_input_shapes=group_by_input_shape, **more)

    option_sets.write(out, getattr(option_sets, sets), key_averages)
    for metric in ("self_cpu_time_total", "self_cuda_time_total"):
        events.export_stacks(os.path.join(out, metric + ".txt"), metric)


if __name__ == "__main__":
    main()
