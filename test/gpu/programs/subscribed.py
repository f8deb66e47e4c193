# SPDX-License-Identifier: Apache-2.0
"""Trains with a CUPTI subscriber of somebody else in the process, as older PyTorch had one of its own."""
import ctypes
import sys

import torch

torch.zeros(1, device="cuda")
cupti = ctypes.CDLL(sys.argv[1])
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
subscriber = ctypes.c_void_p()
print("subscribe", cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None))
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.zeros(8, 64, device="cuda")).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
print("trained")
