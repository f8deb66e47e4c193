# SPDX-License-Identifier: Apache-2.0
"""Trains weights that are mapped from their file, beside torch.from_file, shared tensors and batches of a loader's workers."""
import os
import tempfile

import torch


def net():
    return torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))


def main():
    with tempfile.TemporaryDirectory() as folder:
        weights, numbers = os.path.join(folder, "w.pt"), os.path.join(folder, "numbers")
        torch.save(net().state_dict(), weights)
        with open(numbers, "wb") as file:
            file.write(bytes(40000))
        before = torch.from_file(numbers, shared=False, size=1000)
        model = net().to("meta")
        model.load_state_dict(torch.load(weights, mmap=True), assign=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data = torch.utils.data.TensorDataset(torch.randn(160, 128))
        for i, (batch,) in enumerate(torch.utils.data.DataLoader(data, batch_size=16, num_workers=1)):
            mapped, shared = torch.from_file(numbers, shared=False, size=10000), torch.zeros(300).share_memory_()
            loss = model(batch).sum() + mapped.sum() + shared.sum()
            del mapped, shared
            if i == 4:
                del before
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
