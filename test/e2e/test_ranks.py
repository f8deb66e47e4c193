# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks: which of them record (KPROF_RANKS), and how all begin with one step (kprof ctl DIR start)."""
import contextlib
import ctypes
import errno
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

import facts
import harness
import pytest
from minitorch import told


STEPPED = """
step = ctypes.CDLL(None).kprof_step
for _ in range(6):
    op(b"aten::linear"), step()
"""


def run_ranks(folder, script, ranks, size, **settings):
    command = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), script]
    return harness.run_kprof(None, folder, command=command, KPROF_RANKS=ranks, **settings).ok()


def run_alone(folder, script, ranks, size, **settings):
    """Ranks one after another, each with its variables as a launcher sets them; [(traces of it, lines of it)]."""
    runs = []
    for rank in range(size):
        runs.append(harness.run_kprof(script, folder / str(rank), KPROF_RANKS=ranks, RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=size, **settings).ok())
    return [(run.traces, told(run.said)) for run in runs]


def ranks_of(run, size):
    found = [facts.load(path)["distributedInfo"] for path in run.traces]
    assert {info["world_size"] for info in found} <= {size}
    return sorted(info["rank"] for info in found)


def test_only_the_first_rank_of_a_node_records(mini, tmp_path):
    run = run_ranks(tmp_path / "out", mini(STEPPED), "first-of-node", 2)
    assert ranks_of(run, 2) == [0], run.explain()
    assert [re.search(r"_r(\d)_\d+\.\d+\.pt", path.name)[1] for path in run.traces] == ["0"]
    assert len(told(run.said)) == 1 and run.spools == [], run.explain()
    assert len(facts.steps(facts.load(run.trace))) == 3


@pytest.mark.parametrize("ranks, size, want", [("0,2-3", 4, [0, 2, 3]), ("1/2", 3, [0, 2]), ("first-of-node", 2, [0])])
def test_only_the_ranks_that_are_named_record(mini, tmp_path, ranks, size, want):
    alone = run_alone(tmp_path, mini(STEPPED), ranks, size)
    assert [len(traces) for traces, _ in alone] == [len(said) for _, said in alone] == [int(rank in want) for rank in range(size)], alone
    assert not list(tmp_path.glob("*/*.kprof"))
    for rank in want:
        path, = alone[rank][0]
        trace = facts.load(path)
        assert re.search(r"_r(\d)_\d+\.\d+\.pt", path.name)[1] == str(rank) and len(facts.steps(trace)) == 3
        assert (trace["distributedInfo"]["rank"], trace["distributedInfo"]["world_size"]) == (rank, size)


def test_a_rank_that_is_left_out_records_nothing_without_a_schedule_either(mini, tmp_path):
    alone = run_alone(tmp_path, mini(STEPPED), "1", 2, schedule=None, KPROF_PHASES="")
    assert [(len(traces), len(said)) for traces, said in alone] == [(0, 0), (1, 1)], alone
    assert facts.load(alone[1][0][0])["distributedInfo"]["rank"] == 1


def test_a_rank_that_is_left_out_refuses_a_start(mini, tmp_path):
    script = mini("op(b'aten::ones'); print(ctypes.CDLL(None).kprof_start())\n")
    run = harness.run_kprof(script, tmp_path / "out", schedule=None, RANK=1, WORLD_SIZE=2, KPROF_RANKS="0").ok()
    assert run.out == "-13\n" and run.traces == [] and told(run.said) == [], run.explain()


def test_ranks_that_no_launcher_started_are_named_by_their_process_group(tmp_path):
    run = harness.run_kprof("spawn_ranks.py", tmp_path / "out", schedule=None, OMP_NUM_THREADS=1, KPROF_RANKS="1").ok()
    assert ranks_of(run, 2) == [1] and not run.spools and "names no rank" not in run.explain(), run.explain()


@pytest.mark.parametrize("ranks, line", [
    ("0;1", "kprof: KPROF_RANKS=0;1 is none of 0,8-15, first-of-node, 1/16, using all ranks"),
    ("7", "kprof: no trace: KPROF_RANKS=7 names no rank of this job, which has 2"),
    ("first-of-node", "kprof: KPROF_RANKS=first-of-node finds no LOCAL_RANK (or SLURM_LOCALID, ...), using all ranks"),
])
def test_a_bad_value_is_one_line(mini, tmp_path, ranks, line):
    run = harness.run_kprof(mini("op(b'aten::ones')\n"), tmp_path / "out", schedule=None, RANK=0, WORLD_SIZE=2, KPROF_RANKS=ranks).ok()
    assert told(run.said)[0] == line and [one for one in run.said if "KPROF_RANKS" in one] == [line], run.explain()
    assert len(run.traces) == ("no trace" not in line), run.explain()


def said_at_end(folder, *traces):
    """What kprof run says when a program has written these traces, in their order."""
    folder.mkdir()
    each = f"for trace; do cp $trace {folder}; sleep 0.05; done"  # files' times are of a clock of some milliseconds
    return harness.cli("run", "--advise", "-o", folder, "--", "sh", "-c", each, "sh", *traces).stderr


def run_late(folder, *arguments, **settings):
    """The number of the line at which rank 1 is late, the traces, and their findings by rank."""
    program = harness.SCRIPTS / "late_rank.py"
    command = [harness.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program, *arguments]
    run = harness.run_kprof(None, folder, command=command, OMP_NUM_THREADS=1, schedule="wait=1,warmup=1,active=7,repeat=1", **settings).ok()
    found = {json.loads(line)["file"]: json.loads(line)["findings"] for line in harness.cli("advise", "--json", *run.traces).stdout.splitlines()}
    number = next(i for i, line in enumerate(program.read_text().splitlines(), 1) if "# line: slow" in line)
    return number, run.traces, {rank: next(f for file, f in found.items() if f"_r{rank}_" in file) for rank in (0, 1)}


def test_the_late_rank_is_told_with_its_line(tmp_path):
    number, traces, of = run_late(tmp_path / "out", KPROF_WITH_STACK="ops", KPROF_RECORD_SHAPES=1)
    line = rf"; late_rank\.py:{number} load takes ([0-9.]+) ms per step there, ([0-9.]+) ms on the other\. [^.]* aten::mm 13 times .* 1\.$"
    waits, late = of[0][0], of[1][0]
    assert waits["what"].startswith("the step waits for rank 1, ") and late["id"] == "late-rank", of
    assert late["line"] == f"late_rank.py:{number} load", late
    for finding in (waits, late):
        there, other = map(float, re.search(line, finding["change"]).groups())
        assert there > 1 and other == 0
    assert "healthy" not in harness.cli("advise", *traces).stdout
    alone = next(path for path in traces if "_r0_" in path.name)
    assert f"late_rank.py:{number} load takes " in said_at_end(tmp_path / "both", *traces)
    assert "First compare the ranks: `kprof advise` with the traces of all" in said_at_end(tmp_path / "alone", alone)


@pytest.mark.parametrize("shapes", [True, False])
def test_the_late_rank_is_told_with_its_larger_inputs(tmp_path, shapes):
    number, _, of = run_late(tmp_path / "out", "larger", KPROF_WITH_STACK="ops", KPROF_RECORD_SHAPES=int(shapes))
    for finding in (of[0][0], of[1][0]):
        assert re.search(rf"\. Its inputs are 16\.0 times as large from aten::fill_ at late_rank\.py:{number} load on: \[400, 400\] there, \[100, 100\] on the other\.$"
                         if shapes else r"\. Larger inputs .*: kprof run --record-shapes [^.]*\.$", finding["change"]), of


# ---- the process group knows it ----


def test_ranks_that_mp_spawn_starts_are_told_as_torch_profiler_tells_them(tmp_path):
    harness.run_plain("spawn_ranks.py", tmp_path, tmp_path, warm_start=True).ok()
    torchs = [json.loads((tmp_path / f"rank{rank}.json").read_text())["distributedInfo"] for rank in (0, 1)]
    run = harness.run_kprof("spawn_ranks.py", tmp_path / "out", schedule=None, OMP_NUM_THREADS=1).ok()
    ranks = {int(found[1]): path for path in run.traces if (found := re.search(r"_r(\d)_\d+\.\d+\.pt", path.name))}
    assert sorted(ranks) == [0, 1] and len(run.traces) == 3, run.explain()
    assert [facts.load(ranks[rank])["distributedInfo"] for rank in (0, 1)] == torchs
    said = said_at_end(tmp_path / "again", *ranks.values(), *set(run.traces) - set(ranks.values()))  # the parent's is the last
    assert "kprof: " in said and "no steps" not in said and "not read for this" not in said, said
    advice = harness.cli("advise", tmp_path / "out")
    assert "one run" not in advice.stderr, advice.stderr
    assert re.search(r"^ranks    rank 1 arrived last at ", advice.stdout, re.M), advice.stdout
    latest = harness.cli("advise", tmp_path / "out" / "latest")
    assert "latest run: 2 files" in latest.stderr and re.search(r"^ranks    ", latest.stdout, re.M), latest.stderr + latest.stdout


@pytest.mark.parametrize("schedule", [None, "wait=2,warmup=1,active=1,repeat=2"])
def test_the_groups_of_a_rank_are_told_as_torch_profiler_tells_them(tmp_path, schedule):
    oracle = harness.Oracle("groups.py", tmp_path / "torch", OMP_NUM_THREADS=1)
    run = harness.run_kprof("groups.py", tmp_path / "ours", schedule=schedule, OMP_NUM_THREADS=1).ok()
    line = re.search(r'"distributedInfo": (.*),\n', oracle.trace.read_text())[1]
    want = json.loads(line.replace('/"', '\\"'))  # torch 2.15 writes no valid JSON where a description has a quote
    assert len(want["pg_config"]) == want["pg_count"] == 2
    for path in run.traces:
        assert facts.load(path)["distributedInfo"] == want, run.explain()


@pytest.mark.parametrize("variables, later, want", [
    ({}, 'os.environ.update(RANK="1", WORLD_SIZE="2")', (1, 2)),
    ({"LOCAL_RANK": 1, "NODE_RANK": 0, "WORLD_SIZE": 2}, "", (1, 2)),
    ({"RANK": 0, "WORLD_SIZE": 4}, 'os.environ.update(RANK="3")', (3, 4)),
    ({}, 'os.environ.update(LOCAL_RANK="0")', (0, 1)),
])
def test_a_rank_that_is_set_later_counts(mini, tmp_path, variables, later, want):
    script = mini("import os, time\nop(b'aten::ones')\n" + later + STEPPED)
    for schedule in (None, "wait=1,active=2,repeat=1"):
        run = harness.run_kprof(script, tmp_path / "out", schedule=schedule, **variables).ok()
        info = facts.load(run.trace)["distributedInfo"]
        assert (info["rank"], info["world_size"]) == want and f"_r{want[0]}_" in run.trace.name + "_r0_" * (want[1] == 1), run.explain()
        for path in run.traces:
            path.unlink()


# ---- one step on all ranks ----


class Job:
    """Ranks that step until end(): of scripts/ranks.py over gloo, or programs of their own with a rank."""

    def __init__(self, folder, size, command, more=None, **settings):
        self.folder, self.out, self.last = folder, folder / "out", folder / "end"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        job = {"LD_PRELOAD": harness.LIBRARY, "KPROF_DIR": self.out, "KPROF_SCHEDULE": "none", "KPROF_CONTROL": 1, "WORLD_SIZE": size,
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **settings}
        self.ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env=harness.clean_environment(**{**job, "RANK": rank, "LOCAL_RANK": rank, **(more or {}).get(rank, {})}))
                      for rank in range(size)]

    def files(self, rank):
        return sorted(self.out.glob(f"*_{self.ranks[rank].pid}.*.pt.trace.json.gz"))

    def status(self, rank):
        return json.loads(harness.cli("ctl", self.ranks[rank].pid, "status", "--json").stdout or "{}")

    def wait_for(self, is_so):
        until = time.monotonic() + harness.LONG
        while not is_so():
            assert time.monotonic() < until, [(self.files(r), self.status(r)) for r in range(len(self.ranks))]
            time.sleep(0.05)

    def wait_for_steps(self, ranks=None):
        """All take part, and are not in their first steps."""
        ranks = range(len(self.ranks)) if ranks is None else ranks
        self.wait_for(lambda: all(self.status(rank).get("step", 0) > 3 for rank in ranks) and
                      len(list(self.out.glob(".*.rank"))) >= len(ranks))

    def begin(self, *words):
        return subprocess.Popen([harness.KPROF, "ctl", self.out, "start", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=harness.clean_environment())

    def start(self, *words):
        return harness.cli("ctl", self.out, "start", "--json", *words)

    def end(self):
        self.last.touch()
        for rank in self.ranks:
            rank.send_signal(signal.SIGCONT)
        self.err = [rank.communicate(timeout=harness.LONG)[1] for rank in self.ranks]
        return [rank.returncode for rank in self.ranks]


@pytest.fixture
def job(tmp_path):
    begun = []

    def begin(size, *words, more=None, **settings):
        script = harness.script_command("ranks.py", "until", tmp_path / "end", *words) if words else harness.script_command("steps_told.py")
        if not words:  # no torch, which takes seconds to import: the heap begins the run
            settings["KPROF_MALLOC"] = "count"
        begun.append(Job(tmp_path, size, script, more, **settings))
        return begun[-1]

    yield begin
    for rank in begun[0].ranks if begun else []:
        rank.kill()
        rank.communicate()


def steps_of(path):
    return [int(e["name"].split("#")[1]) for e in facts.steps(facts.load(path))]


NO_PART = "takes no part in a start of all ranks"


def assert_none_takes_part(run, why):
    run.wait_for(lambda: all(run.status(rank).get("step", 0) > 3 for rank in (0, 1)))
    time.sleep(2)  # a second line would come with the next look
    assert run.end() == [0, 0], run.err
    assert all(text.count(NO_PART) == 1 and why in text for text in run.err), run.err


def said(process):
    out, err = process.communicate(timeout=harness.LONG)
    assert process.returncode == 0, err
    return json.loads(out), err


def test_all_ranks_begin_with_one_step_whatever_happens_meanwhile(job):
    """Ranks of different speed; one stands still for a while, then one is killed."""
    run = job(4, "12")
    run.wait_for_steps()
    alive = [0, 1, 2, 3]
    for turn, event in enumerate(["", "stop", "", "kill", ""]):
        command = run.begin("--steps", "2", "--json")
        if event:
            time.sleep(0.2)
            run.ranks[2].send_signal(signal.SIGSTOP if event == "stop" else signal.SIGKILL)
            time.sleep(2)
            run.ranks[2].send_signal(signal.SIGCONT)
        answer, err = said(command)
        alive = [rank for rank in alive if event != "kill" or rank != 2]
        assert answer["ranks"] == len(alive) or event == "kill", (answer, err)
        run.wait_for(lambda: all(len(run.files(rank)) == turn + 1 for rank in alive))
        begins = answer["begins"]
        assert {tuple(steps_of(run.files(rank)[-1])) for rank in alive} == {(begins, begins + 1)}, (event, answer)
    codes = run.end()
    assert [codes[rank] for rank in alive] == [0, 0, 0], run.err
    assert len(list(run.out.glob("*.pt.trace.json.gz"))) in (18, 19)  # the killed rank may have been in time


def test_a_start_without_steps_lasts_until_all_are_stopped(job):
    run = job(2)
    run.wait_for_steps()
    begins = json.loads(run.start().stdout)["begins"]
    run.wait_for(lambda: all(run.status(rank)["step"] > begins + 1 for rank in (0, 1)))
    again = run.start()
    assert again.returncode == 1 and "a window is open already" in again.stderr
    assert json.loads(harness.cli("ctl", run.out, "stop", "--json").stdout)["ranks"] == 2
    run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (0, 1)))
    assert {steps_of(run.files(rank)[0])[0] for rank in (0, 1)} == {begins}
    gone = harness.cli("ctl", run.out, "stop")
    assert gone.returncode == 1 and "nothing is recorded" in gone.stderr
    begun = run.start("--at-step", "1")
    assert begun.returncode == 1 and "has begun already" in begun.stderr
    assert run.end() == [0, 0] and not list(run.out.glob(".*.rank")), run.err


def test_programs_without_steps_begin_at_a_moment(mini, tmp_path):
    script = mini("import sys, time\nwhile not __import__('os').path.exists(sys.argv[1]): op(b'aten::sum'); time.sleep(0.01)\n")
    run = Job(tmp_path, 2, [harness.PYTHON, script, tmp_path / "end"])
    try:
        run.wait_for(lambda: len(list(run.out.glob(".*.rank"))) == 2)
        answer = run.start("--steps", "1")
        assert "begins_at_ms" in json.loads(answer.stdout), answer
        run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (0, 1)))
        assert "nothing counts steps" in run.start("--at-step", "5").stderr
    finally:
        assert run.end() == [0, 0], run.err


def test_a_window_by_time_lasts_as_long_when_the_clock_on_the_wall_is_set_back(mini, tmp_path):
    source, shim, back = tmp_path / "back.c", tmp_path / "back.so", tmp_path / "an hour back"
    source.write_text("""
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t id, struct timespec *t)
        {
            int rc = syscall(SYS_clock_gettime, id, t);
            if (id == CLOCK_REALTIME && access(BACK, F_OK) == 0) t->tv_sec -= 3600;
            return rc;
        }""")
    subprocess.run(["gcc", "-shared", "-fPIC", f'-DBACK="{back}"', "-o", shim, source], check=True)
    script = mini("import sys, time\nwhile not __import__('os').path.exists(sys.argv[1]): op(b'aten::sum'); time.sleep(0.01)\n")
    run = Job(tmp_path, 2, [harness.PYTHON, script, tmp_path / "end"], LD_PRELOAD=f"{harness.LIBRARY} {shim}")
    try:
        run.wait_for(lambda: len(list(run.out.glob(".*.rank"))) == 2)
        assert "begins_at_ms" in json.loads(run.start("--steps", "3").stdout)
        run.wait_for(lambda: all(run.status(rank)["window"] == "recording" for rank in (0, 1)))
        back.touch()
        until = time.monotonic() + 60
        while not all(run.files(rank) for rank in (0, 1)) and time.monotonic() < until:
            time.sleep(0.1)
        assert [len(run.files(rank)) for rank in (0, 1)] == [1, 1]
    finally:
        assert run.end() == [0, 0], run.err


def test_a_start_waits_for_ranks_whose_files_are_made_and_not_written(job):
    run = job(2)
    run.wait_for_steps()
    texts = {path: path.read_bytes() for path in run.out.glob(".*.rank")}
    for path in texts:
        os.truncate(path, 0)
    begun = run.begin("--json", "--steps", "1")
    time.sleep(0.3)
    for path, text in texts.items():
        path.write_bytes(text)
    assert json.loads(begun.communicate(timeout=harness.LONG)[0]).get("ranks") == 2
    run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (0, 1)))
    assert run.end() == [0, 0], run.err


def test_ranks_of_a_big_job_write_one_after_the_other_but_not_at_exit(job):
    run = job(2, WORLD_SIZE=20, more={1: {"RANK": 19}})
    run.wait_for_steps()
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 2
    run.wait_for(lambda: run.files(0))
    first = time.monotonic()
    run.wait_for(lambda: run.files(1))
    assert time.monotonic() - first > 5  # rank 19 of 20 begins 9.5 s later
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 2
    run.wait_for(lambda: len(run.files(0)) == 2)
    ends = time.monotonic()
    assert run.end() == [0, 0] and len(run.files(1)) == 2 and time.monotonic() - ends < 8, run.err


@pytest.mark.parametrize("size, settings, most", [(9, {}, 512), (8, {}, None), (9, {"KPROF_MAX_MB": 100}, 100), (9, {"schedule": "active=1"}, None),
                                                  (9, {"KPROF_RANKS": "0-1"}, None)])
def test_a_big_job_without_a_schedule_is_told_of_and_bounded(mini, tmp_path, size, settings, most):
    script = mini(STEPPED)
    for rank in (0, 1):
        run = harness.run_kprof(script, tmp_path / str(rank), RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=size, KPROF_EXPORT="none",
                                **{"schedule": None, **settings}).ok()
        lines = [line for line in run.said if "ranks record all their steps" in line]
        assert len(lines) == (most is not None and rank == 0), run.explain()
        assert not lines or f"{size} ranks" in lines[0] and f"up to {most} MB" in lines[0]
        text = run.spools[0].read_bytes()[:65536].decode(errors="replace")
        bound = most or (512 if size > 8 and "schedule" not in settings else 4096)
        assert re.search(r"^KPROF_MAX_MB=(\d+)$", text, re.M)[1] == str(bound)


def test_what_killed_ranks_left_of_their_control_goes_with_the_next_report_or_run(tmp_path, job):
    run = job(3)
    run.wait_for_steps()
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 3
    run.wait_for(lambda: all(run.files(rank) for rank in range(3)))
    of = {rank: {run.out / path.name for path in (*run.out.glob(f"*_{run.ranks[rank].pid}.sock"), *run.out.glob(f".*_r{rank}_*.rank"))}
          for rank in range(3)}
    assert all(len(files) == 2 for files in of.values())
    for rank, command in ((0, ["report", str(run.out)]), (1, ["run", "-o", str(run.out), "--", "true"])):
        run.ranks[rank].kill(), run.ranks[rank].wait()
        assert all(path.exists() for path in of[rank])
        assert harness.cli(*command).returncode == 0
        assert not any(path.exists() for path in of[rank]), list(run.out.iterdir())
    assert all(path.exists() for path in of[2])


def test_ranks_that_are_left_out_take_no_part(job):
    run = job(3, KPROF_RANKS="0,2")
    run.wait_for_steps([0, 2])
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 2
    run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (0, 2)))
    assert run.files(1) == []


class Openings:
    """How often a file of a folder is opened, by whom ever (inotify). It takes two equal events in a row for one: hence the closing."""
    OPEN, CLOSE = 0x20, 0x18

    def __init__(self, folder, name):
        self.libc, self.name = ctypes.CDLL(None, use_errno=True), name.encode()
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.libc.inotify_add_watch(self.fd, bytes(folder), self.OPEN | self.CLOSE) >= 0, os.strerror(ctypes.get_errno())

    def in_seconds(self, seconds):
        self.read()
        time.sleep(seconds)
        return self.read()

    def read(self):
        count = 0
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 65536):
                while data:
                    _, mask, _, size = struct.unpack_from("iIII", data)
                    count += bool(mask & self.OPEN) and data[16:16 + size].rstrip(b"\0") == self.name
                    data = data[16 + size:]
        return count


def test_one_rank_of_a_machine_looks_at_the_folder_and_more_rarely_while_nothing_is_asked(job):
    run = job(4)
    run.wait_for_steps()
    looks = Openings(run.out, ".kprof.job")
    time.sleep(8)  # after 1, 2 and 4 s it looks each 5 s
    assert 1 <= looks.in_seconds(11) <= 4  # a look a second of each rank would be 44
    begun = time.monotonic()
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 4
    assert time.monotonic() - begun < 4  # kprof ctl knocks: none waits for its turn
    run.ranks[0].kill(), run.ranks[0].wait()
    run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (1, 2, 3)))
    time.sleep(12)
    assert 1 <= looks.in_seconds(11) <= 4  # another one took the place
    assert json.loads(run.start("--steps", "1").stdout)["ranks"] == 3
    run.wait_for(lambda: all(len(run.files(rank)) == 2 for rank in (1, 2, 3)))


def test_two_jobs_in_one_folder_are_two_jobs(tmp_path, job):
    """On one machine: both have a rank 0 and a rank 1. The files of both, and DIR/latest, are apart, too."""
    one = job(2, TORCHELASTIC_RUN_ID="sweep-one")
    two = Job(tmp_path, 2, harness.script_command("steps_told.py"), TORCHELASTIC_RUN_ID="sweep-two", KPROF_MALLOC="count")
    try:
        one.wait_for_steps()
        two.wait_for_steps()
        one.wait_for(lambda: len(list(one.out.glob(".*.rank"))) == 4)
        for words in (["start", "--steps", "1"], ["toggle", "cpu", "on"], ["stop", "--job", "sweep"]):
            refused = harness.cli("ctl", one.out, *words)
            assert refused.returncode == 1 and "sweep-one (2 ranks), sweep-two (2 ranks)" in refused.stderr, refused
        assert "there are" in harness.cli("ctl", one.out, "start", "--job", "other").stderr
        assert {one.status(0)["job"], two.status(1)["job"]} == {"sweep-one", "sweep-two"}
        assert len(harness.cli("ctl", one.out, "status").stdout.splitlines()) == 4
        assert len(harness.cli("ctl", one.out, "status", "--job", "sweep-o").stdout.splitlines()) == 2
        assert harness.cli("ctl", one.out, "toggle", "cpu", "on", "--job", "sweep-t").stdout.count("done") == 2
        for run, other in ((two, one), (one, two)):
            name = run.status(0)["job"]
            assert json.loads(run.start("--steps", "1", "--job", name[:7]).stdout)["ranks"] == 2
            run.wait_for(lambda: all(len(run.files(rank)) == 1 for rank in (0, 1)))
            assert steps_of(run.files(0)[0]) == steps_of(run.files(1)[0])
            assert {facts.load(run.files(rank)[0])["kprof"]["job"] for rank in (0, 1)} == {name}
            assert len(other.files(0)) == (run is one)
            latest = harness.cli("report", run.out / "latest", "--json")
            assert latest.returncode == 0 and f"2 files in {run.out}" in latest.stderr, latest
    finally:
        for rank in two.ranks:
            rank.kill(), rank.communicate()


def test_another_file_in_the_place_of_ours_is_refused_with_one_line(tmp_path, job):
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out/.kprof.job").symlink_to(tmp_path / "mine")
    assert_none_takes_part(job(2), "of this user alone")
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_closing_line_says_how_many_steps_are_in_the_trace(mini, tmp_path):
    more = """
import time
for _ in range(60):
    for _ in range(2000): op(b"aten::linear")
    time.sleep(0.02)  # the library looks each 50 ms
    step()
"""
    for schedule, words in (("active=1000", ""), (None, r" \((\d+) before records were dropped\)")):
        run = harness.run_kprof(mini(STEPPED + more), tmp_path / str(schedule), schedule=schedule, KPROF_MAX_MB=3).ok()
        line, = [line for line in run.said if "wrote " in line]
        found = re.search(r"(\d+) steps by \w+" + words + ", ", line)
        assert found and "over KPROF_MAX_MB" in line, run.explain()
        if schedule:
            assert len(facts.steps(facts.load(run.trace))) == int(found[1]) < 66
        else:
            assert 0 < int(found[2]) < int(found[1]) == 66


def test_a_full_disk_leaves_the_programs_alone(tmp_path, job):
    (tmp_path / "out").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path / "out")], capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here (needs root)")
    try:
        with contextlib.suppress(OSError), open(tmp_path / "out/full", "wb", buffering=0) as full:
            while full.write(bytes(4096)):
                pass
        assert_none_takes_part(job(2), os.strerror(errno.ENOSPC))
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "out")], check=True)


def test_a_rank_whose_file_has_a_second_name_is_left_out(tmp_path, job):
    run = job(2)
    run.wait_for_steps()
    file, = run.out.glob(".*_r1_*.rank")
    os.link(file, tmp_path / "second name")  # another user could have made it: the count of names decides
    answer = run.start("--steps", "1")
    assert json.loads(answer.stdout)["ranks"] == 1 and "job's user alone: left out" in answer.stderr
    assert run.end() == [0, 0]
    assert [text.count(NO_PART) for text in run.err] == [0, 1], run.err


def test_two_commands_at_a_time_and_a_folder_without_locks(tmp_path, job):
    source, shim = tmp_path / "nolock.c", tmp_path / "nolock.so"
    source.write_text("#include <errno.h>\nint flock(int fd, int op) { (void)fd; (void)op; errno = ENOLCK; return -1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, source], check=True)
    run = job(2)
    run.wait_for_steps()
    for settings in ({}, {"LD_PRELOAD": str(shim)}):
        run.ranks[1].send_signal(signal.SIGSTOP)  # the first command waits for it
        words = [harness.KPROF, "ctl", run.out, "start", "--steps", "1", "--json"]
        first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=harness.clean_environment(**settings))
        time.sleep(1)
        second = harness.cli("ctl", run.out, "stop", **settings)
        assert second.returncode == 1 and "another kprof ctl is starting or stopping these ranks" in second.stderr
        run.ranks[1].send_signal(signal.SIGCONT)
        assert said(first)[0]["ranks"] == 2
        files = 1 + bool(settings)
        run.wait_for(lambda: all(len(run.files(rank)) == files for rank in (0, 1)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_users_file_is_not_written_to(tmp_path, job):
    (tmp_path / "out").mkdir()
    theirs = tmp_path / "out/.kprof.job"
    theirs.write_text("theirs")
    os.chown(theirs, 65534, 65534)
    assert_none_takes_part(job(2), "of this user alone")
    assert theirs.read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_cannot_start_the_ranks(tmp_path, job):
    run = job(2)
    run.wait_for_steps()
    for folder in (run.out, *run.out.parents[:3]):  # pytest's own
        folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run([harness.KPROF, "ctl", run.out, "start", "--steps", "1"], user=65534, group=65534, capture_output=True, text=True,
                          timeout=harness.LONG, env=harness.clean_environment())
    assert done.returncode == 1 and len(done.stderr.splitlines()) in (1, 2), done
    assert run.end() == [0, 0] and run.files(0) == run.files(1) == []


def test_a_folder_is_the_same_by_another_path(tmp_path, job):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    run = job(2, KPROF_DIR=tmp_path / "link")
    run.wait_for_steps()
    for turn, path in enumerate((tmp_path / "out/../out", tmp_path / "link")):
        assert json.loads(harness.cli("ctl", path, "start", "--steps", "1", "--json").stdout)["ranks"] == 2
        run.wait_for(lambda: all(len(run.files(rank)) == turn + 1 for rank in (0, 1)))
    assert steps_of(run.files(0)[1]) == steps_of(run.files(1)[1])
