# SPDX-License-Identifier: Apache-2.0
"""What a recorded step of a small training takes: alone, under libkprof and under torch.profiler, in turns.

whole_steps.py ROUNDS LIBRARY [--shapes]: prints the added time as a part of torch.profiler's, in the thread's own time: the clock has other programs' in it.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, WARM = 60, 20


def train(kind, shapes):
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64)) for _ in range(10)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batch, took = torch.randn(32, 64), []
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=shapes, schedule=torch.profiler.schedule(
        wait=0, warmup=WARM - 1, active=STEPS, repeat=1)) if kind == "torch" else None
    if profiler:
        profiler.start()
    for step in range(WARM + STEPS - 1):
        begin = time.thread_time()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if step >= WARM:
            took.append(time.thread_time() - begin)
        if profiler:
            profiler.step()
    print(json.dumps(statistics.median(took)), flush=True)
    os._exit(0)


def run(kind, library, shapes):
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        if kind == "kprof":
            env.update(LD_PRELOAD=library, KPROF_DIR=folder, KPROF_LOG="none", KPROF_SCHEDULE=f"wait=0,warmup={WARM - 1},active={STEPS},repeat=1")
            env.update({"KPROF_RECORD_SHAPES": "1"} if shapes else {})
        said = subprocess.run([sys.executable, __file__, kind, str(int(shapes))], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return json.loads(said.stdout)


def main():
    rounds, library, shapes = int(sys.argv[1]), os.path.abspath(sys.argv[2]), "--shapes" in sys.argv
    kinds = ("alone", "kprof", "torch")
    found = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(run(kind, library, shapes))
    ms = [1e3 * min(found[kind]) for kind in kinds]
    print(f"a step: {ms[0]:.3f} ms alone, {ms[1]:.3f} with libkprof, {ms[2]:.3f} with torch.profiler: added {(ms[1] - ms[0]) / (ms[2] - ms[0]):.2f}")


if sys.argv[1] in ("alone", "kprof", "torch"):
    train(sys.argv[1], sys.argv[2] == "1")
main()
