#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""heap_counts - how many blocks of one program the kernel, heaptrack and KPROF_MALLOC count

usage: heap_counts.py PYTHON [NAME ...]        as root, with perf, heaptrack and a build in build/

PYTHON has torch and numpy. The kernel counts by a uprobe on each function of libc that gives blocks, so it is the
judge: a realloc of NULL, which libc passes on to malloc, counts once. All three programs see an environment of the
same size, as Python keeps a block for each variable. heaptrack's library brings libstdc++, so what the loader takes
for that later is missing there.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "libkprof.so"
TRACING = pathlib.Path("/sys/kernel/tracing")
HEAPTRACK = pathlib.Path("/usr/lib/heaptrack")
PROBES = {"malloc": ("", ""), "calloc": ("", ""), "realloc": ("old=%di:u64 size=%si:u64", "old != 0 && size != 0"),
          "memalign": ("at=%di:u64", "at > 16"), "posix_memalign": ("at=%si:u64", "at > 16")}
GROUP = "kprof_heap_counts"
STEPS = """import torch
torch.manual_seed(0); torch.set_num_threads(1)
m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(20):
    o.zero_grad(); m(torch.randn(16, 64)).sum().backward(); o.step()
"""


def programs(python, folder):
    steps = folder / "steps.py"
    steps.write_text(STEPS)
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "import torch, 20 steps": ([python, steps], {}),
        "the same, KPROF_ACTIVITIES=cuda": ([python, steps], {"KPROF_ACTIVITIES": "cuda"}),
        "import torch": ([python, "-c", "import torch"], {}),
        "import numpy": ([python, "-c", "import numpy"], {}),
        "ctypes.CDLL(libtorch_cpu.so)": ([python, "-c", f"import ctypes; ctypes.CDLL('{site}/torch/lib/libtorch_cpu.so')"], {}),
        "perl, six XS modules": (["perl", "-MPOSIX", "-MSocket", "-MEncode", "-MStorable", "-MData::Dumper", "-MTime::HiRes", "-e", "1"], {}),
    }


def run(command, **env):
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}
    return subprocess.run([str(c) for c in command], env={**kept, **fixed, **{k: str(v) for k, v in env.items()}}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False).stderr


def make_probes():
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    listed = subprocess.run(["nm", "-D", libc], capture_output=True, text=True, check=True).stdout
    at = {m[2]: m[1] for m in re.finditer(r"^(\w+) \w (\w+)@@", listed, re.M)}
    for name, (args, _) in PROBES.items():
        with open(TRACING / "uprobe_events", "r+", encoding="ascii") as events:
            events.write(f"p:{GROUP}/{name} {libc}:0x{at[name]} {args}\n")


def remove_probes():
    for name in PROBES:
        with open(TRACING / "uprobe_events", "r+", encoding="ascii") as events:
            events.write(f"-:{GROUP}/{name}\n")


def kernel(command, env):
    perf = ["perf", "stat", "-x,"]
    for name, (_, only) in PROBES.items():
        perf += ["-e", f"{GROUP}:{name}", *(["--filter", only] if only else [])]
    return sum(int(n) for n in re.findall(rf"^(\d+),,{GROUP}:", run([*perf, "--", *command], **env), re.M))


def heaptrack(command, env, folder):
    raw = folder / "raw"
    run(command, **env, LD_PRELOAD=HEAPTRACK / "libheaptrack_preload.so", DUMP_HEAPTRACK_OUTPUT=raw)  # it takes both out of the environment
    with open(raw, "rb") as file:
        said = subprocess.run([HEAPTRACK / "libexec/heaptrack_interpret"], stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    raw.unlink()
    return int(re.search(r"\tallocations:\s+(\d+)", said)[1])


def ours(command, env, mode):
    said = re.search(r"(\d+) allocations, (\d+) dropped", run(command, **{**env, "KPROF_MALLOC": mode}, LD_PRELOAD=LIBRARY))
    return int(said[1]), int(said[2])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("| program | kernel | heaptrack | count | trace | dropped | count, of the kernel's | of heaptrack's |\n|---|---|---|---|---|---|---|---|")
    make_probes()
    try:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            for name, (command, more) in programs(sys.argv[1], folder).items():
                if sys.argv[2:] and name not in sys.argv[2:]:
                    continue
                env = {"KPROF_MALLOC": "countx", "KPROF_DIR": folder / "out", **more}
                same = {**env, "XX_PRELOAD": LIBRARY}
                judge, theirs = kernel(command, same), heaptrack(command, same, folder)
                (count, lost), (trace, dropped) = ours(command, env, "count"), ours(command, env, "trace")
                print(f"| {name} | {judge} | {theirs} | {count} | {trace} | {lost + dropped} | {count / judge - 1:+.3%} | {count / theirs - 1:+.3%} |", flush=True)
    finally:
        remove_probes()


main()
