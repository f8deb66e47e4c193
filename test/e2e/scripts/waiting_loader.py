# SPDX-License-Identifier: Apache-2.0
"""A training whose two workers take 20 ms an item. argv: "wait" (as for a disk far away) or "compute"."""
import sys
import time

import torch


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        if sys.argv[1] == "wait":
            time.sleep(0.02)
        else:
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                sum(range(20_000))  # one call for many, as each is recorded
        return torch.full((16,), float(i))


def main():
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=2):
        model(batch).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
