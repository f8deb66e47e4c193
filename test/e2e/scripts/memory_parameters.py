# SPDX-License-Identifier: Apache-2.0
"""Six steps whose gradients are not all as large as a parameter: of a sparse embedding, or with tensors of create_graph.

usage: memory_parameters.py sparse|graph
"""
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
if sys.argv[1] == "sparse":
    table = torch.nn.Embedding(5000, 64, sparse=True)
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizers = [torch.optim.SparseAdam(table.parameters()), torch.optim.Adam(net.parameters())]
else:
    net = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizers = [torch.optim.Adam(net.parameters())]
    at = torch.linspace(0, 3, 256)[:, None].requires_grad_()
for _ in range(6):
    for optimizer in optimizers:
        optimizer.zero_grad()
    if sys.argv[1] == "sparse":
        loss = net(table(torch.randint(0, 5000, (256,)))).square().mean()
    else:
        first, = torch.autograd.grad(net(at).sum(), at, create_graph=True)
        second, = torch.autograd.grad(first.sum(), at, create_graph=True)
        loss = (second + net(at)).square().mean()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
print("parameters", 4 * sum(weight.numel() for weight in net.parameters()))
