# SPDX-License-Identifier: Apache-2.0
"""Whole programs: is the host unharmed, and are things as they should be where CUPTI is known to be weak?"""
import collections
import json
import statistics

import facts
import gpufacts
from parity import compared
from points import PROGRAMS
from runner import point


@point("0 unharmed", "Does a training compute the same bits, hold the same memory and end the same with the library, recording or not?", 120)
def unharmed(m):
    command = [m.python, PROGRAMS / "results.py"]
    alone = m.run(*command)
    again = alone if m.simulated else m.run(*command)
    idle, _ = m.under_kprof("results-idle", *command, schedule="wait=1000000,active=1")
    recording, _ = m.under_kprof("results", *command, schedule=None, KPROF_RECORD_SHAPES=1, KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops")
    for name, done in (("alone", alone), ("alone again", again), ("idle", idle), ("recording", recording)):
        m.see(f"{name}: exit {done.code}", *done.out.splitlines())
    if alone.code:
        return "not run: the program fails without us"
    if (idle.code, recording.code) != (0, 0):
        m.complain(idle if idle.code else recording)
        return "BAD: the program fails under us"
    same = alone.says("results") == again.says("results")
    if alone.says("results") == idle.says("results") == recording.says("results"):
        return "good: equal results, memory on the GPU and numbers of threads as seen above"
    return "BAD: results differ" if same else "seen: results differ between two runs without us, too"


@point("slow calls", "What do Enable, Disable and flushes of a window take while the GPU works and threads launch?", 90)
def slow_calls(m):
    done = m.probe("slow-calls", seconds=80)
    return "seen" if done.code == 0 else "BAD: the probe failed"


@point("graph sessions", "Have kernels of CUDA graphs their own launch in a second session, and when CUPTI is enabled after the capture?", 120)
def graph_sessions(m):
    done = m.run(m.python, PROGRAMS / "graphsessions.py")
    if done.code != 0:
        m.complain(done)
        return "BAD: the program failed"
    sessions = [json.loads(line) for line in done.says("session")]
    m.see(*[str(session) for session in sessions])
    ran, traces = m.under_kprof("graph-sessions", m.python, PROGRAMS / "graphsessions.py", "--alone", schedule="wait=2,warmup=1,active=2,repeat=3", KPROF_STEP="optimizer")
    for path in traces:
        trace = facts.load(path)
        calls = gpufacts.launches(trace)
        kernels = gpufacts.of(trace, "kernel")
        ours = [calls.get(gpufacts.args(e).get("correlation"), {}).get("name") for e in kernels]
        by_launch = collections.Counter(gpufacts.args(e).get("correlation") for e in kernels)
        m.see(f"{len(kernels)} kernels, launched by { {str(name): ours.count(name) for name in set(ours)} }, of one launch {sorted(set(by_launch.values()))}; {trace.get('kprof_gpu')}")
    if ran.code != 0:
        m.complain(ran)
        return "BAD: the program failed under us"
    wrong = [i for i, session in enumerate(sessions) if session["by_graph"] != session["wanted"] or session["bad_launches"]]
    return f"seen: wrong in torch.profiler's sessions {wrong} of {len(sessions)}" if wrong else f"seen: right in all {len(sessions)} sessions of torch.profiler"


@point("frameworks", "JAX, CuPy and numba: the same output, and their kernels", 150)
def frameworks(m):
    bad, n = [], 0
    for name in ("jax", "cupy", "numba.cuda"):
        env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        alone = m.run(m.python, PROGRAMS / "frameworks.py", name, **env)
        if alone.code:
            m.see(f"{name}: not here: {alone.err.splitlines()[-1:]}")
            continue
        n += 1
        done, traces = m.under_kprof(f"framework-{name}", m.python, PROGRAMS / "frameworks.py", name, schedule=None, **env)
        kernels = sum(len(gpufacts.of(facts.load(t), "kernel")) for t in traces)
        m.see(f"{name}: exit {done.code}, {kernels} kernels; alone {alone.seconds:.1f} s, under us {done.seconds:.1f} s")
        if done.code or done.out != alone.out or not kernels:
            m.complain(done)
            bad.append(name)
    if not n:
        return "not run: none of them is here"
    return f"BAD: {bad}" if bad else f"good: {n} of 3"


@point("real", "A GPT-2 of transformers in bfloat16 with a DataLoader: trace, table, findings", 150)
def real(m):
    command = [m.python, PROGRAMS / "gpt2.py", *(["--small"] if m.simulated else [])]
    asked = {"gpt2-everything": {"KPROF_WITH_STACK": 1, "KPROF_CUDA_SYNC": 1, "KPROF_PYTHON_GC": 1}}
    if not m.simulated:
        alone = m.run(*command)
        if alone.code:
            m.complain(alone)
            return "not run: the program fails without us"
        m.see("alone", *alone.out.splitlines())
        asked["gpt2"] = {"KPROF_WITH_STACK": "ops"}
    bad = []
    for name, env in asked.items():
        done, traces = m.under_kprof(name, *command, schedule="wait=8,warmup=2,active=5,repeat=1", KPROF_RECORD_SHAPES=1, KPROF_PROFILE_MEMORY=1, **env)
        m.see(f"{name}: exit {done.code}", *done.out.splitlines())
        if done.code or len(traces) != 1:
            m.complain(done)
            bad.append(name)
            continue
        for how in (["report", "-n", "8"], ["advise"]):
            said = m.run(m.kprof, *how, traces[0])
            m.see(f"kprof {' '.join(how)}: exit {said.code}", *said.out.splitlines()[:24])
    return f"BAD: {bad}" if bad else "seen"


@point("advice", "Does kprof advise find what is wrong with trainings that are sick in known ways, and nothing where one is well?", 90, alone=True)
def advice(m):
    if m.simulated:
        return "not run: its times are not those of a GPU"
    settings = {"KPROF_STEP": "optimizer", "KPROF_RECORD_SHAPES": 1, "KPROF_PROFILE_MEMORY": 1, "KPROF_WITH_STACK": "ops", "KPROF_PYTHON_GC": 1}
    done, traces = m.under_kprof("sick", m.python, PROGRAMS / "sick.py", schedule="wait=4,warmup=2,active=4,repeat=100", **settings)
    blocking, more = m.under_kprof("blocking", m.python, PROGRAMS / "sick.py", "well", schedule="wait=4,warmup=2,active=4,repeat=1", CUDA_LAUNCH_BLOCKING=1, **settings)
    names = [line.split()[0] for line in done.says("ill")] + ["launch-blocking"]
    if done.code or blocking.code or len(traces + more) != len(names):
        m.complain(done if done.code else blocking)
        return f"BAD: {len(traces + more)} traces of {len(names)}"
    m.see(*done.says("ill"), *blocking.says("ill"))
    missed = []
    for name, trace in zip(names, traces + more):
        said = json.loads(m.run(m.kprof, "advise", trace, "--json").out.splitlines()[0])
        told = [finding["id"] for finding in said["findings"]]
        m.see(f"{name}: " + ("; ".join(f"{f['severity']} {f['id']} {f['step_ms']:.1f} ms at {f['line']}" for f in said["findings"]) or str(said["missing"])))
        m.see(f"    {said['step_ms']:.1f} ms: {said['parts_ms']}; idle {said['idle_ms']}")
        if (told[:1] or ["well"]) != [name]:
            missed.append(name)
    return f"BAD: not the first finding: {missed}" if missed else f"good: {len(names)} of {len(names)} told first"


@point("mended", "Does what kprof advise tells first save, when it is mended, what it was told to cost?", 150, alone=True)
def mended(m):
    names = ["norms", "eager"] if m.simulated else []
    alone = m.run(m.python, PROGRAMS / "mended.py", *names, seconds=90)
    settings = {"KPROF_STEP": "optimizer", "KPROF_RECORD_SHAPES": 1, "KPROF_PROFILE_MEMORY": 1, "KPROF_WITH_STACK": "ops"}
    done, traces = m.under_kprof("mended", m.python, PROGRAMS / "mended.py", *names, schedule="wait=9,warmup=2,active=7,repeat=100", seconds=90, **settings)
    if alone.code or done.code or len(traces) != len(alone.says("step")):
        m.complain(alone if alone.code else done)
        return f"BAD: {len(traces)} traces of {len(alone.says('step'))}"
    took = {}
    for line, recorded, trace in zip(alone.says("step"), done.says("step"), traces):
        name, state, ms = line.split()[:3]
        took[name, state] = float(ms)
        said = json.loads(m.run(m.kprof, "advise", trace, "--json").out.splitlines()[0])
        m.see(f"{name} {state}: {ms} ms alone, {recorded.split()[2]} recorded; told {said['step_ms']:.2f} ms, idle {said['idle_ms']}, {said['parts_ms']}")
        for f in said["findings"]:
            m.see(f"    {f['severity']} {f['id']} {f['step_ms']:.2f} ms at {f['line']}")
        if state == "mended":
            m.see(f"    mended saves {took[name, 'sick'] - took[name, state]:.2f} ms")
    return "seen"


@point("windows", "Has each kernel a launch of its own, before it, in each of several windows?", 60)
def windows(m):
    if m.simulated:
        return "not run: test_gpu_cycles.py tests them"
    done, traces = m.under_kprof("windows", m.python, PROGRAMS / "sick.py", "well", "python-starved", "data-loading", "well",
                                 schedule="wait=4,warmup=2,active=4,repeat=100", KPROF_STEP="optimizer")
    bad = []
    for path in traces:
        trace = facts.load(path)
        calls, kernels = gpufacts.launches(trace), gpufacts.of(trace, "kernel")
        most = max(collections.Counter(gpufacts.args(e)["correlation"] for e in kernels).values(), default=0)
        late = sum(facts.begin(calls[c]) > facts.begin(e) for e in kernels if (c := gpufacts.args(e)["correlation"]) in calls)
        m.see(f"{path.name}: {len(kernels)} kernels, at most {most} of one launch, {late} begin before their launch")
        if most != 1 or late:
            bad.append(path.name)
    if done.code or len(traces) != 4:
        m.complain(done)
        return f"BAD: {len(traces)} traces of 4"
    return f"BAD: {bad}" if bad else "good"


@point("hooks", "KPROF_CUPTI=off: the program's own kernels, and their times beside CUPTI's", 90)
def hooks(m):
    if m.simulated:
        return "not run: test_cudart.py tests them"
    medians = {}
    for name, env in (("cupti", {}), ("hooks", {"KPROF_CUPTI": "off"})):
        done, traces = m.under_kprof(f"hooks-{name}", m.python, PROGRAMS / "resnet50.py", **env)
        if done.code or len(traces) != 1:
            m.complain(done)
            return f"BAD: {name}: the program failed, or left no trace"
        kernels = collections.defaultdict(list)
        for event in gpufacts.of(facts.load(traces[0]), "kernel"):
            kernels[event["name"]].append(facts.ns(event["dur"]))
        medians[name] = {kernel: (len(ns), statistics.median(ns)) for kernel, ns in kernels.items()}
        m.see(f"{name}: {sum(n for n, _ in medians[name].values())} kernels of {len(kernels)} names, {sum(sum(ns) for ns in kernels.values()) / 1e6:.3f} ms")
    for kernel, (n, ns) in sorted(medians["hooks"].items(), key=lambda item: -item[1][0])[:12]:
        m.see(f"{kernel[:70]}: hooks {n} of median {ns} ns, CUPTI {medians['cupti'].get(kernel)}")
    return "seen" if medians["hooks"] else "BAD: no kernel by hooks"


@point("soak", "Tens of millions of kernels of CUDA graphs in one recording: have they times, does the GPU's memory stay?", 90)
def soak(m):
    if m.simulated:
        return "not run: the simulated GPU has no such fault"
    done = m.probe("soak", "--idle", 40, seconds=80)
    return "seen" if done.code == 0 else "BAD: the probe failed"


@point("nccl", "DistributedDataParallel by NCCL, alone in its group, as torch.profiler sees it", 120)
def nccl(m):
    if m.simulated:
        return "not run: test_collectives.py does this with two simulated GPUs"
    return compared(m, "nccl", PROGRAMS / "ddp.py")
