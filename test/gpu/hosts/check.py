#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py TRUTH CUPTI_LOG TRACES CLAIM... - what our traces say of a run on the simulated GPU, beside what it really did

claims  kernels=N      in all traces together N kernels with times (N may be "all": as many as the simulator ran;
                       "counted": those that lack count as lost)
        no_time=N      so many of them were kept without times
        traces=N       so many traces
        source=TEXT    the note gpu_source of each trace, as far as it goes
        gpu_KEY=VALUE  a count of the source's (kprof_gpu)
        dropped=counted  CUPTI dropped records, and each counts as lost
        left=on|off    what CUPTI had enabled at the end, kinds or single calls: something, or nothing
        cut=N, stalls=N  windows that CUPTI cut, calls of ours that took too long, by the last trace
        calls=0        CUPTI was never called
        devices=N      so many are in deviceProperties of each trace
        arrows=all     one begins at each kernel's launch, and one ends at each kernel
        armed=N        kernels were enabled N times
Always, for what came by CUPTI: each kernel lasts as long as it did and they lie as they lay (to 20 us), launches before their kernels.
"""
import glob
import json
import sys

truth_path, cupti_path, folder, *claims = sys.argv[1:]


def lines(path):
    try:
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("}\n")]
    except FileNotFoundError:
        return []


traces = []
for path in sorted(glob.glob(folder + "/*.json")):
    with open(path, encoding="utf-8") as f:
        traces.append(json.load(f))
truth = {(w["correlation"], w["graph_node"]): w for w in lines(truth_path) if w.get("kind") == "kernel"}
cupti = lines(cupti_path)
wrong = []
kernels, no_time, shifts = 0, 0, []
for trace in traces:
    if not trace.get("kprof_gpu", {}).get("source", "").startswith("cupti"):
        continue  # by hooks: correlations of our own, times by events; e2e/test_cudart.py looks at those
    no_time += trace.get("kprof_gpu", {}).get("kernel", {}).get("without time", 0)
    launches = {e["args"]["correlation"]: e["ts"] for e in trace["traceEvents"] if e.get("cat") == "cuda_runtime"}
    for e in trace["traceEvents"]:
        if e.get("cat") != "kernel":
            continue
        kernels += 1
        real = truth.get((e["args"]["correlation"], e["args"].get("graph node id", 0)))
        if real is None or e["name"] != real["name"] or e["args"]["stream"] != real["stream"]:
            wrong.append(f"a kernel that never ran: {e}")
            continue
        if abs(e["dur"] * 1000 - (real["end"] - real["start"])) > 2:
            wrong.append(f"kernel {e['args']['correlation']} lasts {e['dur']} us, not {(real['end'] - real['start']) / 1000}")
        shifts.append(e["ts"] * 1000 - real["start"])
        if e["ts"] < launches.get(e["args"]["correlation"], 0):
            wrong.append(f"kernel {e['args']['correlation']} starts before its launch")
if shifts and max(shifts) - min(shifts) > 20000:
    wrong.append(f"kernels lie up to {(max(shifts) - min(shifts)) / 1000:.1f} us apart from where they lay")
exits = [line for line in cupti if "exit" in line]
for claim in claims:
    key, _, value = claim.partition("=")
    if key == "kernels":
        said = int(value) if value.isdigit() else len(truth)
        lost = sum(t["kprof"]["lost"] for t in traces)
        if kernels + lost < said if value == "counted" else kernels != said:
            wrong.append(f"{kernels} kernels, not {said}, and {lost} lost")
    elif key == "no_time" and no_time != int(value):
        wrong.append(f"{no_time} kernels without times, not {value}")
    elif key == "traces" and len(traces) != int(value):
        wrong.append(f"{len(traces)} traces, not {value}")
    elif key == "source":
        wrong += [f"source {t['kprof_gpu']['source']}" for t in traces if not t["kprof_gpu"]["source"].startswith(value)]
    elif key == "dropped":
        wrong += [f"{t['kprof_gpu'].get('dropped')} dropped, {t['kprof']['lost']} lost" for t in traces
                  if not 0 < t["kprof"]["lost"] == int(t["kprof_gpu"].get("dropped", 0))]
    elif key.startswith("gpu_"):
        wrong += [f"{key} is {t['kprof_gpu'].get(key[4:])}" for t in traces if t["kprof_gpu"].get(key[4:]) != value]
    elif key == "left" and (not exits or bool(exits[-1]["enabled"] or exits[-1]["single"]) != (value == "on")):
        wrong.append(f"CUPTI was left with {exits[-1:]}")
    elif key in ("cut", "stalls"):
        said = traces[-1].get("kprof_gpu", {}).get({"cut": "windows_cut"}.get(key, key), "0") if traces else None
        if said != value:
            wrong.append(f"{key} is {said}, not {value}")
    elif key == "armed":
        times = sum(line.get("call") == "cuptiActivityEnable" and line["args"][0] == 10 and line["result"] == 0 for line in cupti)
        if times != int(value):
            wrong.append(f"kernels were enabled {times} times")
    elif key == "devices":
        wrong += [f"devices {[d['id'] for d in t['deviceProperties']]}" for t in traces if len(t["deviceProperties"]) != int(value)]
    elif key == "arrows":
        for trace in traces:
            ends = {phase: {e["id"] for e in trace["traceEvents"] if e.get("cat") == "ac2g" and e["ph"] == phase} for phase in "sf"}
            ran = {e["args"]["correlation"] for e in trace["traceEvents"] if e.get("cat") == "kernel"}
            wrong += [f"of {len(ran)} kernels {len(ran - of)} have no {phase} of an arrow" for phase, of in ends.items() if ran - of]
    elif key == "calls" and any("call" in line for line in cupti):
        wrong.append(f"CUPTI was called: {cupti[:1]}")
# Who launches waits for CUPTI to be armed, at most a second: a busy machine may need longer, and then the first work is in no trace.
armed = [line["ns"] for line in cupti if line.get("call", "").startswith("cuptiActivityEnable") and 10 in line.get("args", [])]
early = [w for w in truth.values() if armed and w["start"] < armed[0]]
if wrong and early:
    print(f"CUPTI was armed late, after {len(early)} kernels:", end=" ")
for what in wrong[:3]:
    print(what)
sys.exit(bool(wrong))
