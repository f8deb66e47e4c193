# SPDX-License-Identifier: Apache-2.0
"""Trains tiny models with one optimizer, with one for each epoch, or in two threads; prints how many iterations ran."""
import sys
import threading

import torch


def model():
    return torch.nn.Linear(4, 2)


def iterate(net, *optimizers):
    for optimizer in optimizers:
        optimizer.zero_grad()
        net(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()


def one(steps=12):
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(steps):
        iterate(net, optimizer)
    return steps


def epochs(count=4, steps=5):
    net = model()
    for _ in range(count):
        optimizer = torch.optim.Adam(net.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(steps):
            iterate(net, optimizer)
            scheduler.step()
    return count * steps


def epochs_gan(count=4, steps=5):
    def epoch():
        first, second = model(), model()
        maker, judge = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
        for _ in range(steps):
            iterate(first, maker)
            iterate(second, judge)

    for _ in range(count):
        epoch()
    return count * steps


def epochs_gan_many():
    """Sooner or later each new optimizer lies where another one was."""
    return epochs_gan(300, 3)


def reclassed(steps=6):
    """CPython refuses a new __class__ where the old one frees its objects in another way."""
    class Renamed(torch.optim.SGD):
        pass

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        iterate(net, optimizer)
        optimizer.__class__ = Renamed
        optimizer.__class__ = torch.optim.SGD
    return steps


def threads(steps=20):
    turn = threading.Barrier(2)

    def train():
        net = model()
        optimizer = torch.optim.Adam(net.parameters())
        turn.wait()
        for _ in range(steps):
            iterate(net, optimizer)
            turn.wait()

    both = [threading.Thread(target=train) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return steps


def retired(steps=10, later=100):
    """A first optimizer that lives on but does not step any more."""
    net = model()
    first, second = torch.optim.Adam(net.parameters()), torch.optim.Adam(net.parameters())
    for _ in range(steps):
        iterate(net, first)
    for _ in range(later):
        iterate(net, second)
    return steps + later if first is not second else 0


def rested():
    """The same behind few steps of the first."""
    return retired(5)


if __name__ == "__main__":
    torch.manual_seed(0)
    print("iterations", globals()[sys.argv[1]](), flush=True)
