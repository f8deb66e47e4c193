# SPDX-License-Identifier: Apache-2.0
"""A training whose parts are large, with a range around each."""
import torch
from torch.profiler import record_function


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
    loss_of = torch.nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(6):
        x, y = torch.randn(1024, 512), torch.randn(1024, 512)
        with record_function("by hand: forward"):
            loss = loss_of(model(x), y)
        with record_function("by hand: backward"):
            loss.backward()
        with record_function("by hand: optimizer"):
            optimizer.step()
            optimizer.zero_grad()


main()
