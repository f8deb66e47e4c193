# SPDX-License-Identifier: Apache-2.0
"""A tokenizer in collate: argv is the number of workers, and `fast` makes it cheap (the twin)."""
import sys

import torch

from clock import Clock

torch.set_num_threads(1)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 60 * 8

    def __getitem__(self, at):
        return at


def tokenize(at, rounds):
    total = 0
    for value in range(rounds):
        total = (total * 31 + value + at) % 65521
    return total


class Collate:
    def __init__(self, rounds):
        self.rounds = rounds

    def __call__(self, items):
        return torch.full((8, 512), float(sum(tokenize(at, self.rounds) for at in items)))


def main(workers, rounds):
    loader = torch.utils.data.DataLoader(Texts(), batch_size=8, num_workers=workers, collate_fn=Collate(rounds))
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    clock, batches = Clock(), iter(loader)
    while True:
        with clock.part("load"):
            x = next(batches, None)
        if x is None:
            break
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
        clock.step()
    clock.tell()


if __name__ == "__main__":
    main(int(sys.argv[1]), 10 if "fast" in sys.argv else 60000)
