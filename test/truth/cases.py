# SPDX-License-Identifier: Apache-2.0
"""Sick and healthy programs, the command that a user would type, and what kprof must say of them.

Run: flags of `kprof run`, then a command that reads what it left. Told: a finding by its id, with the key of the
program's own TRUTH that it must equal within a tenth; the line and words that it must have. Each finding that none of
a case's Told names is false, but for those in `also`: a busy machine makes steps slow.
"""
import dataclasses

BUSY = {"slow-steps", "slower-steps"}  # others on these cores may cause these; a case that judges them leaves this out
STACKS, CALLS, SOME = ["--with-stack", "ops"], ["--with-stack", "1"], ["--with-stack", "1", "--schedule", "10-30"]


@dataclasses.dataclass
class Told:
    id: str  # a finding's; "text": the command's output
    truth: str = ""  # key of TRUTH, of step_ms or step_bytes; "": no figure
    line: str = ""  # is in the line, or in what says where
    says: tuple = ()  # patterns in what it says
    severity: str = ""
    within: float = 0.1
    slack: float = 0.3  # ms, or KB: two clocks differ by that


@dataclasses.dataclass
class Case:
    name: str
    program: str
    flags: list
    told: list
    args: list = dataclasses.field(default_factory=list)
    also: set = dataclasses.field(default_factory=lambda: set(BUSY))
    read: list = dataclasses.field(default_factory=lambda: ["advise", "--json"])
    unsaid: tuple = ()  # patterns that nothing of the output may have
    code: int = 0  # the program's status
    quick: bool = False  # in CI, too


LEAK = Told("heap-grows", "kept_bytes", line="numpyleak.py", severity="critical")
CASES = [
    Case("6b numpy dict, no schedule", "numpyleak.py", ["--malloc", "trace", "--with-stack"], [LEAK], quick=True),
    Case("6b numpy dict, --schedule", "numpyleak.py", ["--malloc", "trace", "--with-stack", "--schedule", "active=1000"], [LEAK]),
    Case("6b numpy dict, --leaks", "numpyleak.py", ["--malloc", "trace", "--with-stack"], [Told("text", says=(r"312\.5\d* KB a step", r"table at numpyleak\.py"))],
         read=["memory", "--leaks"]),
    Case("6b numpy dict, first run", "numpyleak.py", STACKS, [Told("resident-grows", "kept_bytes", severity="critical", says=("--malloc trace",))], quick=True),
    Case("6b its twin keeps nothing", "numpyleak.py", STACKS, [], args=["150", "drop"], quick=True),
]
