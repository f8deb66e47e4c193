# SPDX-License-Identifier: Apache-2.0
"""Each step reads an array and small files that the page cache does not have (argv: files), or computes alone (none), the twin."""
import os
import pathlib
import sys
import tempfile

import numpy
import torch

from clock import Clock

torch.set_num_threads(1)
SMALL, STEPS = 24, 50


def cold(path):
    """The cache gives back what is on the disk, which make() has seen to."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make(folder):
    numpy.save(folder / "large.npy", numpy.zeros(1 << 21))
    for at in range(SMALL):
        (folder / f"{at}.bin").write_bytes(bytes(40000))
    paths = [folder / "large.npy", *(folder / f"{at}.bin" for at in range(SMALL))]
    for path in paths:
        with open(path, "rb") as file:
            os.fdatasync(file.fileno())
    return paths


def read_small(path):
    return path.read_bytes()


def load(paths):
    large = numpy.load(paths[0])
    return large[0] + sum(len(read_small(path)) for path in paths[1:])


def main(way, folder):
    paths = make(folder)
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, clock = torch.randn(64, 512), Clock()
    for _ in range(STEPS):
        if way == "files":
            with clock.part("reads"):
                for path in paths:
                    cold(path)
                with clock.part("files"):
                    load(paths)
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=os.environ.get("TRUTH_DISK")) as place:
        main(sys.argv[1], pathlib.Path(place))
