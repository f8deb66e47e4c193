# SPDX-License-Identifier: Apache-2.0
"""A line a step (KPROF_SUMMARY), what follows from it (KPROF_TRIGGER, KPROF_PROM), kprof watch, and the newest traces (KPROF_KEEP)."""
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import time

import facts
import harness

HEAD, LINE = struct.Struct("<8sIIiIIIQQQQ65s128s46s209x"), struct.Struct("<7Q9I4x")


def head_of(path):
    names = "magic head line pid rank ranks state start begin beat lost host script job".split()
    return dict(zip(names, HEAD.unpack_from(path.read_bytes())))


def lines_of(path):
    names = "step end dur min median p99 max count recorded had waited looked minor major resident collectives".split()
    return [dict(zip(names, line)) for line in LINE.iter_unpack(path.read_bytes()[HEAD.size:])]


def only(folder, pattern="*.steps"):
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def own_clock(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def trained(tmp_path, steps, *longs, **options):
    return harness.run_kprof("step_clock.py", tmp_path / "out", tmp_path / "own.txt", steps, *longs, shapes=False, **options).ok()


def test_each_step_has_a_line_with_its_time(tmp_path):
    trained(tmp_path, 80, 40, schedule="none", KPROF_SUMMARY=1)
    path, own = only(tmp_path / "out"), own_clock(tmp_path / "own.txt")
    lines, head = lines_of(path), head_of(path)
    assert (HEAD.size, LINE.size, head["head"], head["line"], head["magic"]) == (512, 96, 512, 96, b"KPSTEPS1")
    assert head["state"] == 1 and head["lost"] == 0 and head["script"].rstrip(b"\0") == b"step_clock.py"
    assert [line["step"] for line in lines] == [step for step, _, _ in own]
    # The two clocks are read at two places, and a busy machine may stop the program between them: such a step's time is the next one's.
    apart = sorted(abs(line["dur"] - ns) for line, (_, ns, _) in zip(lines[1:], own[1:]))
    assert apart[len(apart) // 2] < 1e6 and abs(sum(line["dur"] for line in lines) - sum(ns for _, ns, _ in own)) < 30e6, apart
    assert statistics.median(at - line["end"] for line, (_, _, at) in zip(lines, own)) < 1e6
    assert lines[40]["dur"] > 0.29e9
    assert not any(line["recorded"] for line in lines) and lines[-1]["resident"] > 50000


def watched_for_one_behind(tmp_path, *odd):
    """What three ranks log, and their folder."""
    ranks, out = [], tmp_path / "out"
    for rank in range(3):
        env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=out, KPROF_TRIGGER="behind", OMP_NUM_THREADS=1, RANK=rank, WORLD_SIZE=3,
                                        LOCAL_RANK=rank, LOCAL_WORLD_SIZE=3)
        command = [str(part) for part in harness.script_command("behind.py", tmp_path / "store", *odd)]
        ranks.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [rank.communicate(timeout=harness.LONG)[1] for rank in ranks]
    assert len(list(out.glob("*.steps"))) == 3, said  # KPROF_SUMMARY is set by it
    return said, out


def test_a_rank_for_which_the_others_wait_records_its_next_steps_and_no_other_does(tmp_path):
    said, out = watched_for_one_behind(tmp_path, 1)
    told = re.search(r"rank 1 is behind: a collective is open for (\d+) % of its steps, and for (\d+) % of those of 2 other ranks: steps", said[1])
    assert told and int(told[1]) + 19 <= int(told[2]), said
    assert not any("is behind" in said[rank] for rank in (0, 2)), said
    assert facts.load(only(out, "*_r1_*.pt.trace.json.gz")) and only(out, "*.pt.trace.json.gz")


def test_of_ranks_that_wait_for_each_other_alike_none_is_recorded(tmp_path):
    said, out = watched_for_one_behind(tmp_path)
    assert not any("is behind" in text for text in said) and not list(out.glob("*.pt.trace.json.gz")), said
    for path in out.glob("*.steps"):  # each rank was looked at: it had the steps and the time for it
        lines = [line for line in lines_of(path) if line["dur"]]
        assert sum(line["count"] for line in lines) >= 32 and lines[-1]["end"] - lines[0]["end"] > 30e9 and any(line["collectives"] for line in lines)


def test_watch_says_that_it_ended(tmp_path):
    trained(tmp_path, 20, schedule="wait=5,active=3,repeat=1", KPROF_SUMMARY=1)
    said = json.loads(harness.cli("watch", tmp_path / "out", "--json").stdout)
    assert said["say"].endswith(" ended after step 19") and not said["goes_on"]
    (rank,) = said["ranks"]
    assert rank["step"] == 19 and rank["rank"] == 0 and rank["state"] == "ended" and rank["script"] == "step_clock.py"
    assert 10 < rank["median_ms"] < 100 and 0 <= rank["on_core"] <= 1 and rank["resident_bytes"] > 50e6
    assert [line["step"] for line in lines_of(only(tmp_path / "out")) if line["recorded"]] == [5, 6, 7]
    text = harness.cli("watch", tmp_path / "out")
    assert text.returncode == 0 and re.search(r"^ +0 +19 +ended", text.stdout, re.M), text.stdout
    nothing = harness.cli("watch", tmp_path)
    assert nothing.returncode == 1 and "KPROF_SUMMARY=1" in nothing.stderr


def test_a_killed_program_leaves_its_lines(tmp_path):
    """The thread writes each second: that is what a kill takes."""
    command = list(map(str, harness.script_command("step_clock.py", tmp_path / "own.txt", 100000)))
    env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path / "out", KPROF_SCHEDULE="none", KPROF_SUMMARY=1)
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + harness.LONG
        while not (tmp_path / "own.txt").exists() or len(own_clock(tmp_path / "own.txt")) < 250:
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.05)
        live = json.loads(harness.cli("watch", tmp_path / "out", "--json", "--once").stdout)
        process.send_signal(signal.SIGKILL)
    lines, own = lines_of(only(tmp_path / "out")), own_clock(tmp_path / "own.txt")
    assert live["goes_on"] and live["ranks"][0]["state"] in ("runs", "silent") and live["ranks"][0]["pid"] == process.pid
    assert [line["step"] for line in lines] == list(range(len(lines)))
    assert own[-1][2] - lines[-1]["end"] < 10e9  # one second, and what a busy machine adds
    said = json.loads(harness.cli("watch", tmp_path / "out", "--json").stdout)
    assert re.match(rf"rank 0 was killed .* after step {lines[-1]['step']}, ", said["say"])
    assert said["ranks"][0]["state"] == "gone"


def test_a_long_step_has_the_next_ones_recorded(tmp_path):
    run = trained(tmp_path, 250, 60, schedule=None, KPROF_SUMMARY=1, KPROF_TRIGGER="step>250ms")
    found = re.search(r"^kprof: step (\d+) took (\d+) ms, the median is (\d+) ms: steps (\d+) to (\d+) are recorded \(KPROF_TRIGGER\)$", run.err, re.M)
    assert found, run.explain()
    step, took, median, first, last = map(int, found.groups())  # a busy machine may make another step as long
    ms = own_clock(tmp_path / "own.txt")[step][1] / 1e6
    assert step <= 60 and took >= 250 > median and ms > 200 and last == first + 2 and first > step
    assert [int(step["name"].split("#")[1]) for step in facts.steps(facts.load(run.trace))] == [first, first + 1, last]
    assert [line["step"] for line in lines_of(only(tmp_path / "out")) if line["recorded"]] == [first, first + 1, last]


def test_a_rule_that_is_none_is_told(tmp_path):
    run = trained(tmp_path, 3, schedule="none", KPROF_TRIGGER="step>fast")
    assert "KPROF_TRIGGER=step>fast needs a factor," in run.err


METRIC = re.compile(r'^kprof_[a-z_]+\{host="[^"]+",rank="\d+",pid="\d+"(?:,quantile="0\.\d+")?\} \d+(?:\.\d{9})?$')


def test_prometheus_gets_a_text_file(tmp_path):
    trained(tmp_path, 60, 30, schedule="wait=5,active=3,repeat=1", KPROF_PROM=tmp_path / "k.prom")
    lines = (tmp_path / "k.prom").read_text().splitlines()
    own = own_clock(tmp_path / "own.txt")
    values = {re.sub(r'host="[^"]+",rank="0",pid="\d+",?', "", line.split(" ")[0]).replace("{}", ""): float(line.split(" ")[1])
              for line in lines if not line.startswith("#")}
    assert all(METRIC.match(line) or re.match(r"# (HELP|TYPE) kprof_", line) for line in lines)
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) and all(any(name.startswith(kind) for kind in types) for name in values)
    assert values["kprof_steps_total"] == 60 and values["kprof_recorded_steps_total"] == 3 and values["kprof_traces_total"] == 1
    assert abs(values["kprof_step_duration_seconds_sum"] - sum(ns for _, ns, _ in own) / 1e9) < 0.1
    assert values['kprof_step_duration_seconds{quantile="0.99"}'] > 0.3 > values['kprof_step_duration_seconds{quantile="0.5"}'] > 0.01
    assert not list(tmp_path.glob("*.new")) and not list((tmp_path / "out").glob("*.steps"))


def test_the_newest_traces_stay(tmp_path):
    run = trained(tmp_path, 60, schedule="wait=3,active=1,repeat=0", KPROF_KEEP=2)
    assert re.search(r"wrote 15 traces", run.err), run.explain()
    steps = [int(facts.steps(facts.load(path))[0]["name"].split("#")[1]) for path in run.traces]
    assert steps == [55, 59], steps


def test_each_rank_has_its_lines(tmp_path):
    """Two ranks over gloo; the second stops: watch names it."""
    script = harness.script_command("ranks.py", "until", tmp_path / "end")
    processes, port = [], 20000 + os.getpid() % 20000
    for rank in range(2):
        env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path / "out", KPROF_SCHEDULE="none", KPROF_SUMMARY=1,
                                        RANK=rank, WORLD_SIZE=2, LOCAL_RANK=rank, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        processes.append(subprocess.Popen(list(map(str, script)), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        until, said = time.monotonic() + harness.LONG, {"ranks": []}
        while len([rank for rank in said["ranks"] if rank.get("step", 0) > 20]) < 2:
            assert time.monotonic() < until
            time.sleep(0.2)
            answer = harness.cli("watch", tmp_path / "out", "--json", "--once")
            said = json.loads(answer.stdout) if answer.returncode == 0 else {"ranks": []}
        assert [rank["rank"] for rank in said["ranks"]] == [0, 1] and {rank["ranks"] for rank in said["ranks"]} == {2}
        processes[1].send_signal(signal.SIGKILL)
        processes[1].wait()
        said = json.loads(harness.cli("watch", tmp_path / "out", "--json", "--once").stdout)
        assert re.match("rank 1 was killed .* after step ", said["say"])
        assert [rank["state"] for rank in said["ranks"]][1] == "gone"
    finally:
        for process in processes:
            process.kill()
            process.wait()
