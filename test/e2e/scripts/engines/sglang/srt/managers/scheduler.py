# SPDX-License-Identifier: Apache-2.0
"""The names of SGLang's scheduler, and how it is called: sglang/srt/managers/scheduler.py."""


class Scheduler:
    def __init__(self, ask):
        self.ask = ask

    def run_batch(self, batch):
        return self.ask() if batch else None

    def event_loop_normal(self, steps):
        for step in range(1, steps + 1):
            self.run_batch(step)
