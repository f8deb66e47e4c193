# SPDX-License-Identifier: Apache-2.0
"""An actor of Ray answers requests with a tiny model."""
import ray
import torch
from torch.profiler import record_function

REQUESTS = 24


@ray.remote
class Server:
    def __init__(self):
        torch.set_num_threads(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()

    def answer(self, x):
        with record_function("request"):
            return self.model(x).argmax().item()


ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", object_store_memory=80 * 1024 * 1024)
server = Server.remote()
for _ in range(REQUESTS):
    ray.get(server.answer.remote(torch.ones(1, 8)))
print("iterations", REQUESTS)
ray.shutdown()
