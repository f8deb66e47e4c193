# SPDX-License-Identifier: Apache-2.0
"""Python runs this as it starts: the programs of the tests import torch with the garbage collector off.

A quarter of what `import torch` takes are collections that find nothing, and most programs here do little else. Once torch is
imported the collector is as it was; what the import left is not looked at again (gc.freeze).
"""
import gc
import sys


class ImportOfTorch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(ImportOfTorch)
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
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


sys.meta_path.insert(0, ImportOfTorch)
