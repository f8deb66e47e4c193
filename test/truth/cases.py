# SPDX-License-Identifier: Apache-2.0
"""Sick and healthy programs, the command that a user would type, and what kprof must say of them.

Run: flags of `kprof run`, then a command that reads what it left. Told: a finding by its id, with the key of the
program's own TRUTH that it must equal within a tenth; the line and words that it must have. Each finding that none of
a case's Told names is false, but for those in `also`: a busy machine makes steps slow.
"""
import dataclasses
import pathlib

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
BUSY = {"slow-steps", "slower-steps"}  # others on these cores may cause these; a case that judges them leaves this out
CROWD = {"slow-steps", "too-many-threads", "no-op-runs"}  # of burners, or of torch's threads beside another one
STACKS, SOME = ["--with-stack", "ops"], ["--with-stack", "1", "--schedule", "10-30"]


def at(program, text, more=""):
    """PROGRAM:LINE of the line that begins with this text."""
    lines = (PROGRAMS / program).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if line.strip().startswith(text)]
    assert len(found) == 1, f"{program}: {text}: {found}"
    return f"{program}:{found[0]}{more}"


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
class Known:
    """A row that is told wrong, and cannot yet be told right."""
    wrong: str  # the one thing that is wrong: false, cost, not told, or the begin of `says no /.../`
    why: str
    share: float = None  # said over true, within 0.1


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
    ranks: int = 0  # by torchrun
    than: list = None  # arguments of a second recording, which `read` compares
    known: dict = dataclasses.field(default_factory=dict)  # by the id of what is told: Known
    fills: bool = False  # its own processes fill the cores: without one its cost is not judged, but its names are
    refuses: str = ""  # the command may refuse, with these words


BATCHES = ("[Ll]arger batches",)
AGAIN = Told("recompilation", "excess_ms", line="recompiles.py", severity="critical", says=("each 3rd step",))
LEAK = Told("heap-grows", "kept_bytes", line="numpyleak.py", severity="critical")
WAITS = {  # of waiting.py: by way, what is told once calls are recorded
    "sleep": "sleeps-in-step", "lock": "lock-wait", "socket": "network-wait", "process": "process-wait", "file": "file-io"}
RARE, OFTEN = r"each 50th step", r"each 10th step"
COUNTED = ["report", "--within", "answer"]
CASES = [
    Case("1a tokenizer in collate", "collated.py", STACKS, [Told("data-loading", "load_own_ms", line="collated.py", severity="critical")], args=["0"], quick=True),
    Case("1a its twin", "collated.py", STACKS, [], args=["0", "fast"]),
    Case("1b two workers", "collated.py", [*SOME, "--children"], [Told("data-loading", "load_own_ms", line="collated.py", severity="critical",
         says=(rf"first at {at('collated.py', 'def tokenize')} def tokenize", "More workers do not help"))], args=["2"], fills=True),
    Case("2 log and save", "monitored.py", STACKS, args=["both"], also={"slower-steps"}, told=[
        Told("slow-steps", "log_ms", line=at("monitored.py", "return ["), says=(OFTEN,)),
        Told("slow-steps", "save_ms", line=at("monitored.py", "torch.save"), says=(RARE,))]),
    Case("2 log little and save", "monitored.py", STACKS, args=["little"], also={"slower-steps"}, told=[  # 1.2 to 1.4 medians
        Told("slow-steps", "log_ms", line=at("monitored.py", "return ["), says=(OFTEN,)),
        Told("slow-steps", "save_ms", line=at("monitored.py", "torch.save"), says=(RARE,))]),
    Case("2 its twin", "monitored.py", STACKS, [], args=["none"]),
    Case("5 cold files", "smallfiles.py", SOME, [Told("file-io", "files_ms", line=at("smallfiles.py", "large = ", " load"), severity="critical")], args=["files"], also={"slower-steps"},
         unsaid=BATCHES),
    Case("5 cold files, stacks of ops", "smallfiles.py", STACKS, [Told("waits-in-step", "reads_ms", line="smallfiles.py")], args=["files"], also=set(),
         unsaid=("graph kept alive",)),
    Case("5 its twin", "smallfiles.py", STACKS, [], args=["none"]),
    Case("7a slow shard of rank 1", "ranks.py", STACKS, args=["slow"], ranks=2, told=[
        Told("late-rank", "load_ms", line=at("ranks.py", "x = next(loader", " main"), severity="critical"), Told("data-loading", "load_ms", line="ranks.py", severity="critical"),
        Told("exposed-communication", says=("waits for rank 1, which arrived last at ",))]),
    Case("7a slow shard of rank 1 of 4", "ranks.py", STACKS, args=["slow"], ranks=4, also={"data-loading", "no-op-runs", *BUSY}, told=[  # on two cores its order and names are judged, and no time
        Told("late-rank", line=at("ranks.py", "x = next(loader", " main"), severity="critical", says=("the other ranks wait for this one",)),
        Told("exposed-communication", says=("waits for rank 1, which arrived last at ",))]),
    Case("7a its twin", "ranks.py", STACKS, [], args=["even"], ranks=2, also={"exposed-communication", "no-op-runs", *BUSY}),  # of short steps, DDP's Python is much
    Case("7b rank 1 hangs", "ranks.py", STACKS, args=["hang"], ranks=2, code=1, read=["advise"], unsaid=("[Ss]end less", "late by its own"), told=[
        Told("text", "seconds", says=(r"\ASTUCK +rank 1 has been in enumerate\(DataLoader\)\S+ for ([\d.]+) s",)),
        Told("text", says=(rf"for [\d.]+ s, at {at('ranks.py', 'x = next(loader')} main",))]),
    Case("10 evaluation", "evaluates.py", STACKS, args=["often"], read=["advise"], quick=True, told=[
        Told("text", "evaluation_each_ms", says=(r"forward passes without backward, ([\d.]+) (?:us|ms|s) per evaluation", OFTEN.replace("10", "20")))]),
    Case("10 its twin", "evaluates.py", STACKS, [], args=["none"]),
    *(Case(f"11 a server's p{q}", "server.py", ["--with-stack", "1"], read=COUNTED, quick=q == 99, told=[Told("text", f"p{q}_ms", says=(rf"p{q} ([\d.]+) (?:us|ms|s)\b",), slack=0.05)])
      for q in (50, 90, 99)),
    Case("11 its slowest calls", "server.py", ["--with-stack", "1"], read=COUNTED, quick=True, told=[
        Told("text", "slowest_more_ms", says=(r"\d of 600 calls take [\d.]+ \w+ or longer, ([\d.]+) (?:us|ms|s) more than the others; [\d.]+ \w+ of that is aten::addmm, at",)),
        Told("text", says=(rf"(?m)^slowest .* is aten::addmm, at {at('server.py', 'return self.layers')} forward",))]),
    Case("11 its steps by call", "server.py", [*STACKS, "--step", "call:__main__:answer"], []),
    Case("11 its twin, never idle", "server.py", [*STACKS, "--step", "call:__main__:answer"], [], args=["busy"]),
    Case("12 two commits", "commits.py", STACKS, args=["first"], than=["second"], read=["diff"], told=[
        Told("text", "less_ms", says=(r"change +[a-z ]+: -([\d.]+) (?:us|ms|s) per step",))]),
    Case("12 its twin", "commits.py", STACKS, args=["second"], than=["second"], read=["diff"], told=[Told("text", says=("no change beyond noise|not certain",))]),
    Case("13 numpy processes", "arrays.py", ["--with-stack", "1", "--children"], args=["4"], read=["report"], refuses="No such file", told=[
        Told("text", says=(r"nothing was recorded: \S+ ran no PyTorch op .* plain Python\.",))]),
    Case("15 sample by sample", "peaks.py", STACKS, [Told("small-ops-in-a-loop", "follow_ms", line="peaks.py", severity="warning")], args=["loop"]),
    Case("15 its twin", "peaks.py", STACKS, [], args=["windows"]),
    *(Case(f"14 C by ctypes{how}", "native.py", flags, [Told("no-op-runs", "native_own_ms", line=line, says=(rf"([\d.]+) ms of it {where}{alone}",))])
      for how, flags, line, where, alone in (("", STACKS, "native.py", "before", '|"where": "[^"]*zero_'),  # nearly all of the cost is that one gap
                                    *((", its line", SOME, line, f"in {line}", "") for line in (at("native.py", "def guard", " def guard"),)))),
    Case("14 its twin", "native.py", STACKS, [], args=["none"]),
    Case("3 gil", "gil.py", STACKS, [Told("gil-wait", "idle_ms", says=("Python's lock",))], unsaid=BATCHES, quick=True),
    Case("3 gil, its line", "gil.py", SOME, [Told("gil-wait", "idle_ms", line=at("gil.py", "def smooth", " def smooth"))], unsaid=BATCHES),
    *(Case(f"3 gil, {threads} threads of torch, {burners} burners", "heldlock.py", STACKS, [Told("gil-wait", "idle_ms", says=("Python's lock",))], unsaid=BATCHES,
           args=["computes", threads, burners], also=CROWD) for threads, burners in (("1", "2"), ("2", "0"), ("2", "1"))),
    *(Case(f"3 its twin, {threads} threads of torch, {burners} burners", "heldlock.py", STACKS, [], args=["sleeps", threads, burners], also=CROWD)
      for threads, burners in (("1", "2"), ("2", "1"))),
    Case("4 queue", "queued.py", STACKS, [Told("waits-in-step", "get_ms", line="queued.py", severity="critical")], unsaid=BATCHES),
    Case("4 queue, for whom", "queued.py", SOME, unsaid=BATCHES, quick=True, told=[
        Told("queue-wait", "get_ms", line=at("queued.py", "x = batches.get", " main"), severity="critical", says=(rf"fills it at {at('queued.py', 'batches.put')} feed, and sleeps at queued\.py:\d+ (?:def )?fetch for 9",))]),
    *(Case(f"waits: {way}", "waiting.py", SOME, [Told(told, "wait_ms", line="waiting.py", severity="critical")], args=[way], unsaid=BATCHES)
      for way, told in WAITS.items()),
    *(Case(f"waits: {way}, stacks of ops", "waiting.py", STACKS, [Told("waits-in-step", "idle_ms", line="waiting.py", severity="critical")], args=[way],
           unsaid=BATCHES) for way in WAITS if way != "file"),
    *(Case(f"waits: no optimizer, {way}", "byhand.py", ["--with-stack", "1"], [Told("sleeps-in-step", "wait_ms", line="byhand.py", severity="critical")], args=[way],
           unsaid=BATCHES, quick=way == "gan") for way in ("micro", "gan", "func")),
    Case("waits: its twin", "waiting.py", STACKS, [], args=["compute"]),
    Case("9 recompilation", "recompiles.py", STACKS, [AGAIN], args=["aot_eager"], quick=True),
    Case("9 recompilation, its size", "recompiles.py", [*STACKS, "--record-shapes"], args=["aot_eager"], told=[
        Told("recompilation", "excess_ms", severity="critical", says=(r"is \(8, 28\.\.\d+, 512\)", r"mark_dynamic\(tensor, 1\)"))]),
    Case("9 recompilation, inductor", "recompiles.py", STACKS, [AGAIN], args=["inductor"]),
    Case("8 killed, report", "killed.py", ["--advise", *STACKS], args=["kill"], code=-9, read=["report"], quick=True, told=[
        Told("text", says=(r"killed +by SIGKILL( at \S+ \S+( \(not the main thread\))?)? (in step 20|\d\.\d s after step 19), in aten::mm, killed\.py:\d+ similarity, called from killed\.py:\d+ main, which had run for (1[5-9]|[2-9]\d|\d{3})\d\d\.\d ms; it used at most \S+ Gi?B",))]),
    Case("8 killed, advise", "killed.py", ["--advise", *STACKS], args=["kill"], code=-9, read=["advise"], told=[
        Told("text", says=(r"\Akilled +by SIGKILL( at \S+ \S+( \(not the main thread\))?)? (in step 20|\d\.\d s after step 19), in aten::mm, killed\.py:\d+ similarity, called from killed\.py:\d+ main, which had run for ",))]),
    Case("6c hook keeps features", "keeping.py", ["--profile-memory", *STACKS], args=["hook"], quick=True, told=[
        Told("memory-grows", "kept_bytes", line="keeping.py", severity="critical")]),
    Case("6c its twin", "keeping.py", ["--profile-memory", *STACKS], [], args=["drop"]),
    Case("6b numpy dict, no schedule", "numpyleak.py", ["--malloc", "trace", "--with-stack"], [LEAK], quick=True),
    Case("6b numpy dict, --schedule", "numpyleak.py", ["--malloc", "trace", "--with-stack", "--schedule", "active=1000"], [LEAK]),
    Case("6b numpy dict, --leaks", "numpyleak.py", ["--malloc", "trace", "--with-stack"], [Told("text", says=(r"312\.5\d* KiB a step", r"table at numpyleak\.py"))],
         read=["memory", "--leaks"]),
    Case("6b numpy dict, first run", "numpyleak.py", STACKS, [Told("resident-grows", "kept_bytes", severity="critical", says=("--malloc trace",))], quick=True),
    Case("6b its twin keeps nothing", "numpyleak.py", STACKS, [], args=["150", "drop"], quick=True),
    Case("16 a tracker commits each metric", "tracks.py", SOME, [Told("file-io", "track_ms", line=at("tracks.py", "self.db.commit", " log"), severity="critical")], args=["each"],
         unsaid=BATCHES),
    Case("16 its twin", "tracks.py", SOME, [], args=["end"]),
    Case("17 a metric over all steps", "scores.py", STACKS, args=["all"], also={"resident-grows", "slow-steps"}, quick=True, told=[
        Told("slower-steps", "more_ms", line="scores.py", within=0.2)]),  # the first steps of a few: less sure than a mean
    Case("17 its twin", "scores.py", STACKS, [], args=["last"]),
    Case("18 the machine gets busier", "busier.py", STACKS, args=["burners"], also={"slow-steps"}, told=[
        Told("text", says=(r"The machine got busier: a step waited [\d.]+ m?s for a core in the first third of these steps, and",))]),
    Case("18 its twin", "busier.py", STACKS, [], args=["none"]),
]
