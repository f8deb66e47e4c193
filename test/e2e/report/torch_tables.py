# SPDX-License-Identifier: Apache-2.0
"""torch_tables.py TRACE OUTDIR - torch's own tables of events taken from a trace file: an oracle for traces of runs
that cannot be repeated here. The events are handed to torch's own post-processing in the form Kineto hands them over.

Only for files whose GPU work carries op ids. Writes OUTDIR/NAME.txt and OUTDIR/tables.json as make_tables.py does.
"""
import gzip
import json
import os
import sys
from decimal import Decimal

from torch.autograd import DeviceType
from torch.autograd.profiler import profile
from torch.autograd.profiler_util import EventList

HOST = {"cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "Operator", "operator", "Runtime",
        "overhead"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "Kernel", "Memcpy", "Memset"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime", "overhead"}
OPTION_SETS = {
    "default": ({}, {}, []),
    "self_cpu": ({}, {"sort_by": "self_cpu_time_total", "row_limit": 25},
                 ["--sort-by", "self_cpu_time_total", "--row-limit", "25"]),
    "self_cuda": ({}, {"sort_by": "self_cuda_time_total", "row_limit": -1},
                  ["--sort-by", "self_cuda_time_total", "--row-limit", "-1"]),
    "cuda_total": ({}, {"sort_by": "cuda_time_total", "time_unit": "ms"},
                   ["--sort-by", "cuda_time_total", "--time-unit", "ms"]),
    "by_shape": ({"group_by_input_shapes": True}, {"sort_by": "cpu_time_total"},
                 ["--group-by-input-shape", "--sort-by", "cpu_time_total"]),
    "top_level": ({}, {"top_level_events_only": True, "header": "H"}, ["--top-level-events-only", "--header", "H"]),
}


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

    def __getattr__(self, name):
        empty = {"overload_name": "", "fwd_thread_id": 0, "stack": [], "scope": 0, "sequence_nr": -1, "device_index": 0,
                 "device_resource_id": 0, "flops": 0, "cuda_elapsed_us": -1, "privateuse1_elapsed_us": -1,
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
            return DeviceType.CUDA if self.args.get("Device Type") == 1 else DeviceType.CPU
        return DeviceType.CUDA if self.cat in DEVICE else DeviceType.CPU

    def nbytes(self):
        return int(self.args.get("Bytes", 0))

    def start_thread_id(self):
        loose = self.cat in CALLS and not self.link
        return hash((str(self.raw["pid"]), str(self.raw["tid"]), loose))

    end_thread_id = start_thread_id

    def correlation_id(self):
        return self.link if self.cat not in CALLS | DEVICE else int(self.args.get("correlation", 0))

    def linked_correlation_id(self):
        return self.link if self.cat in CALLS | DEVICE else 0

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
    def __init__(self, trace):
        base = int(trace.get("baseTimeNanoseconds", 0))
        wanted = HOST | DEVICE | {"cpu_instant_event"}
        self.list = [Event(e, base) for e in trace["traceEvents"] if e.get("cat") in wanted and e["ph"] in "Xi"]
        self.list = [e for e in self.list if (e.cat == "cpu_instant_event") == (e.raw["ph"] == "i")]
        self.list.sort(key=lambda e: (e.begin, int(e.args.get("Ev Idx", 1 << 40))))
        spans = [e for e in trace["traceEvents"] if e.get("cat") == "Trace" and e["name"].startswith("PyTorch Profiler")]
        self.start = nanoseconds(spans[0]["ts"]) + base if spans else min(e.begin for e in self.list)

    def events(self):
        return self.list

    def trace_start_ns(self):
        return self.start


def main():
    path, out = sys.argv[1:3]
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        trace = json.load(f, parse_float=str, parse_int=str)
    result = Result(trace)
    with_gpu = any(e.cat in DEVICE for e in result.list)
    prof = profile(enabled=True)
    prof.use_device = "cuda" if with_gpu else None
    events = EventList(prof._parse_kineto_results(result), use_device=prof.use_device,
                       profile_memory=any(e.name() == "[memory]" for e in result.list))
    events._build_tree()
    tables = []
    for label, (group, table, argv) in OPTION_SETS.items():
        with open(os.path.join(out, label + ".txt"), "w", encoding="utf-8") as f:
            f.write(events.key_averages(**group).table(**table))
        tables.append({"name": label, "argv": argv})
    with open(os.path.join(out, "tables.json"), "w") as f:
        json.dump(tables, f)


if __name__ == "__main__":
    main()
