# SPDX-License-Identifier: Apache-2.0
"""What libkprof costs, each figure beside torch.profiler's or beside the program alone, measured in turns in one run.

usage: run.py [--quick] [--only WORD] [--json FILE]     exit 1 when a figure is over its limit
"""
import argparse
import json
import os
import pathlib
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
FIGURES = []


def environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF", "LD_PRELOAD"))}
    env.update(OMP_NUM_THREADS="1", **{k: str(v) for k, v in settings.items()})
    return env


def figure(name, value, limit, unit, detail):
    FIGURES.append({"name": name, "value": value, "limit": limit, "unit": unit, "detail": detail})
    verdict = "ok" if value <= limit else "OVER"
    print(f"{name:46s} {value:9.3f} {unit:8s} limit {limit:<6g} {verdict:5s} {detail}", flush=True)


def inside(folder, *args, export="none", **settings):
    env = environment(LD_PRELOAD=LIBRARY, KPROF_DIR=folder, KPROF_STEP="api", KPROF_SCHEDULE="wait=2,warmup=0,active=1",
                      KPROF_EXPORT=export, KPROF_MAX_MB=4096, **settings)
    done = subprocess.run([PYTHON, HERE / "inside.py", *map(str, args)], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
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
    return next(pathlib.Path(folder).glob("*.kprof")), int(re.search(r"(\d+) ops", done.stderr).group(1))


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


def waiting(quick):
    """Fastest loop of each process, in turns; the library is loaded, a schedule waits for step 10^6."""
    runs, count = (4, 100000) if quick else (12, 200000)
    best = {"alone": [], "waiting": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 * runs):
            which = ("alone", "waiting", "waiting", "alone")[number % 4]
            settings = {"LD_PRELOAD": LIBRARY, "KPROF_SCHEDULE": "wait=1000000,warmup=1,active=1", "KPROF_DIR": folder} if which == "waiting" else {}
            done = subprocess.run([PYTHON, HERE / "inside.py", "wait", "15", str(count)], env=environment(**settings), capture_output=True, text=True,
                                  check=True, stdin=subprocess.DEVNULL)
            best[which].append(json.loads(done.stdout)["alone"])
    alone, loaded = (min(best[which]) for which in ("alone", "waiting"))
    figure("loaded and waiting, beside not loaded", (loaded / alone - 1) * 100, 1.0, "%", f"ns per op: {alone:.1f} and {loaded:.1f}; "
           f"medians {statistics.median(best['alone']):.1f} and {statistics.median(best['waiting']):.1f}")


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    for product in (LIBRARY, KPROF):
        if not product.exists():
            sys.exit(f"bench: {product} is missing: run make")
    quick, only = options.quick, options.only
    if only in "ops":
        per_op(quick)
    if only in "step export":
        their_stop = step_that_ends(quick)
        if only in "export":
            spool_and_export(quick, their_stop)
    if only in "waiting":
        waiting(quick)
    if only in "start":
        start_up("/bin/true", ["/bin/true"], 20 if quick else 200, 5)
        start_up("import torch", [PYTHON, "-c", "import torch"], 4 if quick else 15, 30)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(FIGURES, indent=1))
    over = [item["name"] for item in FIGURES if item["value"] > item["limit"]]
    print(f"{len(FIGURES)} figures, {len(over)} over the limit" + (": " + "; ".join(over) if over else ""))
    sys.exit(1 if over or not FIGURES else 0)


main()
