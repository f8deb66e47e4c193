# SPDX-License-Identifier: Apache-2.0
"""What tests that build the product share: a gcc first in PATH that keeps objects (test/support/kept-gcc)."""
import os
import pathlib
import shutil

import harness


def kept_gcc(folder):
    """Variables with which `gcc` compiles what it has not compiled before; scripts/test names one folder of objects for all files of tests."""
    (folder / "bin").mkdir(exist_ok=True)
    gcc = folder / "bin/gcc"
    if not gcc.exists():
        gcc.symlink_to(harness.ROOT / "test/support/kept-gcc")
    objects = os.environ.get("KPROF_TEST_OBJECTS") or folder / "objects"
    return {"PATH": f"{gcc.parent}:{os.environ['PATH']}", "KEPT_OBJECTS": str(objects)}


def three_of_four(kept, folder, seed):
    """Variables as kept_gcc's, where a quarter of what is kept is missing: that is compiled anew, another quarter with each seed."""
    objects = sorted(pathlib.Path(kept["KEPT_OBJECTS"]).rglob("*.o"))
    for at, path in enumerate(objects):
        if at % 4 != seed % 4:
            for one in (path, path.with_name(path.name + ".words")):
                there = folder / one.relative_to(kept["KEPT_OBJECTS"])
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(one, there)
    return {**kept, "KEPT_OBJECTS": str(folder)}
