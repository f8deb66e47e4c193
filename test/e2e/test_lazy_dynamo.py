# SPDX-License-Identifier: Apache-2.0
"""startup/lazy_dynamo.py: an optimizer steps without torch._dynamo, and whoever needs more of it has the real one, also for what stepped before."""
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
print([name for name in sys.modules if name.startswith("torch._dynamo")])
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
    assert run.out.splitlines() == ["['torch._dynamo']", "True True 2.0", "True 3.0"]
