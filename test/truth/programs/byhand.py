# SPDX-License-Identifier: Apache-2.0
"""Trains without an optimizer object and sleeps once a step (argv): micro: four backward passes a step, p -= lr * p.grad;
gan: two passes of the critic and one of the generator; func: torch.func.grad and a new dict."""
import sys
import time

import torch

from clock import Clock

torch.set_num_threads(1)
SECONDS = 0.03


def net(*sizes):
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU()) for a, b in zip(sizes, sizes[1:])))


def update(model):
    with torch.no_grad():
        for p in model.parameters():
            p -= 1e-3 * p.grad
            p.grad = None


def make_micro():
    model, x = net(256, 512, 64), torch.randn(64, 256)

    def train(ended):
        for _ in range(4):
            (model(x).square().mean() / 4).backward()
        ended()
        update(model)

    return train


def make_gan():
    critic, generator = net(128, 256, 16), net(32, 512, 512, 128)
    real, z = torch.randn(64, 128), torch.randn(64, 32)

    def train(ended):
        fake = generator(z)
        critic(real).mean().neg().backward()
        critic(fake.detach()).mean().backward()
        update(critic)
        critic(fake).mean().backward()
        ended()
        update(generator)

    return train


def make_func():
    model, x = net(256, 512, 64), torch.randn(64, 256)
    state = [dict(model.named_parameters())]

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (x,)).square().mean()

    def train(ended):
        grads = torch.func.grad(loss)(state[0])
        ended()
        state[0] = {name: p - 1e-3 * grads[name] for name, p in state[0].items()}

    return train


def main(way):
    train, clock = {"micro": make_micro, "gan": make_gan, "func": make_func}[way](), Clock()
    for _ in range(30):
        with clock.part("wait"):
            time.sleep(SECONDS)
        train(clock.step)
    clock.tell()


if __name__ == "__main__":
    main(sys.argv[1])
