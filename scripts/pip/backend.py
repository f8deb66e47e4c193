# SPDX-License-Identifier: Apache-2.0
"""What pip calls to build libkprof from its sources (PEP 517): a wheel by scripts/wheel --here, and the archive of sources."""
import gzip
import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def wheel_module():
    """scripts/wheel, which has no suffix."""
    loader = importlib.machinery.SourceFileLoader("kprof_wheel", str(ROOT / "scripts/wheel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    done = subprocess.run([sys.executable, str(ROOT / "scripts/wheel"), "--here", "-o", wheel_directory], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return pathlib.Path(done.stdout.splitlines()[-1]).name


def build_sdist(sdist_directory, config_settings=None):
    """The last commit's files (make dist) and PKG-INFO."""
    module = wheel_module()
    top = "kprof-" + module.VERSION
    packed = io.BytesIO(subprocess.check_output(["git", "archive", "--format=tar", "--prefix=%s/" % top, "HEAD"], cwd=str(ROOT)))
    with tarfile.open(fileobj=packed, mode="a") as tar:
        text = module.metadata(module.VERSION).encode()
        entry = tarfile.TarInfo(top + "/PKG-INFO")
        entry.size, entry.mtime = len(text), module.epoch()
        tar.addfile(entry, io.BytesIO(text))
    name = top + ".tar.gz"
    (pathlib.Path(sdist_directory) / name).write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    return name
