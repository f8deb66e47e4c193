# SPDX-License-Identifier: Apache-2.0
"""The tables of `make peers-tests`: whose tests are run (SUITES), and in what modes (MODES)."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Source:
    """Where tests come from: Debian's source package, or a package's sdist; only what lies in `keep` is unpacked."""
    package: str
    version: str
    keep: tuple = ("",)
    release: str = ""  # of Debian, by code name: "" is an sdist


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    source: Source
    venv: str        # test/requirements/NAME.txt
    folder: str      # in the source: pytest starts there
    targets: tuple   # files, folders or tests below it
    limit: int = 600  # seconds a mode; what did not run by then is counted
    stall: int = 120  # seconds without a test that begins or ends: then the one that runs hangs
    options: tuple = ()
    env: tuple = ()


TORCH = Source("pytorch", "1.13.1", keep=("test/",), release="bookworm")
ACCELERATE = Source("accelerate", "1.15.0", keep=("tests/",))
GPYTORCH = Source("gpytorch", "1.15.2")
SKORCH = Source("skorch", "1.4.0")


def torch(name, *targets, **more):
    # its conftest.py writes reports of its own, and wants the pytest of its day
    return Suite("torch/" + name, TORCH, "peers-torch-1.13", "test", targets, options=("--noconftest",), **more)


SUITES = (
    Suite("skorch", SKORCH, "peers-torch-2.15", ".", ("skorch/tests",), limit=900,
          options=("--ignore=skorch/tests/llm", "--ignore=skorch/tests/test_hf.py")),  # they want models from a hub
    Suite("gpytorch", GPYTORCH, "peers-torch-2.15", ".", ("test",), limit=1800),
    # what is left out starts programs on several machines or GPUs, or loads what lies on a hub
    Suite("accelerate", ACCELERATE, "peers-torch-2.15", "tests",
          ("test_accelerator.py", "test_big_modeling.py", "test_cpu.py", "test_data_loader.py", "test_dataclasses.py", "test_grad_sync.py", "test_hooks.py",
           "test_imports.py", "test_kwargs_handlers.py", "test_logging.py", "test_memory_utils.py", "test_metrics.py", "test_modeling_utils.py",
           "test_offload.py", "test_optimizer.py", "test_scheduler.py", "test_state_checkpointing.py", "test_utils.py"), limit=900),
    torch("profiler", "profiler"),
    torch("multiprocessing", "test_multiprocessing.py", "test_multiprocessing_spawn.py", limit=900),
    torch("dataloader", "test_dataloader.py", limit=1200),
    torch("autograd", "test_autograd.py", "autograd", limit=1800),
    torch("torch", "test_torch.py", limit=1800),
)

RECORD = {"KPROF_RECORD_SHAPES": "1", "KPROF_PROFILE_MEMORY": "1", "KPROF_WITH_STACK": "1", "KPROF_WITH_FLOPS": "1", "KPROF_WITH_MODULES": "1",
          "KPROF_MAX_MB": "512"}
MODES = {
    "idle": {"KPROF_SCHEDULE": "wait=1000000,warmup=1,active=1"},
    "full": RECORD,
    "windows": {**RECORD, "KPROF_SCHEDULE": "wait=1,warmup=1,active=1", "KPROF_STEP": "time:200ms"},
    "children": {"KPROF_CHILDREN": "1", "KPROF_MAX_MB": "256"},
    "malloc": {"KPROF_MALLOC": "trace", "KPROF_MAX_MB": "512"},
}
