# SPDX-License-Identifier: Apache-2.0
"""A few steps on the (simulated) GPU with torch's own kernels alone: no product of matrices, so no vendor's library launches any."""
import torch

x = torch.ones(256, 256, device="cuda", requires_grad=True)
side = torch.cuda.Stream()
for _ in range(4):
    loss = torch.softmax((x + 1).relu(), -1).sum()
    loss.backward()
    with torch.no_grad():
        x.sub_(x.grad)
        x.grad = None
    with torch.cuda.stream(side):
        torch.zeros(1000, device="cuda").mul_(2)
    torch.ones(64, 64).pin_memory().to("cuda", non_blocking=True)
    loss.item()
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = x.detach() * 3
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
print("done")
