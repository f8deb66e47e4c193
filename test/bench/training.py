# SPDX-License-Identifier: Apache-2.0
"""What a window costs an op of a real training, beside an empty callback: steps of one process in turns. Prints JSON.

usage: training.py ROUNDS LIBRARY [encoder|resnet]     LIBRARY: libempty_profile.so; else a training of ring.py
Runs under LD_PRELOAD with KPROF_SCHEDULE=none. A loop of one op keeps our code and data in the processor's caches; a
training of 6 layers, whose parameters and optimizer state are larger than these, does not.
"""
import ctypes
import importlib
import json
import pathlib
import resource
import statistics
import sys
import time

import torch
from torch import nn

LAYERS, WIDTH, HEADS, BATCH, LENGTH, WORDS = 6, 128, 4, 2, 32, 1000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down, self.drop = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

    def attend(self, x):
        q, k, v = (part.view(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.attention(x).split(WIDTH, dim=2))
        scores = (q @ k.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5
        scores = torch.where(self.mask, scores, torch.finfo(scores.dtype).min)
        together = (self.drop(scores.softmax(-1)) @ v).transpose(1, 2).contiguous().view(BATCH, LENGTH, WIDTH)
        return self.drop(self.projection(together))

    def feed(self, x):
        x = self.up(x)  # as GPT-2 has GELU: by hand
        return self.drop(self.down(0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x.pow(3))))))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.feed(self.between(x))


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)
        self.parts = nn.ModuleList([self.words, self.places, self.blocks, self.last])
        self.optimizer = torch.optim.AdamW(self.parts.parameters(), lr=1e-4)
        self.tokens = torch.randint(WORDS, (BATCH, LENGTH + 1))

    def step(self):
        x = self.words(self.tokens[:, :-1]) + self.places(torch.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        logits = self.last(x) @ self.words.weight.t()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.parts.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


class Callback(ctypes.Structure):
    """at::RecordFunctionCallback"""
    _fields_ = [("start", ctypes.c_void_p), ("end", ctypes.c_void_p), ("sampling", ctypes.c_double), ("scopes", ctypes.c_uint8 * 10),
                ("inputs", ctypes.c_uint8), ("outputs", ctypes.c_uint8), ("ids", ctypes.c_uint8)]


class Callbacks:
    def __init__(self, library):
        torch_cpu = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        self.add, self.remove = torch_cpu._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE, torch_cpu._ZN2at14removeCallbackEm
        self.add.argtypes, self.add.restype, self.remove.argtypes = [Callback], ctypes.c_uint64, [ctypes.c_uint64]
        self.library = library

    def around(self, run, start="empty_start", inputs=False):
        address = lambda name: ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        scopes = (ctypes.c_uint8 * 10)(*[1] * 10)
        handle = self.add(Callback(address(start), address("empty_end"), 1.0, scopes, inputs, 0, 0))
        said = run()
        self.remove(handle)
        return said


def timed(step):
    faults, begin = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt, time.thread_time_ns()
    step()
    return time.thread_time_ns() - begin, resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - faults


def recorded(step):
    ours = ctypes.CDLL(None)
    if ours.kprof_start():
        sys.exit("kprof_start() failed")
    said = timed(step)
    ours.kprof_stop()
    time.sleep(0.1)  # the trace, or the spool's room, is another thread's work
    return said


def main():
    rounds, library = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
    torch.set_num_threads(1)
    step, callbacks = Training().step if len(sys.argv) < 4 else getattr(importlib.import_module("ring"), sys.argv[3])(), Callbacks(library)
    for _ in range(3):
        step()
    callbacks.around(step, "counted_start")
    ops = ctypes.c_long.in_dll(library, "counted").value
    ways = {"alone": lambda: timed(step), "empty": lambda: callbacks.around(lambda: timed(step)),
            "empty with inputs": lambda: callbacks.around(lambda: timed(step), inputs=True), "ours": lambda: recorded(step)}
    seen = {way: [] for way in ways}
    for number in range(rounds + 2):
        for way in sorted(ways, reverse=number % 2):
            said = ways[way]()
            if number > 1:  # the first rounds warm everything up
                seen[way].append(said)
    ns = {way: [took / ops for took, _ in line] for way, line in seen.items()}
    said = {"ops": ops, "alone": statistics.median(ns["alone"])}
    for way in list(ways)[1:]:
        said[way] = statistics.median(with_it - alone for with_it, alone in zip(ns[way], ns["alone"]))
        said[way + " low"] = statistics.mean(sorted(ns[way])[:max(1, rounds // 3)]) - statistics.mean(sorted(ns["alone"])[:max(1, rounds // 3)])
    said["faults"] = {way: statistics.median(faults for _, faults in line) for way, line in seen.items()}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
