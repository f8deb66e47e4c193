# SPDX-License-Identifier: Apache-2.0
"""The names of a worker of vLLM, which runs the model: vllm/v1/worker/gpu_worker.py."""
import torch


class Worker:
    def __init__(self, ask):
        self.ask = ask

    @torch.inference_mode()
    def execute_model(self):
        return self.ask()

    def worker_busy_loop(self, steps):
        for _ in range(steps):
            self.execute_model()
