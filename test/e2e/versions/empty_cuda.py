# SPDX-License-Identifier: Apache-2.0
"""Puts empty libraries in the place of CUDA's big ones beside the torch of this python, so that it imports without them.

A program on the CPU never calls cuBLAS, cuDNN, NCCL and the like: gigabytes that are only linked to. Each library that torch's own link
to and that is not there becomes one whose functions answer 1, an error. Real libraries of NVIDIA that are installed (cudart, CUPTI) are
linked to from torch's folder, where every release looks. Run by scripts/venv.
"""
import collections
import importlib.util
import pathlib
import re
import subprocess
import tempfile

TORCH = pathlib.Path(importlib.util.find_spec("torch").origin).parent
LIBRARIES = TORCH / "lib"
SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|util|cuda|nvidia-ml)\.so|ld-linux")  # libcuda: never linked at start
MADE_OF = re.compile(r"(cublas|cudnn|nccl|curand|cufft|cusparse|cusolver|nvrtc|nvJitLink|cuFile|nvshmem|nvtx|cupti|cuda)\w*$")


def said(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def needed_by(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-dW", library))


def undefined_in(library):
    """(name, version or "") of what other libraries must define."""
    found = (line.split()[-1] for line in said("nm", "-D", "--undefined-only", "--with-symbol-versions", library).splitlines())
    return [(name, version) for name, _, version in (each.partition("@") for each in found) if MADE_OF.match(name)]


def versions_needed(library):
    """soname -> versions that this library asks of it."""
    wanted, file = collections.defaultdict(set), None
    for line in said("readelf", "-VW", library).splitlines():
        asked = re.search(r"File: (\S+)", line)
        named = re.search(r"Name: (\S+)\s+Flags", line)
        file = asked[1] if asked else file
        if named:
            wanted[file].add(named[1])
    return wanted


def empty_library(soname, functions, versions, out):
    """`functions`: (name, version) of all that may be meant; those with a version of another library are left out."""
    mine = {name: version for name, version in functions if version in versions or not version}
    with tempfile.TemporaryDirectory() as folder:
        code, script = pathlib.Path(folder, "empty.c"), pathlib.Path(folder, "empty.map")
        code.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in sorted(mine)) or "int kprof_empty;\n")
        nodes = []
        for node in sorted(versions):
            names = [name for name, version in sorted(mine.items()) if version == node]
            nodes.append(f"{node} {{ global: {' '.join(name + ';' for name in names)} }};\n")
        script.write_text("".join(nodes))
        said("cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-O0", f"-Wl,-soname,{soname}", *([f"-Wl,--version-script={script}"] if nodes else []), "-o", out, code)


def main():
    own = [library for library in LIBRARIES.glob("*.so*") if not library.is_symlink()]
    needed = {name for library in own for name in needed_by(library)}
    functions, versions = set(), collections.defaultdict(set)
    for library in own:
        functions.update(undefined_in(library))
        for soname, wanted in versions_needed(library).items():
            versions[soname] |= wanted
    defined = set()
    for library in own:
        defined.update(line.split()[-1].partition("@")[0] for line in said("nm", "-D", "--defined-only", library).splitlines() if line)
    functions = {(name, version) for name, version in functions if name not in defined}
    real = {library.name: library for library in (TORCH.parent / "nvidia").rglob("lib*.so*")}
    for soname in sorted(needed):
        place = LIBRARIES / soname
        if place.exists() or SYSTEM.match(soname):
            continue
        if soname in real:
            place.symlink_to(real[soname])
        else:
            empty_library(soname, functions, versions[soname], place)


if __name__ == "__main__":
    main()
