# SPDX-License-Identifier: Apache-2.0
"""A server that waits for requests; each 50th is long and takes many times as long. No optimizer, idle between calls;
argv `busy`: it never waits, and all are short, the twin."""
import json
import sys
import time

import torch

from clock import core_waited

torch.set_num_threads(1)
CALLS = 600


class Engine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))

    def forward(self, x):
        return self.layers(x)


@torch.no_grad()
def answer(engine, x):
    return engine(x).sum().item()


def quantile(sorted_times, q):
    """As the numbers themselves have it: the smallest that q of them do not pass."""
    return sorted_times[max(0, -(-int(q * 100) * len(sorted_times) // 100) - 1)]


def main(is_busy):
    engine = Engine().eval()
    short, long = torch.randn(24, 256), torch.randn(800, 256)
    times, idle = [], 0.0
    began, waited, ran = time.perf_counter(), core_waited(), time.thread_time()
    for call in range(CALLS):
        slept = time.perf_counter()
        time.sleep(0 if is_busy else 0.004)
        idle += time.perf_counter() - slept
        start = time.perf_counter()
        answer(engine, long if call % 50 == 49 and not is_busy else short)
        times.append(1e3 * (time.perf_counter() - start))
    ordered = sorted(times)
    slowest = CALLS // 100
    more = sum(ordered[-slowest:]) / slowest - sum(ordered[:-slowest]) / (CALLS - slowest)
    print("TRUTH", json.dumps({"calls": CALLS, "mean_ms": sum(times) / CALLS, "max_ms": ordered[-1], "slowest_more_ms": more, "idle_ms": 1e3 * idle / CALLS,
                               "ran_ms": 1e3 * (time.thread_time() - ran) / CALLS, "no_core_ms": 1e3 * (core_waited() - waited) / CALLS,
                               **{f"p{q}_ms": quantile(ordered, q / 100) for q in (50, 90, 99)},
                               "wall_ms": 1e3 * (time.perf_counter() - began)}), flush=True)


if __name__ == "__main__":
    main("busy" in sys.argv)
