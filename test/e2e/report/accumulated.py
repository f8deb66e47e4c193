# SPDX-License-Identifier: Apache-2.0
"""Three windows under torch.profiler with acc_events: accumulated.py OUT leaves a trace of each and torch's tables of all, as
tables.json: [{"name", "argv", "text"}, ...]"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule

out, written = sys.argv[1], []
TABLES = [("plain", [], {}, {}),
          ("shapes", ["--group-by-input-shape", "--sort-by", "self_cpu_time_total", "--row-limit", "20"], {"group_by_input_shape": True},
           {"sort_by": "self_cpu_time_total", "row_limit": 20}),
          ("stacks", ["--group-by-stack-n", "3", "--row-limit", "30"], {"group_by_stack_n": 3}, {"row_limit": 30})]


def ready(profiler):
    written.append(f"{out}/window{len(written)}.pt.trace.json")
    profiler.export_chrome_trace(written[-1])


model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=3), on_trace_ready=ready, acc_events=True,
             record_shapes=True, with_stack=True) as profiler:
    for step in range(14):
        x = torch.ones(4, 8)
        model(x.neg().exp() if step > 7 else x).sum().backward()  # the last window has ops that the first has not
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
assert len(written) == 3
with open(f"{out}/tables.json", "w", encoding="utf-8") as file:
    json.dump([{"name": name, "argv": ["--acc-events", *argv, *written[:-1]], "text": profiler.key_averages(**key).table(**table)}
               for name, argv, key, table in TABLES], file)
