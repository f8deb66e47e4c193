# SPDX-License-Identifier: Apache-2.0
"""Ten thousand forks for each case of test_forks.py, with the library and without: a line for each, exit 1 where a child hung or failed with it.

usage: forkstorm.py [--forks N] [--seconds S] [--only TEXT]      KPROF_PYTHON is the python with torch, as for all of e2e
"""
import argparse
import json
import pathlib
import sys
import tempfile

import harness

PHASES = {
    "idle": {"KPROF_SCHEDULE": "wait=100000000,warmup=1,active=1", "KPROF_STEP": "time:1ms"},
    "warming": {"KPROF_SCHEDULE": "wait=0,warmup=100000000,active=1"},
    "recording": {},
    "windows": {"KPROF_SCHEDULE": "wait=1,warmup=1,active=1,repeat=0"},  # they begin, close and are exported all the time
}
WAYS = ("os_fork", "thread", "multiprocessing", "dataloader", "subprocess", "posix_spawn")


def cases():
    for how in WAYS:
        yield f"{how} without", how, None
        for phase in PHASES:
            for children in (0, 1):
                yield f"{how} {phase} children={children}", how, {**PHASES[phase], "KPROF_CHILDREN": children, "KPROF_LOG": "none"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forks", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--only", default="", help="cases with this text")
    options = parser.parse_args()
    worst = 0
    for name, how, settings in cases():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            arguments = (how, options.forks, options.seconds)
            if settings is None:
                run = harness.run_plain("fork_storm.py", folder, *arguments, timeout=None)
            else:
                run = harness.run_kprof("fork_storm.py", folder, *arguments, shapes=False, schedule=None, timeout=None, **settings)
            said = json.loads(run.out or '{"forks": 0, "hung": 0, "failed": 1}')
        if settings is not None:
            worst = max(worst, said["hung"] + said["failed"])
        print(f"{name:45} {said['forks']:6} forks, {said['hung']} hung, {said['failed']} failed", flush=True)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
