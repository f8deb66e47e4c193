# SPDX-License-Identifier: Apache-2.0
"""A training whose steps sleep 4 ms, and 12 ms from step 20 on."""
import time

import torch

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(40):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    time.sleep(0.012 if i >= 20 else 0.004)
    optimizer.step()
