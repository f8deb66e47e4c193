# SPDX-License-Identifier: Apache-2.0
"""Replays a CUDA graph in three sessions of torch.profiler; the second graph is captured between the first and the second.

Prints of each session: kernels, those whose correlation is that of a cudaGraphLaunch of the session, and how many there should be.
--alone: without torch.profiler, as many steps of an optimizer, for a profiler from outside.
"""
import collections
import json
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile

REPLAYS, NODES = 4, 25
weight = torch.nn.Parameter(torch.zeros(8, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.grad = torch.ones(8, device="cuda")


def captured():
    tensor = torch.zeros(64, device="cuda")
    tensor.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(NODES):
            tensor.add_(1)
    return graph, tensor


def session(graphs):
    for _ in range(REPLAYS):
        for graph, _ in graphs:
            graph.replay()
    torch.cuda.synchronize()


graphs = [captured()]
if "--alone" in sys.argv:
    for step in range(18):
        if step % 5 == 0:
            time.sleep(1.5)  # so that the profiler's last window is over
        if step == 6:
            graphs.append(captured())
        session(graphs)
        optimizer.step()
    sys.exit()
for turn in range(3):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        session(graphs)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiler.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    launches = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "GraphLaunch" in e["name"]}
    each = collections.Counter(e["args"]["correlation"] for e in kernels)
    print("session:", json.dumps({"kernels": len(kernels), "by_graph": sum(e["args"]["correlation"] in launches for e in kernels),
                                  "launches": len(launches),
                                  "bad_launches": sum(each[launch] != NODES for launch in launches), "wanted": len(graphs) * REPLAYS * NODES}), flush=True)
    if turn == 0:
        graphs.append(captured())
