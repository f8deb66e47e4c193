# SPDX-License-Identifier: Apache-2.0
"""An actor of Ray trains eight steps; the page's own lines stand before this and set `recorded` (scripts/check-recipes)."""
import ray
import torch

ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 * 1024 * 1024, logging_level="ERROR")


@ray.remote
class Worker:
    def __init__(self):
        self.model = torch.nn.Linear(8, 8)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        self.optimizer.zero_grad()
        self.model(torch.ones(4, 8)).sum().backward()
        self.optimizer.step()


worker = Worker.options(runtime_env=recorded).remote()  # noqa: F821
for _ in range(8):
    ray.get(worker.train.remote())
ray.shutdown()
