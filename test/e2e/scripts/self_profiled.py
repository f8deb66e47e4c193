# SPDX-License-Identifier: Apache-2.0
"""A convolutional training that profiles itself with torch.profiler and writes its trace to the file it is given."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 16 * 16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = TensorDataset(torch.rand(24, 3, 16, 16), torch.arange(24) % 10)
    plan = schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, record_shapes=True,
                 on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1])) as profiler:
        for image, label in DataLoader(images, batch_size=4, num_workers=2):
            optimizer.zero_grad()
            with record_function("forward and loss"):
                loss = torch.nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
            profiler.step()
    print(f"loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
