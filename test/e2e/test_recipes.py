# SPDX-License-Identifier: Apache-2.0
"""docs/howto/launchers.md: its own commands are run as they stand, but for the folders /opt/kprof and /mnt; what no test runs says so there."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
import yaml

import facts
import harness

PAGE = harness.ROOT / "docs/howto/launchers.md"
PLACES = {"/opt/kprof": "opt/kprof", "/mnt": "mnt"}
TRAINING = """
import os, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("loaded", {line.split()[-1] for line in open("/proc/self/maps") if "libstdc++" in line})
print("user", os.getuid(), [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")])
"""
NO_TORCH = """
import ctypes
k = ctypes.CDLL(None)
k.kprof_start(), k.kprof_range_push(b"a step"), k.kprof_range_pop(), k.kprof_stop()
"""
KILLED = NO_TORCH.rsplit(",", 1)[0] + "\nimport os\nos.kill(os.getpid(), 9)\n"
SRUN = """#!{python}
import os, subprocess, sys
words, env, count = sys.argv[1:], dict(os.environ, SLURM_NTASKS="2"), 2
if words[0] == "--ntasks-per-node=1":  # the test has a single node
    count = int(words.pop(0)[-1])
if words[0].startswith("--export=ALL,"):
    env.update(pair.split("=", 1) for pair in words.pop(0)[len("--export=ALL,"):].split(","))
tasks = [subprocess.Popen(words, env=dict(env, SLURM_PROCID=str(n), SLURM_LOCALID=str(n))) for n in range(count)]
sys.exit(max(task.wait() for task in tasks))
"""


def sections():
    return dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))


def blocks(heading):
    """The indented texts of a section."""
    return [textwrap.dedent(text).strip() + "\n" for text in re.findall(r"(?:^    .*\n|^\n(?=    ))+", sections()[heading], re.M)]


@pytest.fixture
def room(tmp_path):
    """A folder with /opt/kprof, /mnt and the programs that the page takes for granted."""
    for name, product in (("bin/kprof", harness.KPROF), ("lib/libkprof.so", harness.LIBRARY)):
        (tmp_path / "opt/kprof" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(product, tmp_path / "opt/kprof" / name)
    (tmp_path / "mnt/traces").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bin/kprof").write_text(f'#!/bin/sh\nexec "{tmp_path}/opt/kprof/bin/kprof" "$@"\n')
    (tmp_path / "bin/srun").write_text(SRUN.format(python=sys.executable))
    for path in (tmp_path / "bin").iterdir():
        path.chmod(0o755)
    (tmp_path / "train.py").write_text(TRAINING)
    return tmp_path


def placed(room, text):
    for place, here in PLACES.items():
        text = re.sub(rf"(?<![\w/]){place}\b", str(room / here), text)
    return text


def environment(room, **more):
    return harness.clean_environment(PATH=f"{room}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}", **more)


def run(room, text, folder="traces", **env):
    return harness.Run(["bash", "-ec", placed(room, text)], room / folder, environment(room, **env), harness.LONG, cwd=room).ok()


def ranks(done):
    assert all(line.startswith("kprof: wrote ") and " 0 dropped)" in line for line in done.said), done.explain()
    return sorted(facts.load(path)["distributedInfo"]["rank"] for path in done.traces)


def test_each_recipe_is_run_here_or_says_who_ran_it():
    source = (harness.ROOT / "test/e2e/test_recipes.py").read_text()
    for heading, text in sections().items():
        asked = f'"{heading}"' in source
        told = re.search(r"\bnot\s+run\b", text) or [name for name in re.findall(r"`(test/e2e/\w+\.py|scripts/check-recipes)\b", text) if (harness.ROOT / name).exists()]
        assert asked or told, heading


def test_the_environment_alone(room):
    (room / "train.py").write_text(NO_TORCH)
    done = run(room, blocks("One folder for all of them")[1])
    assert "a step" in done.out and len(done.traces) == 1, done.explain()


@pytest.mark.parametrize("heading", ("torchrun", "accelerate launch"))
def test_a_launcher_of_ranks(room, heading):
    harness.needs("accelerate")
    (room / "train.py").write_text(NO_TORCH)
    done = run(room, blocks(heading)[0])
    assert ranks(done) == [0, 1] and "a step" in done.out, done.explain()


@pytest.mark.parametrize("which", (0, 1))
def test_slurm(room, which):
    (room / "train.py").write_text(NO_TORCH)
    done = run(room, blocks("Slurm")[which], "traces/7", SLURM_JOB_ID="7")
    assert ranks(done) == [0, 1] and all("_r" in path.name for path in done.traces), done.explain()


def test_slurm_brings_what_killed_tasks_left_on_a_node(room):
    """The page's epilog: spools of the node's own disk become traces in the folder that all see."""
    job = f"test{os.getpid()}"
    local = pathlib.Path(f"/tmp/kprof-{job}")
    (room / "train.py").write_text(KILLED)
    try:
        text = blocks("Slurm")[0].replace("kprof run", f"kprof run --spool-dir {local}")
        killed = harness.Run(["bash", "-ec", placed(room, text)], room / "traces" / job, environment(room, SLURM_JOB_ID=job), harness.LONG, cwd=room)
        assert killed.code != 0 and not killed.traces and len(list(local.glob("*.kprof"))) == 2, killed.explain()
        done = run(room, blocks("Slurm")[2], f"traces/{job}", SLURM_JOB_ID=job)
        assert ranks(done) == [0, 1] and not list(local.glob("*.kprof")), done.explain()
    finally:
        shutil.rmtree(local, ignore_errors=True)


def test_settings_of_places_are_settings():
    known = {row["name"] for row in json.loads(harness.cli("config", "--json").stdout)["settings"]}
    named = set(re.findall(r"KPROF_\w+", sections()["Where its files lie"]))
    assert {"KPROF_DIR", "KPROF_SPOOL_DIR"} < named <= known


def confined(room, command, env, writable):
    """The command as user 1000 with no capability, where nothing can be written but some folders."""
    mounts = "".join(f'mount --bind "{room}/{name}" "{room}/{name}"; ' for name in writable)
    outer = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    words = [*outer, "sh", "-ec", f'{mounts}mount -o remount,bind,ro /; cd "{room}"; exec "$@"', "sh",
             "unshare", "--user", "--map-user=1000", "--map-group=1000", *command]
    done = harness.Run(words, room / "mnt/traces", environment(room, **env), harness.LONG)
    if re.match(r"(unshare|mount): ", done.err):
        pytest.skip(f"namespaces are refused here: {done.err.strip()}")
    return done.ok()


def test_a_read_only_root(room):
    (room / "train.py").write_text(NO_TORCH)
    command = placed(room, blocks("Read-only roots")[0])
    done = confined(room, ["sh", "-c", command], {}, ["mnt/traces"])
    assert len(done.traces) == 1 and len(done.said) == 1, done.explain()
    done = confined(room, ["sh", "-c", "kprof run -- python train.py && ! touch x"], {}, ["mnt/traces"])
    assert "nothing is recorded: no file " in done.err and "Read-only file system" in done.err, done.explain()


def test_kubernetes(room):
    spec = yaml.safe_load(blocks("Kubernetes")[0])["spec"]
    (init,), (container,) = spec["initContainers"], spec["containers"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    for part in (init, container):
        for mount in part["volumeMounts"]:
            assert mount["name"] in volumes
            (room / mount["mountPath"].lstrip("/")).mkdir(exist_ok=True)
    harness.Run([placed(room, word) for word in init["command"]], room, environment(room), harness.LONG).ok()
    assert spec["securityContext"]["runAsUser"] == 1000 and container["securityContext"]["readOnlyRootFilesystem"]
    env = {one["name"]: placed(room, one["value"]) for one in container["env"]}
    writable = [str(mount["mountPath"]).lstrip("/") for mount in container["volumeMounts"] if not mount.get("readOnly")]
    done = confined(room, container["command"], dict(env, TMPDIR=room / "tmp"), writable)
    assert "user 1000 ['0000000000000000']" in done.out, done.explain()
    assert len(done.traces) == 1 and done.closing[1] == 3 and done.closing[3] == 0, done.explain()
    for line in blocks("Kubernetes")[1].splitlines():
        words = placed(room, line).split(" -- ")[1]
        said = subprocess.run(words, shell=True, capture_output=True, text=True, env=environment(room))
        assert said.returncode == 0 or "ctl" in words and "no process" in said.stderr, said.stderr


def test_apparmor_understands_the_lines():
    parser = shutil.which("apparmor_parser") or shutil.which("/usr/sbin/apparmor_parser")
    if not parser:
        pytest.skip("no apparmor_parser here")
    profile = "abi <abi/3.0>,\n#include <tunables/global>\nprofile train /opt/python {\n%s}\n" % blocks("AppArmor")[0]
    done = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", "--skip-read-cache"], input=profile, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_environment_with_libraries_of_its_own(room):
    """As conda's: its libstdc++, libgcc_s and libgomp come before those of the system."""
    lib = room / "env/lib"
    lib.mkdir(parents=True)
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"):
        found = re.search(rf"{re.escape(name)} .*x86-64.* => (\S+)|{re.escape(name)} .*AArch64.* => (\S+)", cache)
        if found:
            shutil.copy(found[1] or found[2], lib / name)
    done = run(room, blocks("conda")[0].splitlines()[1], LD_LIBRARY_PATH=lib)
    assert f"{lib}/libstdc++.so.6" in done.out and done.closing[1] == 3 and done.closing[3] == 0, done.explain()
