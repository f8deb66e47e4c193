# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on the CPU under torch.profiler, and keeps its trace and its tables as test data.

usage: train_cpu.py OUT VARIANT      writes OUT/traces/VARIANT.pt.trace.json.gz and OUT/tables/VARIANT.TABLE.txt
       VARIANT: full verbose plain shapes stack memory noschedule

The network has linear and convolution layers; two workers load its data. It takes about 2 s.
"""
import pathlib
import sys

import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset

EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True, "with_modules": True}
VARIANTS = {
    "full": EVERYTHING,
    "verbose": {**EVERYTHING, "experimental_config": _ExperimentalConfig(verbose=True)},
    "plain": {},
    "shapes": {"record_shapes": True},
    "stack": {"with_stack": True},
    "memory": {"profile_memory": True, "record_shapes": True},
    "noschedule": {"record_shapes": True},
}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(128, 64)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, groups=2)
        self.mlp = MLP()

    def forward(self, x):
        x = torch.relu(self.bn(self.conv1(x)))
        x = torch.relu(self.conv2(x))
        x = nn.functional.adaptive_avg_pool2d(x, (4, 4)).flatten(1)
        return self.mlp(x)


def tables(profiler, options):
    """The tables that test_report.py asks `kprof report` for (its REFERENCE): name, text."""
    averages = profiler.key_averages()
    yield "default", averages.table()
    yield "self_cpu", averages.table(sort_by="self_cpu_time_total", row_limit=15)
    yield "header_toplevel_ms", averages.table(sort_by="cpu_time_total", row_limit=10, header="HEADER TEXT", top_level_events_only=True, time_unit="ms")
    if options.get("record_shapes"):
        yield "by_shape", profiler.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=25)
    if options.get("with_stack"):
        yield "by_stack5", profiler.key_averages(group_by_stack_n=5).table(sort_by="self_cpu_time_total", row_limit=12)
        yield "python_functions", profiler.key_averages(include_python_functions=True).table(sort_by="self_cpu_time_total", row_limit=12)
    if options.get("profile_memory"):
        yield "mem", averages.table(sort_by="self_cpu_memory_usage", row_limit=15)


def train(profiler):
    data = TensorDataset(torch.randn(64, 3, 16, 16), torch.randint(0, 10, (64,)))
    loader = DataLoader(data, batch_size=8, num_workers=2)
    model, measure = ConvNet(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    profiler.add_metadata("user_note", "quoted text")
    for step, (x, y) in enumerate(loader):
        with record_function("## forward ##"):
            loss = measure(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
        if step == 6:
            break


def main():
    out, variant = pathlib.Path(sys.argv[1]), sys.argv[2]
    options = VARIANTS[variant]

    def ready(profiler):
        for folder in ("traces", "tables"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(out / "traces" / f"{variant}.pt.trace.json.gz"))
        for name, text in tables(profiler, options):
            (out / "tables" / f"{variant}.{name}.txt").write_text(text)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    plan = None if variant == "noschedule" else schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready, **options) as profiler:
        train(profiler)


if __name__ == "__main__":
    main()
