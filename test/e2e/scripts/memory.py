# SPDX-License-Identifier: Apache-2.0
"""Blocks of every life: within an op, over steps, over windows, taken before the window, asked for in vain."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
before = torch.randn(1000, 100)  # freed within a window
kept = []
for step in range(12):
    x = torch.randn(32, 64)
    with torch.profiler.record_function("## forward ##"):
        loss = model(x).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.full((100 + step, 10), 1.0))
    if step == 3:
        del before
        try:
            torch.empty(1 << 60, dtype=torch.uint8)
        except RuntimeError as error:
            print(str(error)[:60].replace("\n", " "))
    if step % 4 == 1:
        kept.pop(0)
    grown = torch.arange(10, dtype=torch.float32)
    grown.resize_(5000)
print(len(kept), float(loss) == float(loss))
