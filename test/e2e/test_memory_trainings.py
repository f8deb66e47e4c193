# SPDX-License-Identifier: Apache-2.0
"""kprof memory beside export_memory_timeline: bytes at the peak by category, in windows of three steps of eight trainings."""
import gzip
import importlib.util
import json

import pytest

import facts
import harness

SCRIPT = "memory_trainings.py"
NAMES = PARAMETER, STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT, AUTOGRAD, UNKNOWN, BEFORE = (
    "Parameter", "Optimizer state", "Input", "Temporary", "Activation", "Gradient", "Autograd detail", "Unknown", "Before recording")
NOWHERE = "not counted"
RECORDINGS = [["mlp", "cnn", "accumulate", "gan", "checkpoint", "autocast"], ["lightning"], ["gpt2"]]  # one program each
NEEDS = {"lightning": "lightning", "gpt2": "transformers"}


def adam(largest, bias):
    """The peak lies in Adam's step: sqrt(v), that divided by a number, and the bias's as well; torch follows data flow into these."""
    return [(PARAMETER, TEMPORARY, 4 * largest), (ACTIVATION, TEMPORARY, 4 * (largest + bias)), (INPUT, TEMPORARY, 8)]


# [torch's category, ours, bytes, or the least and most of them]: docs/decisions/106 says why each is so
DIFFERENCES = {
    "mlp": adam(64 * 128, 128),
    "cnn": [(INPUT, BEFORE, 2 * 4 * (8 + 16)), (UNKNOWN, BEFORE, 2 * 8),  # batch norm: running mean and variance, and two counters
            (UNKNOWN, TEMPORARY, (0, 4 * 4 * 8 * 16 * 16))],  # what the convolution needs for a moment: the kernels of this CPU say how much
    "accumulate": [(UNKNOWN, AUTOGRAD, 4 * 64)],  # the second batch's gradient of a bias
    "gan": [*adam(64 * 100, 64), (INPUT, BEFORE, 2 * 4 * 24), (ACTIVATION, BEFORE, 4 * 24 * 100),  # ones and zeros; the fakes of before
            (INPUT, NOWHERE, (0, 4 * 24 * (16 + 64 + 100)))],  # stale: the noise, the ReLU's output and the fakes of before
    "checkpoint": adam(64 * 128, 128),
    "autocast": [(UNKNOWN, AUTOGRAD, (0, 4 * 64)), (UNKNOWN, TEMPORARY, (0, 4 * 128 * 128))],  # scratch of kernels with AVX512_BF16
    "lightning": [*adam(64 * 128, 128), (INPUT, BEFORE, 2 * 4 * 5 * 32 * 64),  # the data set
                  (GRADIENT, NOWHERE, (0, 4 * (2 * 64 * 128 + 128 + 64)))],  # stale: the gradients of before
    "gpt2": [(INPUT, BEFORE, 8 * 12 + 2 * 8 * 4 * 12), (NOWHERE, BEFORE, 8 * 19 * 12),  # a row of the data set and a batch; the other rows
             (INPUT, NOWHERE, (0, 2 * 8 * 4 * 12)), (INPUT, ACTIVATION, 8 * 12), (INPUT, UNKNOWN, 6 * 8),  # stale: a batch; positions; numbers
             (PARAMETER, BEFORE, 4), (UNKNOWN, BEFORE, 4), (ACTIVATION, BEFORE, 4)],
}


@pytest.fixture(scope="session")
def both(recorded, ours):
    """(torch's timeline, our trace) of one training. Several are recorded by one program, which imports torch once."""
    def of(kind):
        kinds = next(kinds for kinds in RECORDINGS if kind in kinds)
        theirs = recorded(("timelines", SCRIPT, *kinds), lambda folder: (harness.run_plain(SCRIPT, folder, ",".join(kinds), folder, warm_start=True).ok(), folder)[1])
        mine = ours(SCRIPT, ",".join(kinds), schedule=f"wait=1,warmup=1,active=3,repeat={len(kinds)}", KPROF_PROFILE_MEMORY=1, **harness.LATE)
        assert len(mine.traces) == len(kinds), mine.explain()
        return theirs / f"{kind}.raw.json.gz", mine.traces[kinds.index(kind)]

    return of


def peak_of_torch(timeline):
    with gzip.open(timeline, "rt") as file:
        rows = sorted(json.load(file), key=lambda row: row[0])
    now, peak = [0] * 8, [0] * 8
    for _, _, size, category in rows:
        now[category] += size
        peak = max(peak, now, key=sum).copy()  # the first of equals
    return dict(zip(NAMES, [*peak, 0]))


def bounds(moves):
    """By category, the least and the most that ours has more than torch's."""
    spans = {name: [0, 0] for name in NAMES}
    for theirs, ours, size in moves:
        least, most = size if isinstance(size, tuple) else (size, size)
        for name, low, high in ((theirs, -most, -least), (ours, least, most)):
            if name != NOWHERE:
                spans[name] = [spans[name][0] + low, spans[name][1] + high]
    return spans


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_the_peak_has_torchs_bytes_of_each_category(kind, both):
    if kind in NEEDS and not importlib.util.find_spec(NEEDS[kind]):
        pytest.skip(f"{NEEDS[kind]} is not installed")
    timeline, trace = both(kind)
    shown = harness.cli("memory", "--json", "--step", "all", trace)
    assert shown.returncode == 0, shown.stderr
    (device,) = json.loads(shown.stdout)["devices"]
    theirs, mine = peak_of_torch(timeline), {name: device["peak"].get(name, 0) for name in NAMES}
    assert sum(mine.values()) == device["peak"]["total"] and mine[PARAMETER] > 0 and mine[STATE] > 0 and mine[GRADIENT] > 0
    assert len(facts.steps(facts.load(trace))) == 3
    for name, (least, most) in bounds(DIFFERENCES[kind]).items():
        assert least <= mine[name] - theirs[name] <= most, f"{name}: {theirs} {mine}"
