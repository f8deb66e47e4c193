# SPDX-License-Identifier: Apache-2.0
"""A training whose batches come from two workers. argv: start method, samples."""
import sys

import torch


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.full((16,), float(i)) * 2


def main():
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Samples(int(sys.argv[2])), batch_size=4, num_workers=2, prefetch_factor=1,
                                         multiprocessing_context=sys.argv[1])
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done", flush=True)


if __name__ == "__main__":
    main()
