# SPDX-License-Identifier: Apache-2.0
"""A transformer encoder trained through torch.compile; --graphs: with CUDA graphs (mode reduce-overhead)."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
compiled = torch.compile(model, mode="reduce-overhead" if "--graphs" in sys.argv else "default")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
batch = torch.randn(8, 64, 128, device="cuda")
STEPS = 10
for _ in range(STEPS):
    torch.compiler.cudagraph_mark_step_begin()
    optimizer.zero_grad()
    compiled(batch).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print("steps", STEPS)
