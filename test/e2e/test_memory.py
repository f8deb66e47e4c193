# SPDX-License-Identifier: Apache-2.0
"""KPROF_PROFILE_MEMORY: what the allocators took and gave back, as torch.profiler tells it; and the host hears nothing of it."""
import collections

import pytest

import facts
import harness

PROGRAMS = ["memory.py", "transformer.py", "mapped.py"]
SCHEDULE, PLAN = "wait=1,warmup=1,active=6,repeat=1", "1,1,6,1"


def reports(trace, whole=False):
    """Each event of memory in order of time, with the last op that began before it and goes on; addresses as numbers in order of first sight."""
    loaded = facts.load(trace)
    marks = facts.steps(loaded)
    low, high = facts.begin(marks[0]), facts.end(marks[-1])
    ops = {key: collections.deque(line) for key, line in facts.by_thread(facts.host_events(loaded)).items()}
    open_ops = collections.defaultdict(list)
    rows, seen = [], {}
    found = [e for e in loaded["traceEvents"] if e.get("name") in ("[memory]", "[OutOfMemory]")]
    for event in sorted(found, key=facts.begin):
        at, args = facts.begin(event), event["args"]
        line, stack = ops[event["pid"], event["tid"]], open_ops[event["pid"], event["tid"]]
        while line and facts.begin(line[0]) <= at:
            stack.append(line.popleft())
        while stack and facts.end(stack[-1]) <= at:
            stack.pop()
        if whole or low <= at < high:
            number = seen.setdefault(args.get("Addr"), len(seen))
            rows.append((event["name"], args["Bytes"], args["Device Type"], args["Device Id"], args["Total Reserved"], number,
                         args["Total Allocated"], stack[-1]["name"] if stack else None))
    return rows


@pytest.fixture(scope="session")
def pair(oracle, ours):
    def make(program):
        return (oracle(program, schedule=PLAN, memory=True), ours(program, schedule=SCHEDULE, KPROF_PROFILE_MEMORY=1, **harness.LATE))

    return make


@pytest.mark.parametrize("program", PROGRAMS)
def test_states_the_same_blocks(program, pair):
    reference, candidate = pair(program)
    theirs, mine = reports(reference.trace), reports(candidate.trace)
    assert len(theirs) > 100
    pick = [0, 1, 2, 3, 4, 6, 7]  # not where the blocks lie
    assert [[row[i] for i in pick] for row in mine] == [[row[i] for i in pick] for row in theirs]


def test_mapped_weights_are_parameters(pair):
    """The file is one block; torch.profiler tells its size, and so do we. What was mapped before a window and unmapped in it is an event, too."""
    _, candidate = pair("mapped.py")
    blocks = reports(candidate.trace)
    assert sum(row[1:5] == (40000, 0, -1, 40000) and row[6] == 0 for row in blocks) == 6  # from_file
    assert sum(row[1:5] == (-4000, 0, -1, 0) for row in blocks) == 1
    assert sum(row[1] == 8192 and row[4] == 8192 for row in blocks) >= 4  # batches of workers
    said = harness.cli("memory", candidate.trace).stdout
    rows = {line[:20].strip(): line[20:].split() for line in said.splitlines() if line.startswith("  ")}
    assert rows["Optimizer state"][:2] == ["137.03", "KiB"] and 137 < float(rows["Parameter"][0]) < 144, said  # the file has a head


def test_each_window_knows_its_own_blocks(ours):
    """See docs/decisions/020: torch's totals go on from window to window, with sizes of blocks that are long gone."""
    run = ours("memory.py", schedule="wait=1,warmup=1,active=2,repeat=3", KPROF_PROFILE_MEMORY=1, **harness.LATE)
    assert len(run.traces) == 3
    for trace in run.traces:
        total, taken = 0, {}
        for name, count, _, _, _, number, after, _ in reports(trace, whole=True):
            if name == "[memory]":
                total += count
                assert after == total
                assert taken.pop(number) == -count if count < 0 else taken.setdefault(number, count) == count


def test_a_block_asked_for_in_vain(pair):
    _, candidate = pair("memory.py")
    first = facts.load(candidate.trace)
    found = [e["args"]["Bytes"] for e in first["traceEvents"] if e.get("name") == "[OutOfMemory]"]
    assert found == [1 << 60]


def test_the_program_hears_nothing(pair, tmp_path):
    """torch.profiler makes libc10 warn of blocks it does not know; we must not."""
    reference, candidate = pair("memory.py")
    plain = harness.run_plain("memory.py", tmp_path, warm_start=True)
    assert candidate.out == plain.out
    assert [line for line in candidate.err.splitlines() if not line.startswith("kprof:")] == plain.err.splitlines()


def test_report_has_torchs_columns(oracle, pair):
    reference, candidate = pair("memory.py")
    shown = harness.cli("report", "--torch", reference.trace, "--sort-by", "self_cpu_memory_usage")
    mine = harness.cli("report", "--torch", candidate.trace, "--sort-by", "self_cpu_memory_usage")
    assert "Self CPU Mem" in shown.stdout and "Self CPU Mem" in mine.stdout

    def columns(text):
        lines = [line for line in text.splitlines() if line and not line.startswith(("-", "Self CPU time total"))]
        head = next(line for line in lines if "CPU Mem" in line)
        at = [head.index("CPU Mem") + len("CPU Mem"), head.index("Self CPU Mem") + len("Self CPU Mem")]
        rows = collections.Counter()
        for line in lines[lines.index(head) + 1:]:
            name = line[:head.index("Name") + 4].strip()
            rows[name, *(line[:end].split("  ")[-1].strip() for end in at)] += 1
        return rows

    assert columns(mine.stdout) == columns(shown.stdout)


ADAM = """import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.Adam(model.parameters())
def main():
    for step in range(6):
        model(torch.ones(8, 512)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
main()
"""


def test_rows_that_read_the_same_are_one(tmp_path):
    """Adam makes exp_avg and exp_avg_sq at two lines of its own, which one line of the program calls."""
    program = tmp_path / "adam.py"
    program.write_text(ADAM)
    run = harness.run_kprof("adam.py", tmp_path / "out", command=[harness.PYTHON, program], schedule=None, KPROF_PROFILE_MEMORY=1, KPROF_WITH_STACK="ops").ok()
    lines = harness.cli("memory", run.trace).stdout.split("Live at the peak, by op\n")[1].split("\n\n")[0].splitlines()[1:]
    shown = [line.split(None, 3)[3] for line in lines if "more row" not in line]
    assert len(shown) == len(set(shown)), lines
    states, = [line for line in lines if "Optimizer state" in line and "aten::zeros_like" in line]
    assert states.split()[:3] == ["4.01", "MiB", "8"] and "adam.py:7 main" in states  # two states of two weights and two biases
