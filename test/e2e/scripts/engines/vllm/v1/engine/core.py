# SPDX-License-Identifier: Apache-2.0
"""The names of vLLM's engine core, and how it is called: vllm/v1/engine/core.py."""


class EngineCore:
    def __init__(self, ask):
        self.ask = ask
        self.step_fn = self.step_with_batch_queue

    def step(self):
        return self.ask()

    def step_with_batch_queue(self):
        return self.step()


class EngineCoreProc(EngineCore):
    def _process_engine_step(self):
        return self.step_fn()

    def run_busy_loop(self, steps):
        for _ in range(steps):
            self._process_engine_step()
