# SPDX-License-Identifier: Apache-2.0
"""Each step calls a C function by ctypes, which computes; argv `none`: which has nothing to do, the twin."""
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import torch

from clock import Clock

torch.set_num_threads(1)
SOURCE = """unsigned checksum(const unsigned *v, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++)
        sum = (sum ^ v[i & 1023]) * 16777619u;
    return sum;
}"""


def build(folder):
    source, library = pathlib.Path(folder, "checksum.c"), pathlib.Path(folder, "libchecksum.so")
    source.write_text(SOURCE, encoding="ascii")
    subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", "-o", library, source], check=True, env={"PATH": "/usr/bin:/bin"})
    return ctypes.CDLL(library)


def guard(library, values, rounds):
    return library.checksum(values, rounds)


def main(folder, rounds):
    library, values = build(folder), (ctypes.c_uint * 1024)()
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for _ in range(60):
        with clock.part("native"):
            guard(library, values, rounds)
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place, 6000 if "none" in sys.argv else 6000000)
