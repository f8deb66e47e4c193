# SPDX-License-Identifier: Apache-2.0
"""Runs the operators of torch that standard input names, a line each, on the GPU where there is one."""
import sys

import torch


def main():
    x = torch.ones(64, 64, device="cuda" if torch.cuda.is_available() else "cpu")
    x.neg()
    print(x.device.type, flush=True)
    for line in sys.stdin:
        getattr(x, line.strip())()
        if x.is_cuda:
            torch.cuda.synchronize()
        print("done", flush=True)


if __name__ == "__main__":
    main()
