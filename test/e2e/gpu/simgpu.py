# SPDX-License-Identifier: Apache-2.0
"""Runs programs on the simulated GPU: alone, under torch.profiler, under libkprof."""
import json
import os
import pathlib
import subprocess

import harness

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
FOLDER = harness.BUILD / "simgpu"
SCHEDULE = harness.SCHEDULE
# Virtual durations that are the same in every run: what differs then is what the profilers made of them.
STEADY = {"SIMGPU_SEED": 1, "SIMGPU_DRIFT_PPM": 0}


def variables(plain=False, cuda=13, preload=None):
    """What scripts/simgpu-run would set, with `preload` in front of its own."""
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    env["SIMGPU_BUILD"] = str(FOLDER)
    command = [harness.ROOT / "scripts" / "simgpu-run", "--cuda", str(cuda), *(["--plain"] if plain else []), "--print"]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    found = dict(line.split("=", 1) for line in said.splitlines())
    if preload:
        found["LD_PRELOAD"] = ":".join([str(preload), *([found["LD_PRELOAD"]] if "LD_PRELOAD" in found else [])])
    return found


def command_of(program, *args, python=harness.PYTHON):
    path = PROGRAMS / program if (PROGRAMS / program).exists() else pathlib.Path(program)
    return [python, path, *args] if path.suffix == ".py" else [path, *args]


def run(program, folder, *args, timeout=harness.LONG, plain=False, kprof=False, schedule=SCHEDULE, shapes=True, kill_after=None, **env):
    """The program on the simulated GPU; kprof=True: under libkprof, KPROF_* variables as keywords."""
    settings = {**STEADY, **variables(plain=plain, preload=harness.LIBRARY if kprof else None)}
    if kprof:
        settings["KPROF_DIR"] = folder
        if schedule:
            settings.update(KPROF_SCHEDULE=schedule, KPROF_STEP="optimizer")  # auto counts seconds where a start takes half a minute
        if shapes:
            settings["KPROF_RECORD_SHAPES"] = 1
    settings.update(env)
    return harness.Run(command_of(program, *args), folder, harness.clean_environment(**settings), timeout, kill_after=kill_after)


class Oracle(harness.Run):
    """The program under torch.profiler, activities cpu and cuda."""

    def __init__(self, program, folder, *args, schedule="1,1,3,1", shapes=True, memory=True, waits=False, tables=None, timeout=harness.LONG, **env):
        folder = pathlib.Path(folder)
        self.path = folder / "kineto.pt.trace.json"
        command = [harness.PYTHON, harness.HERE / "oracle" / "kineto.py", "--out", self.path, "--cuda"]
        command += ["--schedule", schedule] if schedule else []
        command += ["--shapes"] if shapes else []
        command += ["--memory"] if memory else []
        command += ["--waits"] if waits else []
        if tables is not None:
            (folder / "wanted.json").write_text(json.dumps(tables))
            command += ["--tables", folder / "wanted.json", folder / "tables.json"]
        settings = {**STEADY, **variables(), **env}
        super().__init__([*command, *command_of(program, *args)[1:]], folder, harness.clean_environment(**settings), timeout)
        self.ok()
        self.tables = json.loads((folder / "tables.json").read_text()) if tables is not None else None

    @property
    def trace(self):
        return self.path
