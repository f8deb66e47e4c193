# SPDX-License-Identifier: Apache-2.0
"""Keeps some tensors, limits its addresses, and asks for more than there is. Prints what it knows that is live, by line."""
import glob
import json
import resource
import sys

import torch

kept = []


def keep(step):
    kept.append(torch.zeros(250_000 + step))  # kept


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(1000, 500), torch.nn.GELU())

    @torch.enable_grad()
    def forward(self, x):
        return self.layers(x)  # layers


model = torch.nn.Linear(1000, 1000, bias=False)  # weights
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    model(torch.ones(8, 1000)).sum().backward()
    optimizer.step()  # momentum
    optimizer.zero_grad()
    keep(step)
net = Net() if sys.argv[2:] == ["modules"] else None
z = net(torch.ones(8, 1000)) if net else None
if len(sys.argv) > 2 and sys.argv[2] == "grads":
    y = model(torch.ones(8, 1000))  # forward
    y.sum().backward()  # backward
print(json.dumps({"kept": sum(t.untyped_storage().nbytes() for t in kept), "weights": 4_000_000, "momentum": 4_000_000,
                  "in_step": kept[-2].untyped_storage().nbytes()}))
resource.setrlimit(resource.RLIMIT_AS, (64 << 30, 64 << 30))
for _ in range(1 if sys.argv[1] == "ends" else int(sys.argv[1])):
    try:
        torch.empty(1 << 40, dtype=torch.uint8)  # asked
    except RuntimeError:
        if sys.argv[1] == "ends":
            raise
        print("caught", file=sys.stderr)
while len(sys.argv) > 2 and sys.argv[2] not in ("grads", "modules") and not glob.glob(f"{sys.argv[2]}/*.pt.trace.json*"):  # goes on until a trace is there
    model(torch.ones(8, 1000)).sum().backward()
    optimizer.step()
