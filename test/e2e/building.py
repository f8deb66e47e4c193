# SPDX-License-Identifier: Apache-2.0
"""What tests that build the product share: a gcc first in PATH that keeps objects (test/support/kept-gcc)."""
import os

import harness


def kept_gcc(folder):
    """Variables with which `gcc` compiles what it has not compiled before; scripts/test names one folder of objects for all files of tests."""
    (folder / "bin").mkdir(exist_ok=True)
    gcc = folder / "bin/gcc"
    if not gcc.exists():
        gcc.symlink_to(harness.ROOT / "test/support/kept-gcc")
    objects = os.environ.get("KPROF_TEST_OBJECTS") or folder / "objects"
    return {"PATH": f"{gcc.parent}:{os.environ['PATH']}", "KEPT_OBJECTS": str(objects)}
