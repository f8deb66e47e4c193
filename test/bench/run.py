# SPDX-License-Identifier: Apache-2.0
"""What libkprof costs, each figure beside torch.profiler's or beside the program alone, measured in turns in one run.

usage: run.py [--quick] [--only WORD] [--json FILE]     exit 1 when a figure is over its limit
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("KPROF_BUILD", HERE.parent.parent / "build"))
PYTHON = os.environ.get("KPROF_PYTHON", sys.executable)
LIBRARY, KPROF = BUILD / "libkprof.so", BUILD / "kprof"
EMPTY_PROFILE = BUILD / platform.machine() / "test" / "bench" / "libempty_profile.so"
FIGURES = []


def environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF", "LD_PRELOAD"))}
    env.update(OMP_NUM_THREADS="1", **{k: str(v) for k, v in settings.items()})
    return env


def figure(name, value, limit, unit, detail):
    FIGURES.append({"name": name, "value": value, "limit": limit, "unit": unit, "detail": detail})
    verdict = "ok" if value <= limit else "OVER"
    print(f"{name:62s} {value:9.3f} {unit:8s} limit {limit:<6g} {verdict:5s} {detail}", flush=True)


def inside(folder, *args, export="none", program="inside.py", **settings):
    env = environment(**{"LD_PRELOAD": LIBRARY, "KPROF_DIR": folder, "KPROF_STEP": "api", "KPROF_SCHEDULE": "wait=2,warmup=0,active=1",
                         "KPROF_EXPORT": export, "KPROF_MAX_MB": 4096, **settings})
    done = subprocess.run([PYTHON, HERE / program, *map(str, args)], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"bench: {args}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def per_op(quick):
    rounds, count = (5, 20000) if quick else (15, 40000)
    for name, limit, args, settings in (("added time per op, bare", 0.35, (), {}),
                                        ("added time per op, with shapes", 0.30, ("shapes",), {"KPROF_RECORD_SHAPES": 1})):
        with tempfile.TemporaryDirectory() as folder:
            said = inside(folder, "ops", rounds, count, *args, **settings)
        figure(name, said["added ratio"], limit, "x", "ns per op: alone %(alone).0f, libkprof %(ours).0f, torch.profiler %(theirs).0f; fastest third: %(added ratio of the fastest third).3f" % said)


def training(quick):
    """An op of a real training beside an empty callback, of which torch's part is the floor: with inputs torch makes a list of them."""
    for name, floor, shapes in (("bare", "empty", 0), ("with shapes", "empty with inputs", 1)):
        with tempfile.TemporaryDirectory() as folder:
            said = inside(folder, 20 if quick else 80, EMPTY_PROFILE, program="training.py", KPROF_SCHEDULE="none", KPROF_RECORD_SHAPES=shapes)
        more = {"more": said["ours"] - said[floor], "low": said["ours low"] - said[floor + " low"]}
        figure(f"training: added per op, {name}, beside an empty callback", said["ours"] / said[floor], 2.0, "x",
               "ns per op: alone %.0f, an empty callback adds %.0f" % (said["alone"], said["empty"])
               + (", with inputs %.0f" % said[floor] if shapes else "") + ", libkprof %(more).0f more (fastest third: %(low).0f)" % more)


def stacks(quick):
    """Beside torch.profiler with with_stack=True, two ratios each: of all that the program waits for (torch.profiler's stop() and export come
    on top of its own, our step that ends the window on top of ours), and of what is added while it runs. The second holds CPython's
    own part, the same in both, which is said beside it; its limits only tell when ours grows (docs/decisions/025-python-cost.md)."""
    rounds, count = (30, 2000) if quick else (100, 3000)
    text = "ns: alone %(alone).0f; added by libkprof %(ours).0f, by torch.profiler %(theirs).0f; with the end %(ours whole).0f and %(theirs whole).0f"
    inputs = {"KPROF_RECORD_SHAPES": 1, "KPROF_PROFILE_MEMORY": 1}
    kinds = (("per Python call", "call", 0.35, 0.75, 1, {}), ("per call of a C function", "c_call", 0.35, 0.75, 1, {}),
             ("per op, shapes+memory+stack", "op:shapes:memory", 0.30, 0.30, 1, inputs), ("per op, stack", "op", 0.30, 0.45, 1, {}),
             ("per op, shapes+memory, stacks of ops alone", "op:shapes:memory", 0.30, 0.30, "ops", inputs),
             ("per op, stacks of ops alone", "op", 0.30, 0.30, "ops", {}))
    for name, kind, limit, limit_running, how, settings in kinds:
        with tempfile.TemporaryDirectory() as folder:
            said = inside(folder, rounds, count, EMPTY_PROFILE, kind, program="stacks.py", KPROF_WITH_STACK=how, KPROF_SCHEDULE="wait=1,warmup=0,active=1",
                          **settings)[kind]
        figure(f"{name}, running+stop+export", said["whole"], limit, "x", text % said)
        figure(f"{name}, running", said["running"], limit_running, "x",
               "CPython with an empty profile function: %(floor).0f ns, %(cpython).3f" % said if how == 1 else "")


def step_that_ends(quick):
    with tempfile.TemporaryDirectory() as folder:
        said = inside(folder, "step", 4 if quick else 10, 6, export="trace")
    figure("step that ends a cycle, longest", said["ours"], 1.0, "ms",
           "%(ops)d ops; median %(ours median).3f ms; torch.profiler %(theirs).1f ms" % said)
    return said["their ns per op"]


def record(folder, turns):
    """A training that leaves its spool: the spool, and the ops in it."""
    env = environment(LD_PRELOAD=LIBRARY, KPROF_DIR=folder, KPROF_EXPORT="none")
    done = subprocess.run([PYTHON, HERE / "inside.py", "train", str(turns)], env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return next(pathlib.Path(folder).glob("*.kprof")), int(re.search(r"(\d+) events", done.stderr).group(1))


def spool_and_export(quick, their_stop):
    """Slopes between a small and a large run: start-up costs and fixed parts drop out."""
    small, large = (100, 400) if quick else (200, 1000)
    ops, sizes, times = {}, {}, {}
    for turns in (small, large):
        with tempfile.TemporaryDirectory() as folder:
            spool, ops[turns] = record(folder, turns)
            sizes[turns] = spool.stat().st_size
            copy, best = spool.with_name("copy.kprof"), []
            spool.rename(copy)
            for _ in range(3):
                shutil.copy(copy, spool)
                begin = time.perf_counter()
                subprocess.run([KPROF, "export", spool], check=True, capture_output=True, env=environment(KPROF_DIR=folder))
                best.append(time.perf_counter() - begin)
            times[turns] = min(best)
    more = ops[large] - ops[small]
    figure("spool bytes per op, without shapes", (sizes[large] - sizes[small]) / more, 48, "bytes", f"{sizes[large]} bytes for {ops[large]} ops")
    ours = (times[large] - times[small]) / more * 1e9
    figure("export per op, not on the training thread", ours / 1000, 0.75, "us", f"gzip; torch.profiler's stop and export, plain, in this run: {their_stop / 1000:.2f} us")


WAITING = {"alone": None, "waiting": {}, "with KPROF_HANG": {"KPROF_HANG": "300s"}, "with KPROF_CONTROL": {"KPROF_CONTROL": "1"}}


def waiting(quick):
    """Fastest loop of each process, in turns; the library is loaded, a schedule waits for step 10^6."""
    runs, count = (4, 100000) if quick else (12, 200000)
    best = {which: [] for which in WAITING}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(runs):
            for which in list(WAITING)[::-1 if number % 2 else 1]:
                loaded = {"LD_PRELOAD": LIBRARY, "KPROF_SCHEDULE": "wait=1000000,warmup=1,active=1", "KPROF_DIR": folder}
                settings = {} if WAITING[which] is None else loaded | WAITING[which]
                done = subprocess.run([PYTHON, HERE / "inside.py", "wait", "15", str(count)], env=environment(**settings), capture_output=True,
                                      text=True, check=True, stdin=subprocess.DEVNULL)
                best[which].append(json.loads(done.stdout)["alone"])
    alone = min(best["alone"])
    for which in list(WAITING)[1:]:
        ours = min(best[which])
        figure(f"loaded and {which.replace('with', 'waiting with')}, beside not loaded", (ours / alone - 1) * 100, 1.0, "%",
               f"ns per op: {alone:.1f} and {ours:.1f}; medians {statistics.median(best['alone']):.1f} and {statistics.median(best[which]):.1f}")


RING = {"waiting": {"KPROF_SCHEDULE": "wait=1000000,warmup=1,active=1"}, "window": {"KPROF_SCHEDULE": "active=1000000"}, "ring": {"KPROF_RING": "30s"}}


def ring(quick):
    """The fastest step of processes in turns, in the thread's own time: a ring beside one that waits, and beside a window that records all."""
    runs, seconds = (3, 3) if quick else (5, 4)
    for kind in ("transformer", "encoder", "resnet"):
        seen = {which: [] for which in RING}
        for number in range(runs):
            for which in list(RING)[::-1 if number % 2 else 1]:
                with tempfile.TemporaryDirectory() as folder:
                    env = environment(LD_PRELOAD=LIBRARY, KPROF_DIR=folder, KPROF_EXPORT="none", **RING[which])
                    done = subprocess.run([PYTHON, HERE / "ring.py", kind, str(seconds)], env=env, capture_output=True, text=True,
                                          check=True, stdin=subprocess.DEVNULL)
                    seen[which].append(json.loads(done.stdout))
        ms = {which: min(one["own"] for one in all_runs) for which, all_runs in seen.items()}
        medians = {which: statistics.median(one["clock median"] for one in all_runs) for which, all_runs in seen.items()}
        detail = ", ".join(f"{which} {ms[which]:.2f} (clock, median {medians[which]:.2f})" for which in RING)
        figure(f"ring: {kind}, beside waiting", (ms["ring"] / ms["waiting"] - 1) * 100, 10, "%", f"ms a step: {detail}")
        figure(f"ring: {kind}, beside a window", (ms["ring"] / ms["window"] - 1) * 100, 3, "%", "")


def heap(quick):
    """Pairs of malloc and free, by a program that tells its own processor time; heaptrack's part that runs beside it is not counted."""
    program = BUILD / "bench_heap"
    subprocess.run(["gcc", "-O2", "-o", program, HERE / "bench_heap.c"], check=True)
    turns, pairs = (3, 500_000) if quick else (7, 2_000_000)
    ways = {"alone": [], "0": [], "count": [], "trace": [], "heaptrack": []}
    for _ in range(turns):
        for way, seen in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                ours = {"LD_PRELOAD": LIBRARY, "KPROF_MALLOC": way, "KPROF_DIR": folder, "KPROF_EXPORT": "none"} if way not in ("alone", "heaptrack") else {}
                if way == "heaptrack" and not shutil.which("heaptrack"):
                    continue
                command = (["heaptrack", "-o", f"{folder}/ht"] if way == "heaptrack" else []) + [program, str(pairs), "10"]
                said = subprocess.run(command, env=environment(**ours), capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
            seen.append(float(re.search(r"^\d+\.\d+$", said, re.M).group()))
    ns = {way: statistics.median(seen) for way, seen in ways.items() if seen}
    detail = "ns a pair: " + ", ".join(f"{way} {value:.1f}" for way, value in ns.items())
    figure("heap: added per pair, KPROF_MALLOC=0", ns["0"] - ns["alone"], 1, "ns", detail)
    figure("heap: added per pair, KPROF_MALLOC=count", ns["count"] - ns["alone"], 60, "ns", detail)
    if "heaptrack" in ns:
        figure("heap: a traced pair, beside heaptrack", ns["trace"] / ns["heaptrack"], 0.5, "x", detail)


def start_up(name, command, runs, limit):
    taken = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        plain, loaded = environment(), environment(LD_PRELOAD=LIBRARY, KPROF_DIR=folder)
        for number in range(2 * runs + 2):
            with_library = number % 4 in (1, 2)
            begin = time.perf_counter()
            subprocess.run(command, env=loaded if with_library else plain, check=True, stdin=subprocess.DEVNULL, capture_output=True)
            if number > 1:
                taken[with_library].append((time.perf_counter() - begin) * 1e3)
    alone, ours = (statistics.mean(sorted(taken[key])[:max(1, runs // 3)]) for key in (False, True))
    figure(f"start-up: {name}", ours - alone, limit, "ms",
           f"fastest third {alone:.1f} and {ours:.1f} ms; medians {statistics.median(taken[False]):.1f} and {statistics.median(taken[True]):.1f} ms")


def live_table(quick):
    """A pair of allocation and free with and without KPROF_ON_OOM, in turns: the fastest of many short loops."""
    best = {}
    for turn in range(2 if quick else 4):
        for how, setting in (("alone", "0"), ("told", "dump")):
            with tempfile.TemporaryDirectory() as folder:
                said = inside(folder, program="live_blocks.py", KPROF_SCHEDULE="none", KPROF_ON_OOM=setting)
            best[how] = {depth: min(ns, best.get(how, {}).get(depth, ns)) for depth, ns in said.items()}
    for depth in best["alone"]:
        added = best["told"][depth] - best["alone"][depth]
        figure(f"live table (KPROF_ON_OOM), {depth} frames", added, 60, "ns", f"a pair alone {best['alone'][depth]:.0f} ns")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    for product in (LIBRARY, KPROF, EMPTY_PROFILE):
        if not product.exists():
            sys.exit(f"bench: {product} is missing: run make")
    quick, only = options.quick, options.only
    if only in "ops":
        per_op(quick)
    if only in "training":
        training(quick)
    if only in "stacks":
        stacks(quick)
    if only in "step export":
        their_stop = step_that_ends(quick)
        if only in "export":
            spool_and_export(quick, their_stop)
    if only in "heap":
        heap(quick)
    if only in "live":
        live_table(quick)
    if only in "waiting":
        waiting(quick)
    if only in "ring":
        ring(quick)
    if only in "start":
        start_up("/bin/true", ["/bin/true"], 20 if quick else 200, 5)
        start_up("import torch", [PYTHON, "-c", "import torch"], 4 if quick else 15, 30)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(FIGURES, indent=1))
    over = [item["name"] for item in FIGURES if item["value"] > item["limit"]]
    print(f"{len(FIGURES)} figures, {len(over)} over the limit" + (": " + "; ".join(over) if over else ""))
    sys.exit(1 if over or not FIGURES else 0)


main()
