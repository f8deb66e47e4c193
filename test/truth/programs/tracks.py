# SPDX-License-Identifier: Apache-2.0
"""A tracker that commits each metric of each step to a file (argv: each), or all at the end (end), the twin."""
import pathlib
import sqlite3
import sys
import tempfile

import torch

from clock import Clock

torch.set_num_threads(1)


class Tracker:
    def __init__(self, path, commits):
        self.commits, self.db = commits, sqlite3.connect(path)
        self.db.execute("create table metrics (step int, name text, value real)")

    def log(self, step, metrics):
        for name, value in metrics.items():
            self.db.execute("insert into metrics values (?, ?, ?)", (step, name, value))
            if self.commits:
                self.db.commit()


def main(way, folder):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    tracker, metrics = Tracker(pathlib.Path(folder) / "metrics.db", way == "each"), {name: 0.5 for name in "abcdefghijkl"}
    x, clock = torch.randn(64, 512), Clock()
    for step in range(60):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
        with clock.part("track"):
            tracker.log(step, metrics)
    tracker.db.commit()
    tracker.db.close()
    clock.tell()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        main(sys.argv[1], room)
