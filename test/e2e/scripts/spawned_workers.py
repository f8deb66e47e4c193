# SPDX-License-Identifier: Apache-2.0
"""A training whose DataLoader workers are programs of their own (spawn): they run ops, too."""
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((4,), float(index)) ** 2


def main():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for batch in DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="spawn"):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    main()
