# SPDX-License-Identifier: Apache-2.0
"""Starts of all ranks of a job: do all begin with one step, and what do their steps take meanwhile?

usage: ranks.py [--ranks 8] [--starts 100] [--kills 20] [--quiet 20]

The ranks step over gloo, each with a pause of its own. In each tenth start one of them stands still for 10 s. In each of
--kills jobs one is killed while a start is under way. Every rank that lives must leave a file of the same steps.
The steps from each start on are compared with those of the same job alone, and with libkprof and no start: how long they
took, how long their thread ran in them, and how often it waited, other than for gloo and in its own pause. With more ranks
than cores the time of a step says how others took the cores; the other two say what libkprof did to it.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402
from test_ranks import Job, steps_of  # noqa: E402

STOPPED, WINDOW = 10, 1.5  # s


def job_begin(folder, ranks, **settings):
    folder.mkdir()
    return Job(folder, ranks, harness.script_command("ranks.py", "until", folder / "end", "2"), **settings)


def start(run):
    process = run.begin("--steps", "2", "--json")
    out, err = process.communicate()
    return json.loads(out or '{"ok":false}'), err.strip()


def meanwhile(run, rank, what, after):
    """A rank is stopped or killed while a start is under way."""
    def act():
        time.sleep(after)
        run.ranks[rank].send_signal(signal.SIGKILL if what == "kill" else signal.SIGSTOP)
        if what == "kill":
            run.ranks[rank].wait()
            return
        time.sleep(STOPPED)
        run.ranks[rank].send_signal(signal.SIGCONT)

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def is_one_step(run, ranks, answer, files):
    """Whether each of the ranks has one file more, of the steps that kprof ctl named."""
    until = time.monotonic() + 120
    while any(len(run.files(rank)) < files for rank in ranks) and time.monotonic() < until:
        time.sleep(0.05)
    want = [answer["begins"], answer["begins"] + 1]
    have = {rank: steps_of(run.files(rank)[-1]) if run.files(rank) else [] for rank in ranks}
    wrong = {rank: steps for rank, steps in have.items() if steps != want or len(run.files(rank)) != files}
    if wrong:
        print(f"  wanted {want}, file {files}; these have others: {wrong}", flush=True)
    return not wrong


def times_of(run):
    """(when, (ms, ms that its thread ran, waits)) of each step of each rank, without the first second's."""
    steps = [[tuple(map(float, line.split())) for line in open(f"{run.last}.{rank}")] for rank in range(len(run.ranks))]
    return [[(began, (took * 1000, ran * 1000, waits)) for began, took, ran, waits in rank if began > rank[0][0] + 1] for rank in steps]


def tell(name, steps):
    for what, values in zip(("took, ms", "ran, ms", "waits"), zip(*steps)):
        q = statistics.quantiles(values, n=1000)
        print(f"  {name:34s} {what:8s} {len(values):7d} steps, median {q[499]:6.2f}, 99 % {q[989]:6.2f}, 99.9 % {q[998]:6.2f}, "
              f"most {max(values):7.2f}", flush=True)


def quiet(folder, args, name, **settings):
    run = job_begin(folder / name.replace(" ", "_"), args.ranks, **settings)
    while any(not pathlib.Path(f"{run.last}.{rank}").exists() for rank in range(args.ranks)):
        time.sleep(0.1)
    time.sleep(2 + args.quiet)
    if any(run.end()):
        sys.exit(f"{name}: {run.err}")
    end = max(rank[-1][0] for rank in times_of(run))
    return [took for rank in times_of(run) for began, took in rank if began > end - args.quiet]


def starts(folder, args):
    run = job_begin(folder / "starts", args.ranks)
    run.wait_for_steps()
    every, good, rounds, took, spans, stops = list(range(args.ranks)), 0, [], [], [], []
    for n in range(args.starts):
        stopped = n % args.ranks if n % 10 == 5 else None
        began = time.monotonic()
        thread = meanwhile(run, stopped, "stop", 0.1 + n % 7 * 0.3) if stopped is not None else None
        answer, err = start(run)
        took.append(time.monotonic() - began)
        if thread:
            thread.join()
        if err or not answer["ok"]:
            print(f"  start {n}: {answer} {err}", flush=True)
        good += answer["ok"] and answer["ranks"] == args.ranks and is_one_step(run, every, answer, n + 1)
        rounds.append(answer.get("rounds", 0))
        (spans if stopped is None else stops).append((began, max(time.monotonic(), began + took[-1] + WINDOW)))
    codes = run.end()
    print(f"{args.starts} starts, {args.ranks} ranks: {good} with all ranks on one step; {sum(r > 1 for r in rounds)} needed more than one "
          f"round; a start took {statistics.median(took):.1f} s (longest {max(took):.1f}); exit codes {set(codes)}", flush=True)
    asking = [step for rank in times_of(run) for began, step in rank if any(begins < began < ends for begins, ends in spans)
              and not any(begins < began + step[0] / 1000 and began < ends for begins, ends in stops)]
    stopped = [step for rank in times_of(run) for began, step in rank if any(begins < began < ends for begins, ends in stops)]
    return good == args.starts, asking, stopped


def kills(folder, args):
    good = 0
    for n in range(args.kills):
        run = job_begin(folder / f"kill{n}", args.ranks)
        run.wait_for_steps()
        rank = n % args.ranks
        thread = meanwhile(run, rank, "kill", 0.1 + n % 10 * 0.1)
        began = time.monotonic()
        answer, err = start(run)
        took = time.monotonic() - began
        thread.join()
        alive = [r for r in range(args.ranks) if r != rank]
        is_good = answer["ok"] and is_one_step(run, alive, answer, 1)
        good += is_good
        print(f"  killed rank {rank} after {0.1 + n % 10 * 0.1:.1f} s: {is_good}, {took:.1f} s, {answer} {err}", flush=True)
        run.end()
        shutil.rmtree(run.folder)
    print(f"{args.kills} starts with a rank killed meanwhile: {good} with all others on one step", flush=True)
    return good == args.kills


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("ranks", 8), ("starts", 100), ("kills", 20), ("quiet", 20)):
        p.add_argument(f"--{name}", type=int, default=value)
    args = p.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, ok = pathlib.Path(name), True
        if args.starts:
            alone = quiet(folder, args, "alone", LD_PRELOAD="")
            idle = quiet(folder, args, "no start")
            ok, asking, stopped = starts(folder, args)
            tell("alone", alone)
            tell("libkprof, KPROF_CONTROL=1, no start", idle)
            tell("starts, 1.5 s from each on", asking)
            if stopped:
                tell("starts, one rank stopped for 10 s", stopped)
        ok = (not args.kills or kills(folder, args)) and ok
    sys.exit(not ok)


if __name__ == "__main__":
    main()
