# SPDX-License-Identifier: Apache-2.0
"""What advice_cpu.py and advice_gpu.py share: windows of steps, each sick in one way, and the sicknesses that both have."""
import json
import time

import torch
import torch._dynamo

FIRST, REST = 4, 2  # steps before the windows; of a window that are not recorded
torch._dynamo.config.recompile_limit = 1000


class Windows:
    """Iterates over (step, sickness, number of the step in its window), and keeps of each sickness, in milliseconds by the program's own clock, what it
    cost in each step and how long each step was."""

    def __init__(self, sicknesses, cycle):
        self.sicknesses, self.cycle = sicknesses, cycle
        self.spent = {name: ([], []) for name in sicknesses}
        self.cost = 0  # seconds of this step, told by the program

    def __iter__(self):
        began = time.perf_counter()
        for step in range(FIRST + self.cycle * len(self.sicknesses)):
            window, at = divmod(step - FIRST, self.cycle)
            sickness, self.cost = self.sicknesses[max(window, 0)], 0
            yield step, sickness, at
            ended = time.perf_counter()
            if window >= 0 and at >= REST:
                self.spent[sickness][0].append(self.cost * 1000)
                self.spent[sickness][1].append((ended - began) * 1000)
            began = ended

    def tell(self):
        print(json.dumps(self.spent))


def load_batch(batch, seconds):
    for _ in range(20):
        batch = torch.roll(batch, 1, 0).flip(0).contiguous()
        time.sleep(seconds)
    return batch


@torch.compile(backend="eager", dynamic=False)
def shifted(x):
    return x * 2 + 1


def compiled(step, device):
    shifted(torch.ones(step + 2, device=device))  # a new size each time
