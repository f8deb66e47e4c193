# SPDX-License-Identifier: Apache-2.0
"""The same programs under torch.profiler and under libkprof: equal facts, and what each costs."""
import collections
import json
import time

import facts
import gpufacts
from points import E2E, PROGRAMS
from runner import ROOT, point

EXACT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "op of the work", "launched by", "kernel shapes")


ASYNCHRONOUS = ("has no launch of correlation", " overlap on stream ")  # what work of warm-up steps that is still queued, and concurrent kernels may do


def oracle(m, name, *program, waits=False, **env):
    """The facts of one run under torch.profiler; None where it fails."""
    reference = m.folder / f"{name}.json"
    done = m.run(m.python, ROOT / "test" / "e2e" / "oracle" / "kineto.py", "--out", reference, "--cuda", "--shapes", "--memory", *(["--waits"] if waits else []),
                 "--schedule", "1,1,3,1", *program, seconds=150, **env)
    if done.code != 0 or not reference.exists():
        m.complain(done)
        return None
    m.keep(reference, reference.name)
    return all_facts(facts.load(reference))


def all_facts(trace):
    return {**facts.facts(trace), **gpufacts.gpu_facts(trace)}


def rules_broken(m, ours):
    """Broken rules of one trace; on a real GPU those that asynchronous work may break are shown and not counted."""
    lines = gpufacts.broken_rules(ours)
    allowed = [] if m.simulated else [line for line in lines if any(word in line for word in ASYNCHRONOUS) or line.startswith("arrow ")]
    counted = [line for line in lines if line not in allowed]
    m.see(f"broken rules: {len(counted)}; {len(allowed)} that asynchronous work may break", *counted[:5], *allowed[:3])
    return counted


def without_invalid(said, ours):
    """Without calls that Kineto has no name for, and as many of those that only we name: it shows them as INVALID.
    Nor with event queries: how often the caching allocator asks depends on how far the GPU is."""
    calls = collections.Counter(said["cuda_runtime"])
    calls.pop("cudaEventQuery", None)
    if said is ours:
        return {**said, "cuda_runtime": calls}
    unnamed = calls.pop("INVALID", 0)
    for name in sorted(ours["cuda_runtime"].keys() - calls.keys()):
        if unnamed >= ours["cuda_runtime"][name]:
            calls[name], unnamed = ours["cuda_runtime"][name], unnamed - ours["cuda_runtime"][name]
    return {**said, "cuda_runtime": calls + collections.Counter({"INVALID": unnamed})}


def compared(m, name, *program, waits=False, **env):
    """Runs it under both, under torch.profiler twice; a verdict. What two runs of torch.profiler disagree on is not held against us."""
    first = oracle(m, f"{name}.kineto", *program, waits=waits, **env)
    again = first if m.simulated else oracle(m, f"{name}.kineto-again", *program, waits=waits, **env)
    if first is None or again is None:
        return "not run: the program does not run under torch.profiler here"
    done, traces = m.under_kprof(name, m.python, *program, seconds=150, KPROF_STEP="optimizer", KPROF_RECORD_SHAPES=1, KPROF_PROFILE_MEMORY=1,
                                 **({"KPROF_CUDA_SYNC": 1} if waits else {}), **env)
    if done.code != 0 or len(traces) != 1:
        m.complain(done)
        return "BAD: no trace of ours"
    trace = facts.load(traces[0])
    ours = all_facts(trace)
    for key in first:
        if first[key] or ours[key]:
            m.see(f"{key}: {facts.ratio(first[key], ours[key]):.4f} of {sum(first[key].values())}; torch.profiler twice {facts.ratio(first[key], again[key]):.4f}")
    m.see(*facts.differences(first, ours))
    m.see(f"kprof_gpu: {trace.get('kprof_gpu')}")
    looked, wrong = gpufacts.wrong_occupancy(trace)
    m.see(f"occupancy of {looked} kernels, {len(wrong)} wrong", *wrong[:5])
    broken = rules_broken(m, trace)
    first, again, ours = without_invalid(first, ours), without_invalid(again, ours), without_invalid(ours, ours)
    unequal = [key for key in EXACT if first.get(key) != ours.get(key) and again.get(key) != ours.get(key) and
               facts.ratio(first[key], ours[key]) < facts.ratio(first[key], again[key])]
    if not first["kernel"]:
        return "BAD: torch.profiler saw no kernel"
    return f"BAD: {', '.join(unequal)} differ" if unequal else "BAD: rules" if broken or wrong else "good"


@point("parity resnet", "ResNet-50 as torch.profiler sees it", 150)
def resnet(m):
    small = ["--batch", 2, "--size", 32, "--width", 8] if m.simulated else []
    return compared(m, "resnet50", PROGRAMS / "resnet50.py", *small)


@point("parity training", "Transformer, convolutions, autocast, streams, pinned copies as torch.profiler sees them", 120)
def training(m):
    if m.simulated:
        return "not run: test_gpu_parity.py compares it"
    return compared(m, "training", E2E / "training.py")


@point("parity graph", "A captured CUDA graph as torch.profiler sees it", 120)
def graphed(m):
    if m.simulated:
        return "not run: test_gpu_parity.py compares it"
    return compared(m, "graphed", E2E / "graphed.py")


@point("parity compile", "A transformer through torch.compile as torch.profiler sees it (Triton's launches)", 240)
def compiled(m):
    if m.simulated:
        return "not run: needs a compiler for a real device"
    return compared(m, "compiled", PROGRAMS / "compiled.py", TORCHINDUCTOR_CACHE_DIR=m.folder / "inductor", KPROF_COMPILE_RANGES=1)


@point("parity reduce", "The same with CUDA graphs (mode reduce-overhead)", 240)
def reduced(m):
    if m.simulated:
        return "not run: needs a compiler for a real device"
    return compared(m, "reduced", PROGRAMS / "compiled.py", "--graphs", TORCHINDUCTOR_CACHE_DIR=m.folder / "inductor", KPROF_COMPILE_RANGES=1)


@point("samples", "CUDA programs in C++, shared and static cudart: is every kernel and copy there?", 120)
def samples(m):
    bad, n = [], 0
    for kind in ("shared", "none") if m.simulated else ("shared", "static"):
        for program in sorted((m.build / "samples" / kind).glob("*")):
            n += 1
            name = f"{kind}-{program.name}"
            check = [] if m.simulated else ["--check"]
            done, traces = m.under_kprof(name, program, *check, schedule=None, plain=True, seconds=20)
            trace = facts.load(traces[0]) if len(traces) == 1 else {"traceEvents": []}
            found = [len(gpufacts.of(trace, c)) for c in ("kernel", "gpu_memcpy", "gpu_memset")]
            said = done.out.split("\n")[-2] if done.code == 0 else f"exit {done.code} {done.err[-200:]}"
            wanted = [int(word.split("=")[1]) for word in said.split() if "=" in word] if done.code == 0 else None
            m.see(f"{name}: program {said}; trace {found}")
            if found != wanted:
                bad.append(name)
    if not n:
        return "not run: no sample was built (nvcc)"
    return f"BAD: {bad}" if bad else f"good: {n} programs"


@point("waits", "Waits (KPROF_CUDA_SYNC=1) as torch.profiler with enable_cuda_sync_events has them", 120)
def waited(m):
    if m.simulated:
        return "not run: test_gpu_waits.py tests them"
    return compared(m, "waits", E2E / "training.py", waits=True)


def timed(m, model, steps, window):
    """Milliseconds a step {part: [of each run]} alone, under torch.profiler, under us, and under us without a window, in four turns, or as many
    as a half of the point's time has room for; None where a run failed."""
    command = [m.python, PROGRAMS / "timed.py", "--steps", steps, "--model", model]
    times, begun = [{}, {}, {}, {}], time.monotonic()
    room = (m.limit - begun) / (1 if model == "resnet" else 2)
    for turn in range(1 if m.simulated else 4):
        if turn and (time.monotonic() - begun) * (turn + 1) / turn > room:
            break
        runs = (lambda: m.run(*command), lambda: m.run(*command, "--torch"), lambda: m.under_kprof(f"timed-{model}-{turn}", *command, schedule=window)[0],
                lambda: m.under_kprof(f"idle-{model}-{turn}", *command, schedule="wait=1000000,active=1")[0])
        for at in range(len(runs)):  # each is once the first, and once the last
            said, run = times[(at + turn) % len(runs)], runs[(at + turn) % len(runs)]()
            if run.code:
                m.complain(run)
                return None
            for part, value in json.loads(run.out.splitlines()[-1]).items():
                said.setdefault(part, []).append(value)
    return times


@point("overhead", "What a window costs beside torch.profiler's, and what is left after it", 200, alone=True)
def overhead(m):
    steps = 20 if m.simulated else 100
    window = f"wait={steps - 5},warmup=5,active={steps},repeat=1"
    bad = []
    for model in ("mlp",) if m.simulated else ("mlp", "resnet"):
        times = timed(m, model, steps, window)
        if times is None:
            return "BAD: a run failed"
        for name, said in zip(("alone", "torch.profiler", "libkprof", "libkprof without a window"), times):
            m.see(f"{model} {name}: " + ", ".join(f"{part} " + " ".join(f"{v:.3f}" for v in values) + " ms" for part, values in said.items()))
        best = [{part: min(values) for part, values in said.items()} for said in times]
        added = [said["in"] / said["before"] - 1 for said in best]
        after = [said["after"] / said["before"] - 1 for said in best]
        later = [said["later"] / said["before"] - 1 for said in best]
        m.see(f"{model}: window adds {added[2]:+.1%} (torch.profiler {added[1]:+.1%}, nothing {added[0]:+.1%}); "
              f"after it {after[2]:+.1%} (torch.profiler {after[1]:+.1%}, nothing {after[0]:+.1%}), "
              f"two seconds later {later[2]:+.1%} (torch.profiler {later[1]:+.1%}, nothing {later[0]:+.1%})")
        m.see(f"{model}: without a window {best[3]['in'] / best[0]['in'] - 1:+.1%} beside a run without us, its host part {best[3]['host in'] / best[0]['host in'] - 1:+.1%}")
        if not m.simulated and (added[2] > added[1] + 0.02 or later[2] > max(later[:2]) + 0.05):
            bad.append(model)
    return f"BAD: costs more than torch.profiler, or stays: {bad}" if bad else "seen" if m.simulated else "good"
