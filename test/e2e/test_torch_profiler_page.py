# SPDX-License-Identifier: Apache-2.0
"""docs/reference/torch-profiler.md has each parameter and public method of torch 2.15's profilers, and none that torch lacks."""
import inspect
import re

import pytest
import torch
import torch.autograd.profiler
import torch.profiler
from torch._C._profiler import _ExperimentalConfig

import harness

PAGE = harness.ROOT / "docs/reference/torch-profiler.md"
NOT_TOLD = {"self", "return"}

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.15"), reason="the page is about torch 2.15")


def parameters(function):
    return {name for name in inspect.signature(function).parameters} - NOT_TOLD


def names_of(thing):
    if not inspect.isclass(thing):
        return parameters(thing)
    names = parameters(thing.__init__)
    for name, member in inspect.getmembers(thing, callable):
        if not name.startswith("_"):
            names |= {name + "()"} | parameters(member)
    return names


def config_names():
    """A class of pybind11: its signature is in its text."""
    return set(re.findall(r"(\w+): [\w.\[\]]+ = ", _ExperimentalConfig.__init__.__doc__.splitlines()[0]))


def subjects():
    found = {"torch.profiler." + n: getattr(torch.profiler, n) for n in ("profile", "schedule", "tensorboard_trace_handler", "ExecutionTraceObserver")}
    found.update({"torch.autograd.profiler." + n: getattr(torch.autograd.profiler, n)
                  for n in ("profile", "record_function", "emit_nvtx", "emit_itt")})
    return found


def page(heading):
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))
    rows = re.findall(r"^\| (`[^|]*) \|", sections[heading], re.M)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("heading", subjects())
def test_the_page_has_the_names_of(heading):
    assert page(heading) == names_of(subjects()[heading])


def test_the_page_has_the_fields_of_the_experimental_config():
    assert len(config_names()) >= 12
    assert page("torch._C._profiler._ExperimentalConfig") == config_names()


def test_the_page_has_the_names_of_lightning():
    profilers = pytest.importorskip("lightning.pytorch.profilers")
    assert page("lightning.pytorch.profilers.PyTorchProfiler") == names_of(profilers.PyTorchProfiler)
