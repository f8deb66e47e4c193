# SPDX-License-Identifier: Apache-2.0
"""NVTX by torch, in a process without a GPU; then what a child without LD_PRELOAD finds in its environment."""
import os
import subprocess

import torch

with torch.cuda.nvtx.range("outer"):
    torch.ones(2).add(1)
    with torch.cuda.nvtx.range("inner"):
        torch.ones(2).mul(2)
torch.cuda.nvtx.mark("mark")
torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("start"))
bare = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
print(any("INJECTION64" in line for line in subprocess.run(["env"], capture_output=True, text=True, check=True).stdout.split()))
print(subprocess.run(["env"], env=bare, capture_output=True, text=True, check=True).stdout.count("libkprof.so"))
