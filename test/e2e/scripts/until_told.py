# SPDX-License-Identifier: Apache-2.0
"""Trains until standard input ends; a line of it names what else to do. usage: until_told.py"""
import os
import select
import signal
import sys
import time

import torch


def answer(word):
    if word == "fork":  # the child keeps every descriptor but these three
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            time.sleep(600)
            os._exit(0)
        print(child, flush=True)
    elif word == "handle":
        signal.signal(signal.SIGUSR2, lambda *_: os.write(1, b"handled\n"))  # print() may be under way: the next line's
        print(signal.getsignal(signal.SIGUSR2) is not None, flush=True)


def main():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.ones(4, 8)
    model(inputs)
    print("ready", flush=True)
    while True:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        if select.select([0], [], [], 0.002)[0]:
            line = os.read(0, 100).decode()
            if not line:
                return
            answer(line.strip())


if __name__ == "__main__":
    main()
