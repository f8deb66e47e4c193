# SPDX-License-Identifier: Apache-2.0
"""A training that is sick in one way (argv: waiting, or loading and the milliseconds of a batch, 80 unless told), or its twin that
is not (healthy). Prints the seconds of steps 4 to 9."""
import sys
import time

import torch


class Numbers(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 40

    def __getitem__(self, at):
        time.sleep(self.seconds)
        return torch.ones(256)


def main():
    sickness = sys.argv[1]
    batch_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 80
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Numbers(batch_ms / 1000 / 4 if sickness == "loading" else 0), batch_size=4)
    began = 0
    for step, batch in enumerate(loader):
        if step == 4:
            began = time.perf_counter()
        optimizer.zero_grad()
        for _ in range(4):
            model(batch.repeat(16, 1)).sum().backward()
        if sickness == "waiting":
            time.sleep(0.3)
        optimizer.step()
        if step == 9:
            print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
