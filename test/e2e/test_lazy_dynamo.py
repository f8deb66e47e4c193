# SPDX-License-Identifier: Apache-2.0
"""startup/lazy_dynamo.py: an optimizer steps without torch._dynamo, and whoever needs more of it has the real one, also for what stepped before.
startup/lazy_torch.py: what torch has for compilers and for few programs comes when something asks for it.
startup/lazy_packages.py: so does what Lightning and transformers bring for others."""
import harness

PROGRAM = """
import sys
import torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.Adam([weight])
def step():
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
step()
print(sorted(name for name in sys.modules if name.startswith("torch._dynamo")))
import torch._dynamo.utils
compiled = torch.compile(lambda x: (step(), x + 1)[1], backend="eager")
print(torch._dynamo is sys.modules["torch._dynamo"], torch._dynamo.__spec__.origin == torch._dynamo.__file__, compiled(torch.ones(1)).item())
step()
print(torch._dynamo.list_backends() != [], optimizer.state[weight]["step"].item())
"""


def test_an_optimizer_steps_without_it_and_what_compiles_has_the_real_one(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["['torch._dynamo', 'torch._dynamo._trace_wrapped_higher_order_op', 'torch._dynamo.eval_frame', 'torch._dynamo.utils']",
                                    "True True 2.0", "True 3.0"]


PROFILED = """
import sys
import torch
def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(2).add(1)
    return [event.key for event in profiler.key_averages() if event.key == "aten::add"], sorted(name for name in sys.modules if name.startswith("torch._inductor"))
print(*profiled())
import torch._inductor.config as early
print(early.triton.cudagraphs, early.max_autotune, early is sys.modules["torch._inductor.config"])
import torch._inductor.config as late
print(late is torch._inductor.config is sys.modules["torch._inductor.config"], late.__spec__.origin == late.__file__)
print(profiled()[0], torch._dynamo.__spec__.origin == torch._dynamo.__file__)
"""


def test_torch_profiler_asks_no_compiler_and_whoever_needs_its_settings_has_them(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROFILED)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["['aten::add'] ['torch._inductor', 'torch._inductor.config']", "False False False", "True True", "['aten::add'] True"]


# torchvision imports the first of these names.
NAMED = """
import sys
import torch
from torch._dynamo.utils import is_compile_supported
print("torch._dynamo.convert_frame" in sys.modules)
print(is_compile_supported("meta"), "torch._dynamo.convert_frame" in sys.modules)
from torch._dynamo.utils import counters
import torch._dynamo.utils as late
print(late is sys.modules["torch._dynamo.utils"] is torch._dynamo.utils, late.counters is counters, late.is_compile_supported is not is_compile_supported)
"""


def test_a_name_that_torchvision_imports_brings_no_compiler_until_it_is_called(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(NAMED)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["False", "False True", "True True True"]


# A DataLoader's worker asks for a Generator.
LATE = """
import sys
import lazy_torch
import torch
def left():
    print(" ".join(sorted(name[6:] for name, module in sys.modules.items() if type(module) is lazy_torch.Lazy)))
def on_meta():
    try:
        print(torch.ones(3, device="meta").nonzero_static(size=2).shape)
    except NotImplementedError:
        print("has no meta")
left()
print(torch.Generator().manual_seed(3).initial_seed())
on_meta()
from torch.distributions.normal import Normal
print(Normal(0.0, 1.0).mean.item(), torch.distributions.Normal is Normal)
print(torch.masked.sum(torch.ones(3)).item())
left()
print(type(torch.export.export(torch.nn.ReLU(), (torch.ones(1),))).__name__)
on_meta()
left()
"""


def test_torch_brings_late_what_is_asked_for_late(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(LATE)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["_meta_registrations _native distributed._meta_registrations distributions export masked", "3", "has no meta",
                                    "0.0 True", "3.0", "_meta_registrations _native distributed._meta_registrations export",
                                    "ExportedProgram", "torch.Size([2, 1])", "_native distributed._meta_registrations"]


# Lightning, transformers and accelerate import and ask these.
ASKED = """
import sys
import torch
import torch._export.wrappers
from torch._dynamo import OptimizedModule
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.distributed.tensor import DTensor
@torch._dynamo.allow_in_graph
@torch._dynamo.disable(recursive=False)
def mine():
    return 7
model = torch.nn.ReLU()
def asked(model):
    return isinstance(model, OptimizedModule), isinstance(model, torch._dynamo.eval_frame.OptimizedModule), isinstance(torch.ones(2), DTensor)
print(*asked(model), mine(), "torch._dynamo.convert_frame" in sys.modules, "sympy" in sys.modules)
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(2))
print(*asked(compiled), *asked(model), "torch._dynamo.convert_frame" in sys.modules)
import torch._dynamo.trace_rules
print(id(mine) in torch._dynamo.trace_rules._allowed_callable_ids, OptimizedModule.__name__, mine())
with TransformGetItemToIndex():
    print(type(TransformGetItemToIndex()).__mro__[-2].__module__)
from torch.distributed.tensor.placement_types import Shard
import torch.distributed.tensor
print(torch.distributed.tensor.DTensor is not DTensor, DTensor.from_local.__module__, torch.distributed.tensor.Shard is Shard)
from torch._export.db.case import ExportCase
print(ExportCase.__module__, torch._export.__spec__.origin == torch._export.__file__)
"""


def test_whether_a_module_is_compiled_brings_no_compiler_until_one_is(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(ASKED)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["False False False 7 False False", "True True False False False False True", "True OptimizedModule 7",
                                    "torch.overrides", "True torch.distributed.tensor._api True", "torch._export.db.case True"]


METRICS = """
import sys
import torchmetrics
from torchmetrics import Metric, MetricCollection
print("torchmetrics.functional" in sys.modules, "torchvision" in sys.modules, Metric.__module__, MetricCollection.__module__)
mean = torchmetrics.MeanMetric()
mean.update(3.0)
print(isinstance(mean, Metric), mean.compute().item(), torchmetrics.Metric is Metric, "torchmetrics.functional" in sys.modules)
import torchvision.ops._register_onnx_ops as late
print(type(late).__name__, "torch.onnx" in sys.modules, late.BASE_ONNX_OPSET_VERSION, "torch.onnx" in sys.modules)
"""


def test_a_metric_brings_all_metrics_and_their_class_does_not(tmp_path):
    """Nor do torchvision's operators bring ONNX."""
    harness.needs("torchmetrics")
    harness.needs("torchvision")
    script = tmp_path / "program.py"
    script.write_text(METRICS)
    run = harness.run_plain(script, tmp_path, LAZY_DYNAMO=1).ok()
    assert run.out.splitlines() == ["False False torchmetrics.metric torchmetrics.collections", "True 3.0 True True", "Onnx False 11 True"]
