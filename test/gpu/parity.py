# SPDX-License-Identifier: Apache-2.0
"""The same programs under torch.profiler and under libkprof: equal facts, and what each costs."""
import json

import facts
import gpufacts
from points import E2E, PROGRAMS
from runner import ROOT, point

EXACT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "op of the work", "launched by", "kernel shapes")


def compared(m, name, *program, **env):
    """Runs it under both; (verdict, share of equal facts by property)."""
    reference = m.folder / f"{name}.kineto.json"
    oracle = m.run(m.python, ROOT / "test" / "e2e" / "oracle" / "kineto.py", "--out", reference, "--cuda", "--shapes", "--memory", "--schedule", "1,1,3,1",
                   *program, seconds=150, **env)
    if oracle.code != 0 or not reference.exists():
        m.complain(oracle)
        return "not run: the program does not run under torch.profiler here"
    done, traces = m.under_kprof(name, m.python, *program, seconds=150, KPROF_STEP="optimizer", KPROF_RECORD_SHAPES=1, KPROF_PROFILE_MEMORY=1, **env)
    if done.code != 0 or len(traces) != 1:
        m.complain(done)
        return "BAD: no trace of ours"
    theirs, ours = facts.load(reference), facts.load(traces[0])
    a = {**facts.facts(theirs), **gpufacts.gpu_facts(theirs)}
    b = {**facts.facts(ours), **gpufacts.gpu_facts(ours)}
    for key in a:
        if a[key] or b[key]:
            m.see(f"{key}: {facts.ratio(a[key], b[key]):.4f} of {sum(a[key].values())}")
    m.see(*facts.differences(a, b))
    broken = gpufacts.broken_rules(ours)
    looked, wrong = gpufacts.wrong_occupancy(ours)
    m.see(f"broken rules: {len(broken)}; occupancy of {looked} kernels, {len(wrong)} wrong", *broken[:5], *wrong[:5])
    unequal = [key for key in EXACT if a.get(key) != b.get(key)]
    if not a["kernel"]:
        return "BAD: torch.profiler saw no kernel"
    return f"BAD: {', '.join(unequal)} differ" if unequal else "BAD: rules" if broken or wrong else "good"


@point("parity resnet", "ResNet-50 as torch.profiler sees it", 150)
def resnet(m):
    small = ["--batch", 2, "--size", 32, "--width", 8] if m.simulated else []
    return compared(m, "resnet50", PROGRAMS / "resnet50.py", *small)


@point("parity training", "Transformer, convolutions, autocast, streams, pinned copies as torch.profiler sees them", 120)
def training(m):
    return compared(m, "training", E2E / "training.py")


@point("parity graph", "A captured CUDA graph as torch.profiler sees it", 120)
def graphed(m):
    return compared(m, "graphed", E2E / "graphed.py")


@point("parity compile", "A transformer through torch.compile as torch.profiler sees it (Triton's launches)", 240)
def compiled(m):
    if m.simulated:
        return "not run: needs a compiler for a real device"
    return compared(m, "compiled", PROGRAMS / "compiled.py", TORCHINDUCTOR_CACHE_DIR=m.folder / "inductor")


@point("parity reduce", "The same with CUDA graphs (mode reduce-overhead)", 240)
def reduced(m):
    if m.simulated:
        return "not run: needs a compiler for a real device"
    return compared(m, "reduced", PROGRAMS / "compiled.py", "--graphs", TORCHINDUCTOR_CACHE_DIR=m.folder / "inductor")


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


@point("overhead", "What a window costs beside torch.profiler's, and what is left after it", 150)
def overhead(m):
    steps = 20 if m.simulated else 60
    window = f"wait={steps - 5},warmup=5,active={steps},repeat=1"
    bad = []
    for model in ("mlp",) if m.simulated else ("mlp", "resnet"):
        command = [m.python, PROGRAMS / "timed.py", "--steps", steps, "--model", model]
        plain = m.run(*command)
        theirs = m.run(*command, "--torch")
        ours, _ = m.under_kprof(f"timed-{model}", *command, schedule=window)
        if plain.code or theirs.code or ours.code:
            m.complain(next(run for run in (plain, theirs, ours) if run.code))
            return "BAD: a run failed"
        times = [json.loads(run.out.splitlines()[-1]) for run in (plain, theirs, ours)]
        for name, said in zip(("alone", "torch.profiler", "libkprof"), times):
            m.see(f"{model} {name}: " + ", ".join(f"{part} {value:.3f} ms" for part, value in said.items()))
        added = [said["in"] / said["before"] - 1 for said in times]
        after = [said["after"] / said["before"] - 1 for said in times]
        m.see(f"{model}: window adds {added[2]:+.1%} (torch.profiler {added[1]:+.1%}, nothing {added[0]:+.1%}); "
              f"after it {after[2]:+.1%} (torch.profiler {after[1]:+.1%}, nothing {after[0]:+.1%})")
        if not m.simulated and (added[2] > added[1] + 0.02 or after[2] > after[0] + 0.05):
            bad.append(model)
    return f"BAD: costs more than torch.profiler, or stays: {bad}" if bad else "seen" if m.simulated else "good"
