# SPDX-License-Identifier: Apache-2.0
"""Python runs this as it starts: the programs of the tests import torch, and what else is large, with the garbage collector off.

A fifth of what `import torch` takes are collections that find nothing, and most programs here do little else. The first optimizer
imports torch._dynamo, which is as large; a trainer's library is larger. Once such a package is imported the collector is as it was.
What is there by then is not looked at again, not at the program's end either (gc.freeze): that is a fourth of all.

Triton is hidden: torch for processors comes without it. Its module (nanobind) writes that it leaks what was frozen.

On the simulated GPU a program lets autograd's thread have the GIL before Python ends: it drops its last graph with it. Where
Python ends first, that thread is ended in a destructor, and torch calls std::terminate (pytorch #38228), also without us.
"""
import atexit
import gc
import os
import sys
import time


class LargeImport:
    packages = {"torch", "torch._dynamo", "torchvision", "transformers", "lightning"}

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in LargeImport.packages:
            return None
        LargeImport.packages.remove(name)
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not LargeImport)
        spec = next(filter(None, found), None)
        if spec and gc.isenabled():
            run = spec.loader.exec_module

            def exec_module(module):
                gc.disable()
                try:
                    run(module)
                finally:
                    gc.freeze()
                    gc.enable()

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, LargeImport)
sys.modules.setdefault("triton", None)
if "/simgpu/" in os.environ.get("LD_PRELOAD", ""):
    atexit.register(lambda: "torch" in sys.modules and time.sleep(0.2))
if os.environ.get("LAZY_DYNAMO") == "1":
    import lazy_dynamo  # noqa: F401
    import lazy_packages  # noqa: F401
