# SPDX-License-Identifier: Apache-2.0
"""torch.compile with sizes that are static: each third step has a length that it has not seen."""
import sys
import time

import torch

from clock import Clock

torch.set_num_threads(1)
torch._dynamo.config.automatic_dynamic_shapes = False
torch._dynamo.config.cache_size_limit = 64


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(512, 512), torch.nn.Linear(512, 512)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))) + x


def main(backend):
    torch.manual_seed(0)
    model = torch.compile(Block(), dynamic=False, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    clock, length = Clock(), 24
    for step in range(16):
        if step % 3 == 0:
            length += 4
        x = torch.randn(8, length, 512)
        began = time.perf_counter()
        loss = model(x).square().mean()
        middle = time.perf_counter()
        loss.backward()
        clock.now.update(forward=middle - began, backward=time.perf_counter() - middle)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        clock.step()
    compiled = [step["wall"] for at, step in enumerate(clock.steps) if at and at % 3 == 0]
    usual = sorted(step["wall"] for at, step in enumerate(clock.steps) if at % 3)[5]
    steps = len(clock.steps) - 1
    clock.tell(excess_ms=1e3 * sum(wall - usual for wall in compiled) / steps, compiled_steps=len(compiled), excess_share=sum(wall - usual for wall in compiled) / sum(step["wall"] for step in clock.steps[1:]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "inductor")
