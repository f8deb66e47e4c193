# SPDX-License-Identifier: Apache-2.0
"""What only a GPU and NVIDIA's own CUPTI can answer: the open points of the design, in their order."""
import re
import signal

import facts
import gpufacts
from runner import ROOT, point

PROGRAMS = ROOT / "test" / "gpu" / "programs"
E2E = ROOT / "test" / "e2e" / "gpu" / "programs"


def numbers(line):
    return [int(n) for n in re.findall(r"-?\d+", line)]


@point("machine", "What is here?", 60)
def machine_itself(m):
    code = ("import torch; print('torch', torch.__version__, 'cuda', torch.version.cuda, 'cudnn', torch.backends.cudnn.version()); "
            "print('device', torch.cuda.get_device_name(0) if torch.cuda.is_available() else None)")
    done = m.run(m.python, "-c", code)
    m.see(*done.out.splitlines())
    if not m.simulated:
        m.see(*m.run("nvidia-smi", "--query-gpu=name,driver_version,mig.mode.current", "--format=csv,noheader").out.splitlines())
    m.see(f"libcupti: {m.cupti.name if m.cupti else 'as the loader finds it'}")
    doctor = m.run(m.kprof, "doctor", m.python, KPROF_DIR=m.folder)
    m.see(f"kprof doctor: exit {doctor.code}", *doctor.out.splitlines())
    if done.code != 0 or "device None" in done.out:
        m.complain(done)
        return "BAD: torch sees no GPU"
    return "seen"


@point("1 register", "Does a second v1 RegisterCallbacks replace silently, and what happens to buffers of the first client?", 60)
def register(m):
    done = m.probe("register")
    if done.code != 0:
        return "BAD: the probe failed"
    before, a, b = (numbers(done.says(name)[0]) for name in ("a before b registers", "a after", "b after"))
    kept = "come back to the first" if a[1] > before[1] and a[3] else "come back to the second" if b[1] else "are lost"
    return f"seen: replaced silently; buffers of the first {kept}; kernels a {a[3]} b {b[3]} of 10 + 20"


def kernels_alone(m, name, env):
    """Kernels in each trace of torch.profiler without us."""
    folder = m.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    m.run(m.python, E2E / "teed.py", folder, "--times", 2, **env)
    found = {path.name: len(gpufacts.of(facts.load(path), "kernel")) for path in sorted(folder.glob("kineto.*.json"))}
    m.see(f"{name}: {found}")
    return found


@point("2 tee", "Beside torch.profiler (start, stop, start; yield, tee, TEARDOWN_CUPTI=1): has it what it has alone, and we all of it with tee?", 150)
def tee(m):
    bad, asked = [], {"yield": {}, "tee": {"KPROF_CUPTI": "tee"}, "teardown": {"TEARDOWN_CUPTI": 1}, "teardown-tee": {"KPROF_CUPTI": "tee", "TEARDOWN_CUPTI": 1}}
    alone = [kernels_alone(m, f"alone-{teardown}", {"TEARDOWN_CUPTI": 1} if teardown else {}) for teardown in range(1 if m.simulated else 2)]
    for name, env in list(asked.items())[:2 if m.simulated else 4]:  # test_tee.py has the rest
        expected = alone["TEARDOWN_CUPTI" in env]
        folder = m.folder / name
        done, traces = m.under_kprof(name, m.python, E2E / "teed.py", folder, "--times", 2, schedule=None, **env)
        if done.code != 0 or not traces:
            m.complain(done)
            bad.append(name)
            continue
        ours = gpufacts.of(facts.load([t for t in traces if "kineto" not in t.name][0]), "kernel")
        mine = {gpufacts.args(e)["correlation"]: e for e in ours}
        for path in sorted(folder.glob("kineto.*.json")):
            theirs = gpufacts.of(facts.load(path), "kernel")
            equal = sum(gpufacts.args(e)["correlation"] in mine and
                        gpufacts.as_long(facts.ns(mine[gpufacts.args(e)["correlation"]]["dur"]), facts.ns(e["dur"])) for e in theirs)
            m.see(f"{name} {path.name}: {len(theirs)} kernels, {equal} equal in ours (correlation, duration to 1 ns), {len(ours)} ours in all")
            if not theirs or len(theirs) != expected.get(path.name) or equal != (len(theirs) if env == {"KPROF_CUPTI": "tee"} else 0):
                bad.append(f"{name} {path.name}")
    return f"BAD: {bad}" if bad else "good"


@point("3 strides", "Record sizes by the stride probe after driver init, and by GetStructSize", 30)
def strides(m):
    done = m.probe("strides")
    sizes = {n[0]: n[1:] for n in map(numbers, done.says("kind"))}
    if done.code != 0 or 10 not in sizes:
        return "BAD: the probe failed"
    differ = [kind for kind, (stride, told) in sizes.items() if told not in (-1, stride)]
    if sizes[5][0] != 40 or sizes[10][0] < 176:
        return f"BAD: API record {sizes[5][0]}, kernel record {sizes[10][0]}"
    return f"BAD: GetStructSize differs for {differ}" if differ else f"good: kernel {sizes[10][0]}, API {sizes[5][0]}"


@point("4 threads", "Which threads ask for buffers and hand them back; per-thread buffers", 60)
def threads(m):
    done = m.probe("threads")
    if done.code != 0:
        return "BAD: the probe failed"
    kernels = numbers(done.says("after flush 1")[0])[3]
    return f"{'good' if kernels == 2000 else 'BAD'}: {kernels} of 2000 kernels; asked for on {done.says('threads that asked for buffers')[0]} threads"


@point("5 injection", "Is CUDA_INJECTION64_PATH, set by our constructor, honoured (static cudart)?", 60)
def injection(m):
    program = m.build / "samples" / ("none" if m.simulated else "static") / "saxpy"
    if not program.exists():
        return "not run: no sample was built (nvcc)"
    done, traces = m.under_kprof("static", program, schedule=None, plain=True)
    if done.code != 0 or len(traces) != 1:
        m.complain(done)
        return "BAD: no trace of a program with static cudart"
    n = len(gpufacts.of(facts.load(traces[0]), "kernel"))
    return f"{'good' if n == 5 else 'BAD'}: {n} of 5 kernels"


@point("6 endings", "Exit with work pending, os._exit, SIGTERM, forked DataLoader workers: what is kept, does anything hang?", 180)
def endings(m):
    bad, expected = [], {"exit": (0,), "_exit": (0,), "sigterm": (-signal.SIGTERM, 128 + signal.SIGTERM), "raise": (7,), "forked": (0,)}
    for how, codes in expected.items():
        done, traces = m.under_kprof(f"ending-{how}", m.python, PROGRAMS / "endings.py", how, schedule=None, seconds=45)
        if not traces:
            m.run(m.kprof, "recover", m.folder / f"ending-{how}")
            traces = sorted((m.folder / f"ending-{how}").glob("*.pt.trace.json*"))
            m.see(f"{how}: recovered")
        kernels = sum(len(gpufacts.of(facts.load(t), "kernel")) for t in traces)
        m.see(f"{how}: exit {done.code} after {done.seconds:.1f} s, {len(traces)} traces, {kernels} kernels")
        if done.code not in codes or (how not in ("sigterm", "_exit") and not kernels):  # those lose what CUPTI still had
            m.complain(done, 4)
            bad.append(how)
    return f"BAD: {bad}" if bad else "good"


@point("7 launches", "What does each kind cost a launch?", 60, alone=True)
def launch_cost(m):
    done = m.probe("launch-cost")
    if done.code != 0:
        return "BAD: the probe failed"
    cost = {line.split(": ")[0]: int(line.split(": ")[1]) for line in done.out.splitlines() if line.startswith("ns a launch")}
    base = cost["ns a launch, nothing enabled"]
    return "seen: " + ", ".join(f"{name[13:]} +{ns - base}" for name, ns in cost.items() if ns != base) + f" ns on {base}"


@point("8 clock", "CUPTI's clock against the host's; kernels after long idle", 60, alone=True)
def clock(m):
    done = m.probe("clock", "--idle", 2 if m.simulated else 20)
    if done.code != 0:
        return "BAD: the probe failed"
    early = [line for line in done.out.splitlines() if line.startswith("kernel") and min(numbers(line.split(": ", 1)[1])[:2]) < 0]
    return f"BAD: outside its launch and wait: {early}" if early else "good: every kernel lies between its launch and its wait"


@point("9 thread-id", "What is the threadId of an API record?", 30)
def thread_id(m):
    done = m.probe("thread-id")
    said = done.says("threadId")
    return f"seen: {said[0].split('it is the ')[-1]}" if said and "it is the" in said[0] else "BAD: no answer"


@point("10 subscriber", "Activities beside a subscriber (older torch subscribes eagerly)", 90)
def subscriber(m):
    done = m.probe("subscriber")
    ran, traces = m.under_kprof("subscribed", m.python, PROGRAMS / "subscribed.py", m.cupti or "libcupti.so.13", schedule=None)
    kernels = sum(len(gpufacts.of(facts.load(t), "kernel")) for t in traces)
    m.see(f"libkprof beside a subscriber: exit {ran.code}, {kernels} kernels")
    if ran.code != 0 or done.code != 0:
        m.complain(ran)
        return "BAD: the program or the probe failed"
    return f"seen: second subscription answers {done.says('subscribe again')[0]}, {kernels} kernels traced beside one"


@point("11 filters", "Is a single call recorded without its kind, does its kind override it, and is nothing asked for after a window?", 90)
def filters(m):
    done = m.probe("filters")
    if done.code != 0:
        return "BAD: the probe failed"
    counts = [int(line.split(": ")[1]) for line in done.out.splitlines() if line.startswith("records of 100 launches")]
    ran, traces = m.under_kprof("filters", m.python, E2E / "training.py", "--parts", "mlp", "--steps", 420, schedule="wait=200,warmup=1,active=1,repeat=2")
    if ran.code != 0 or len(traces) != 2:
        m.complain(ran)
        return "BAD: the program failed, or left no two traces"
    asked = facts.load(traces[-1])["kprof_gpu"].get("requests_after_disarm")
    m.see(f"buffers asked for between two windows of a training, but for one a thread: {asked}")
    if counts:
        none, singly, kind_off, without, kind_on, alone, disabled = counts
        m.see(f"recorded singly, without their kind: {'yes, as the header says' if singly >= 100 else 'no'}")
        if none or disabled or kind_off or without >= 100 or kind_on < 100 or not 100 <= alone <= kind_on:
            return f"BAD: not what libkprof counts on: {counts} records"
    return "good: calls can be left out of their kind, and nothing is asked for after a window" if asked == "0" else f"BAD: {asked} buffers asked for after a window"
