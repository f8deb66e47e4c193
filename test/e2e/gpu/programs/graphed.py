# SPDX-License-Identifier: Apache-2.0
"""A training step captured as a CUDA graph and replayed; the optimizer's step runs outside of it."""
import torch

STEPS = 6
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.zeros(16, 32, device="cuda")


def forward_backward():
    model(batch).square().mean().backward()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        forward_backward()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    forward_backward()
for _ in range(STEPS):
    batch.copy_(torch.ones(16, 32), non_blocking=True)
    graph.replay()
    optimizer.step()
torch.cuda.synchronize()
print("steps", STEPS)
