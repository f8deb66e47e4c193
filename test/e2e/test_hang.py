# SPDX-License-Identifier: Apache-2.0
"""A program or a job that stands: where each thread is (kprof ctl DIR where), and who waits for whom (kprof hang)."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import harness
import pagedata
import viewing
from test_steps import KNOWN, PYTHONS

sys.path.insert(0, str(harness.HERE.parent / "ends"))
import ends  # noqa: E402 - it lies in a folder of its own


@pytest.fixture
def programs():
    all_of_them = []
    yield all_of_them
    for one in all_of_them:
        one.kill()
        one.wait()


def start(programs, folder, command, **settings):
    env = harness.clean_environment(KPROF_DIR=folder, **{"LD_PRELOAD": harness.LIBRARY, "KPROF_CONTROL": 1, "KPROF_SCHEDULE": "none", **settings})
    programs.append(subprocess.Popen([str(part) for part in command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return programs[-1]


def until(is_so):
    """What is_so() says, once it says something."""
    end = time.monotonic() + harness.LONG
    while not (said := is_so()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return said


def where(folder):
    """What every process of the folder answers; [] as long as one does not."""
    asked = harness.cli("ctl", folder, "where", "--json")
    return [json.loads(line) for line in asked.stdout.splitlines()] if asked.returncode == 0 else []


def frames_of(thread):
    return [(os.path.basename(f["file"]), f["line"], f["function"]) for f in thread.get("python", [])]


def told_by_py_spy(pid):
    """{tid: [(file, line, function)]}, the innermost frame first; of a qualified name the last part."""
    spy = os.path.join(os.path.dirname(viewing.venv("pyspy")), "py-spy")
    said = subprocess.run([spy, "dump", "--pid", str(pid), "--json"], capture_output=True, text=True, timeout=harness.LONG)
    assert said.returncode == 0, said.stderr
    return {t["os_thread_id"]: [(os.path.basename(f["filename"]), f["line"], f["name"].rpartition(".")[2]) for f in t["frames"]] for t in json.loads(said.stdout)}


def told_by_cpython(process):
    """The same of its faulthandler, for each thread in some order; names are in ASCII. The main thread is the last."""
    process.send_signal(signal.SIGUSR1)
    text = ""
    while not text.endswith("in <module>\n"):
        text += process.stderr.readline().decode()
    stacks = re.split(r"^Thread .*\n|^Current thread .*\n", text, flags=re.M)
    return sorted([(os.path.basename(file), int(line), name) for file, line, name in re.findall(r'  File "(.*)", line (\d+) in (.*)', stack)] for stack in stacks if stack.strip())


@pytest.mark.skipif(os.geteuid() != 0, reason="py-spy reads another process, which root may")
@pytest.mark.parametrize("version", ["torch", *KNOWN])
def test_frames_of_all_threads_are_those_that_py_spy_reads(programs, tmp_path, version):
    if version != "torch" and version not in PYTHONS:
        pytest.skip(f"no Python {version} here")
    plain = [] if version == "torch" else [PYTHONS[version], harness.SCRIPTS / "threads_stand.py"]
    process = start(programs, tmp_path, plain or harness.script_command("threads_stand.py", "torch"))
    assert process.stdout.readline() == b"ready\n"
    told, = until(lambda: (said := where(tmp_path)) and all(re.search("sleep|select", t.get("call", "")) for t in said[0]["threads"] if t.get("main")) and said)
    ours = {t["tid"]: frames_of(t) for t in told["threads"] if t.get("python")}
    assert ours == told_by_py_spy(process.pid)
    assert len(ours) == 5 and "träge" in {f[2] for frames in ours.values() for f in frames}
    words = {frames_of(t)[0][2]: t["call"] for t in told["threads"] if t.get("python")}
    assert words["in_c"] == "pause" and words["wait"] == "futex" and re.search("sleep|select", words["outer"]), words
    assert told_by_cpython(process) == sorted([(file, line, name.encode("ascii", "backslashreplace").decode()) for file, line, name in stack] for stack in ours.values())


# ---- jobs ----

class Job:
    """scripts/ends.py on `size` ranks over gloo, of which one stands or ends; its lines are told by their comments."""

    def __init__(self, programs, folder, how, odd, size=3, **settings):
        self.folder, self.odd, self.size = folder, odd, size
        store = folder / "store"
        self.ranks = [start(programs, folder, harness.script_command("ends.py", store, how, odd), RANK=rank, WORLD_SIZE=size, LOCAL_RANK=rank,
                            LOCAL_WORLD_SIZE=size, **settings) for rank in range(size)]

    def hang(self):
        """What `kprof hang` says; None as long as not all ranks are known, or some go on."""
        asked = harness.cli("hang", self.folder, "--json")
        told = json.loads(asked.stdout) if asked.returncode == 0 else {"processes": [], "verdict": "goes on"}
        is_whole = len(told["processes"]) == self.size and all(p["rank"] is not None for p in told["processes"])
        return told if is_whole and told["verdict"] != "goes on" else None


def accused(told):
    return [p["rank"] for p in told["processes"] if p["accused"]]


def line_of(comment):
    text = (harness.SCRIPTS / "ends.py").read_text().splitlines()
    found, = [number for number, line in enumerate(text, 1) if line.endswith(f"# {comment}")]
    return found


STANDS = [("python", "absent", "python"), ("c", "absent", "c"), ("lock", "absent", "lock"), ("order", "mismatch", "order"),
          ("first", "absent", "python"), ("atexit", "absent", "python")]


@pytest.mark.parametrize("how, verdict, comment", STANDS)
def test_the_rank_for_which_the_others_wait_is_named_with_its_line(programs, tmp_path, how, verdict, comment):
    job = Job(programs, tmp_path, how, 1)

    def is_there(told):
        """Rank 1 may still import its modules when the others wait."""
        rank = told["processes"][1]
        return told["verdict"] == verdict and accused(told) == [1] and (rank["at"] or {}).get("line") == line_of(comment)

    told = until(lambda: (said := job.hang()) and is_there(said) and said)
    rank = told["processes"][1]
    assert rank["state"] == "told", told["text"]
    assert f"ends.py:{line_of(comment)}" in told["text"] and "gloo:all_reduce" in told["text"], told["text"]
    assert [p["in"] for p in told["processes"] if p["rank"] != 1] == ["gloo:all_reduce"] * 2
    if how == "lock":
        lines = {f["line"] for t in rank["threads"] for f in t["python"]}
        assert line_of("other lock") in lines, told
    text = harness.cli("hang", tmp_path).stdout
    assert text.startswith(told["text"].partition(" for ")[0][:20]) and re.search(r"^rank 1, process \d+", text, re.M), text


@pytest.mark.skipif(os.geteuid() != 0, reason="py-spy reads another process, which root may")
@pytest.mark.parametrize("how", [how for how, *_ in STANDS] + ["queue"])
def test_the_frames_of_all_ranks_are_those_that_py_spy_reads(programs, tmp_path, how):
    job = Job(programs, tmp_path, how, 1, size=2)
    comment = dict([(how, comment) for how, _, comment in STANDS], queue="queue")[how]
    told = until(lambda: (said := job.hang()) and (said["processes"][1]["at"] or {}).get("line") == line_of(comment) and said)
    for rank, process in zip(told["processes"], job.ranks, strict=True):
        ours = {t["tid"]: frames_of(t) for t in rank["threads"] if t.get("python")}
        assert ours == told_by_py_spy(process.pid) and len(ours) == 1 + (how == "lock" and rank["rank"] == 1)


def test_a_rank_that_a_signal_stopped_is_named(programs, tmp_path):
    job = Job(programs, tmp_path, "none", 1)
    until(lambda: harness.cli("hang", tmp_path).stdout.startswith("the job goes on"))
    job.ranks[1].send_signal(signal.SIGSTOP)
    told = until(lambda: (said := job.hang()) and [p["in"] for p in said["processes"]] == ["gloo:all_reduce", None, "gloo:all_reduce"] and said)
    assert told["verdict"] == "stopped" and accused(told) == [1], told["text"]
    assert told["text"].startswith("rank 1 is stopped ") and told["text"].endswith("; ranks 0,2 wait in gloo:all_reduce")


def test_a_rank_that_a_signal_stopped_before_it_wrote_a_file_is_not_gone(programs, tmp_path):
    ranks = [start(programs, tmp_path, ["sleep", "1000"], RANK=rank, WORLD_SIZE=2) for rank in range(2)]
    until(lambda: len(where(tmp_path)) == 2)
    ranks[1].send_signal(signal.SIGSTOP)
    told = until(lambda: (said := json.loads(harness.cli("hang", tmp_path, "--json").stdout))["processes"][1]["state"] != "told" and said)
    assert told["text"].startswith("rank 1 is stopped ") and ";" not in told["text"] and accused(told) == [1], told


def test_the_report_of_a_job_that_stands_names_the_command_and_nothing_of_it_is_judged(programs, tmp_path):
    Job(programs, tmp_path, "python", 1, size=2, KPROF_SCHEDULE="active=1000000")
    report = until(lambda: (said := harness.cli("report", tmp_path).stdout).startswith("STUCK") and said).splitlines()
    assert re.match(r"STUCK    rank 1 did nothing for [0-9.]+ s \(after .*\); rank 0 has been in gloo:all_reduce for [0-9.]+ s, and waits for it$", report[0]), report
    assert report[1].startswith(f"         `kprof hang {tmp_path}` says who waits for whom"), report
    assert harness.cli("html", tmp_path, "-o", tmp_path / "page.html").returncode == 0
    assert [head["run"].get("ended") for head, *_ in pagedata.traces(tmp_path / "page.html")] == [None, None]  # it runs
    assert '"ENDED"' not in harness.cli("view", "--json", *tmp_path.glob("*.kprof")).stdout
    advice = harness.cli("advise", tmp_path).stdout
    assert advice.startswith("STUCK    ") and "CRITICAL" not in advice and "verdict" not in advice, advice


@pytest.mark.parametrize("how, listens", [("stands", 1), ("computes", 1), ("stands", 0), ("computes", 0)])
def test_a_training_without_ranks_stands_where_it_rests_and_not_where_it_computes(how, listens, programs, tmp_path):
    """After its steps nothing is recorded, and the trace does not say why."""
    program = start(programs, tmp_path, harness.script_command("stands_alone.py", how), KPROF_SCHEDULE="active=1000000", KPROF_CONTROL=listens)
    assert program.stdout.readline() == b"trained\n"
    trained = time.monotonic()

    def told():
        silent = time.monotonic() - trained
        said = harness.cli("report", tmp_path).stdout
        return (said.startswith("STUCK") or silent > 40) and said
    first, *_ = until(told).splitlines()
    lines = (harness.SCRIPTS / "stands_alone.py").read_text().splitlines()
    line, = [number for number, text in enumerate(lines, 1) if text.endswith("# feeder")]
    place = (rf", at stands_alone\.py:{line} <module>, waits for another thread \(futex\)$" if listens
             else r"; its main thread waits for a lock, a queue or a thread \(futex\), and no thread of it computes$")
    last = r"\(after \S+, in step 39; a step took [\d.]+ ms\)"
    stuck, silent = rf"the program did nothing for \d\d\.\d s {last}{place}", rf"the program \(process {program.pid}\) has run no operator for \d\d\.\d s {last}$"
    assert re.match(f"STUCK    {stuck}" if how == "stands" else f"silent   {silent}", first), first
    advice = harness.cli("advise", tmp_path).stdout
    assert re.match("STUCK  " if how == "stands" else r"verdict  the program has run no operator for \d\d\.\d s \(.*\), and that time is not judged\. ", advice), advice
    assert re.search(f"^  it is stuck: {stuck}" if how == "stands" else f"^  {silent}", harness.cli("why", tmp_path).stdout, re.M)
    if not listens:
        assert re.match(stuck if how == "stands" else silent, harness.cli("hang", tmp_path).stdout, re.M)
    program.kill()
    program.wait()
    assert re.search(r"; it ran no operator for its last \d\d\.\d s \(after \S+, in step 39\)", harness.cli("why", tmp_path).stdout)


# ---- programs without torch, and KPROF_HANG ----

def test_a_program_without_torch_answers_where_it_is_and_nothing_else(programs, tmp_path):
    process = start(programs, tmp_path, harness.script_command("threads_stand.py"))
    other = start(programs, tmp_path, ["sleep", "1000"])
    both = until(lambda: len(said := where(tmp_path)) == 2 and all("sleep" in p["threads"][0].get("call", "") for p in said) and said)
    told = {p["pid"]: p for p in both}
    assert [f[2] for f in frames_of(told[process.pid]["threads"][0])] == ["outer"] * 6 + ["main", "<module>"]
    assert told[other.pid]["threads"][0]["words"] == "sleeps" and "python" not in told[other.pid]
    assert harness.cli("ctl", tmp_path, "status").returncode == 1  # there is nothing to record in them
    assert harness.cli("ctl", process.pid, "where").stdout.startswith(f"process {process.pid} on ")
    process.terminate()
    process.wait()
    other.kill()
    other.wait()
    assert harness.cli("recover", tmp_path).returncode == 0
    assert not [path.name for path in tmp_path.iterdir() if path.suffix == ".where"]


def test_a_process_is_asked_by_its_number_and_its_stacks_are_drawn(programs, tmp_path):
    process = start(programs, tmp_path, harness.script_command("threads_stand.py"))
    told = until(lambda: (said := harness.cli("hang", process.pid, "--json")).returncode == 0 and "sleep" in said.stdout and json.loads(said.stdout))
    assert told["text"].startswith(f"process {process.pid} is at threads_stand.py:"), told["text"]
    drawn = harness.cli("hang", tmp_path, "-o", tmp_path / "hang.svg")
    assert drawn.returncode == 0 and drawn.stdout == "", drawn
    titles = re.findall(r"<title>(.*?)</title>", (tmp_path / "hang.svg").read_text())
    assert any(re.match(r"threads_stand.py:\d+ main \(1, 20.00%\)", title) for title in titles), titles  # of five threads
    assert any(re.match(r"threading.py:\d+ _bootstrap \(4, 80.00%\)", title) for title in titles), titles
    assert f"process {process.pid} (1, 20.00%)" in titles, titles
    process.kill()
    process.wait()
    gone = harness.cli("hang", process.pid)
    assert gone.returncode == 1 and f"no process {process.pid} listens" in gone.stderr, gone
    both = harness.cli("hang", tmp_path, "--svg", "--json")
    assert both.returncode == 2 and "do not go together" in both.stderr, both


def test_every_answer_is_whole_while_threads_come_and_go(tmp_path):
    env = harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path, KPROF_CONTROL=1)
    with subprocess.Popen(harness.script_command("threads_move.py"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        path = until(lambda: list(tmp_path.glob("*.where")))[0]
        moved = asked = 0
        while asked < 300 or not moved:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"where\n")
                told = json.loads(client.makefile().readline())
            asked += 1
            moved += any(t.get("moved") for t in told["threads"])
        assert process.communicate(timeout=harness.LONG)[0] == "whole\n" and process.returncode == 0


def test_a_program_that_is_over_at_once_leaves_no_file(tmp_path):
    ended = subprocess.run(["true"], env=harness.clean_environment(LD_PRELOAD=harness.LIBRARY, KPROF_DIR=tmp_path / "out", KPROF_CONTROL=1), capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"") and not (tmp_path / "out").exists()


def test_a_rank_in_the_same_collective_of_another_group_is_told_by_its_line(programs, tmp_path):
    job = Job(programs, tmp_path, "group", 1, size=4)
    told = until(lambda: (said := job.hang()) and said["verdict"] == "inside" and "different lines" in said["text"] and said)
    assert f": ranks 0,2-3 (ends.py:{line_of('all')} iterate); rank 1 (ends.py:{line_of('group')} other_group). " in told["text"]
    assert accused(told) == []


def test_ranks_that_have_called_a_collective_differently_often_are_told_by_number_and_none_is_accused(programs, tmp_path):
    job = Job(programs, tmp_path, "more", 1)
    told = until(lambda: (said := job.hang()) and said["verdict"] == "inside" and "different calls" in said["text"] and said)
    odd, others = told["processes"][1]["number"], told["processes"][0]["number"]
    assert odd == others + 1 and told["processes"][2]["number"] == others and accused(told) == [], told  # two more, and one that is to come
    assert f"in different calls of it: ranks 0,2 (no. {others}); rank 1 (no. {odd}). These" in told["text"], told["text"]
    assert f"rank 1 (ends.py:{line_of('more')} two_more)" in told["text"], told["text"]


def test_a_job_that_stands_is_told_by_its_files_when_it_is_gone(programs, tmp_path):
    log = tmp_path / "log"
    job = Job(programs, tmp_path, "python", 1, size=2, KPROF_HANG="3s", KPROF_CONTROL=0, KPROF_LOG=log)
    lines = until(lambda: log.exists() and len(found := re.findall(r"rank (\d): .* has ended for (.*)$", log.read_text(), re.M)) == 2 and dict(found))
    for rank in job.ranks:
        rank.kill()
        rank.wait()
    files = sorted(tmp_path.glob("hang-*.json"), key=lambda path: re.search("_r(.)_", path.name)[1])
    assert [files[rank].name in lines[str(rank)] for rank in (0, 1)] == [True, True], lines
    assert f"the program is stuck at ends.py:{line_of('python')} sleeps" in lines["1"]
    told = json.loads(harness.cli("hang", tmp_path, "--json").stdout)
    assert told["verdict"] == "absent" and accused(told) == [1] and f"ends.py:{line_of('python')}" in told["text"], told["text"]
    newest = time.localtime(max(json.loads(path.read_text())["time_ms"] for path in files) / 1000)
    assert harness.cli("hang", tmp_path).stdout.startswith(time.strftime("it was stuck at %F %T: ", newest) + told["text"].partition(",")[0]), told["text"]
    assert harness.cli("hang", tmp_path, "--now").returncode == 1
    assert harness.cli("why", tmp_path).stdout == f"it was stuck: {told['text']}\n"  # nothing was recorded of how it ended
    for command in ("report", "advise"):  # there is no trace
        done = harness.cli(command, tmp_path)
        assert done.returncode != 0 and f"files of a job that was stuck: kprof hang {tmp_path}" in done.stderr, done
        assert done.stdout.startswith(f"STUCK    {told['text']}\n         `kprof hang {tmp_path}` says at which line"), done
        assert "STUCK" not in harness.cli(command, "--json", tmp_path).stdout
    assert not list(tmp_path.glob("*.tmp"))


def test_what_a_job_that_was_killed_stood_for_is_told_before_its_ends(programs, tmp_path):
    job = Job(programs, tmp_path, "python", 1, size=2, KPROF_HANG="2s", KPROF_CONTROL=0, KPROF_SCHEDULE="active=1000000")
    until(lambda: len(list(tmp_path.glob("hang-*.json"))) == 2)
    stuck = f"  it is stuck: rank 0 waits in gloo:all_reduce for rank 1, which is at ends.py:{line_of('python')} sleeps"
    first, now, second = harness.cli("why", tmp_path).stdout.splitlines()
    assert (first, now.startswith(stuck), second) == ("rank 0 still runs", True, "  rank 1 still runs"), now
    for rank in job.ranks:
        rank.kill()
        rank.wait()
    told = json.loads(harness.cli("why", tmp_path, "--json").stdout)
    assert told["stood"].startswith(f"rank 0 waits in gloo:all_reduce for rank 1, which is at ends.py:{line_of('python')} sleeps"), told
    assert [(end["by_itself"], end["stood"]) for end in told["ends"]] == [(False, True)] * 2, told
    assert harness.cli("why", tmp_path).stdout.startswith(f"it was stuck: {told['stood']}\n  then rank ")
    assert harness.cli("html", tmp_path, "-o", tmp_path / "page.html").returncode == 0
    verdict, = (head for name, head, _ in pagedata.blocks(tmp_path / "page.html") if name == "verdict")
    assert verdict["stuck"] == told["stood"]
    for files in ([tmp_path], sorted(tmp_path.glob("*.pt.trace.json*"))[:1]):  # all ranks; one of them, read in pieces
        assert harness.cli("report", *files).stdout.startswith(f"STUCK    {told['stood']}\n         It runs no more"), files
    assert json.loads(harness.cli("report", "--json", tmp_path).stdout.splitlines()[-1])["ranks"]["stuck"] == told["stood"]
    # None of them judges the steps: the traces of two steps alone do not say that it is stuck.
    assert harness.cli("advise", tmp_path).stdout.startswith(f"STUCK    {told['stood']}\n")
    assert [[f["id"] for f in json.loads(line)["findings"]] for line in harness.cli("advise", "--json", tmp_path).stdout.splitlines()] == [["stuck"]] * 2
    findings = json.loads(harness.cli("view", "--json", tmp_path).stdout.splitlines()[0])["tabs"][0]["rows"]
    assert findings[0]["name"] == "STUCK" and told["stood"].startswith(findings[1]["name"].strip()), findings
    assert {row["name"] for row in findings if not row["name"].startswith(" ")} <= {"STUCK", "KILLED", "ENDED", "NOTE"}, findings
    shown = viewing.browser.ask("page_ask", tmp_path / "page.html", "", "findings")
    first, second, *_ = re.findall(r"^CRITICAL\n(.*)\n(.*)", shown["findings"], re.M)
    assert first == ("The job was stuck", f"R{told['stood'][1:]}"), shown["findings"]  # above how it ended
    assert second[0].startswith("Ended ") and "The job was stuck\nRank 0 waits in gloo" in shown["facts"], shown
    assert len(re.findall("^(?:CRITICAL|WARNING)$", shown["findings"], re.M)) == 2, shown["findings"]


def hang_file(folder, when, host, rank, job, pid=42):
    frame = {"file": f"/home/{host}.py", "line": 7, "function": "waits"}
    threads = [{"tid": pid, "name": "python", "state": "S", "main": True, "python": [frame]}]
    told = {"where": 1, "event": "hang", "pid": pid, "host": host, "time_ms": 1000 * when, "rank": rank, "size": 2, "job": job, "threads": threads}
    (folder / f"hang-{when}-{host}_r{rank}_{pid}.json").write_text(json.dumps(told))


def test_processes_of_one_number_on_two_machines_are_two_and_those_of_another_job_are_none(tmp_path):
    for when, host, rank, job in ((1000, "old", 0, "first"), (2000, "a", 0, "second"), (2001, "b", 1, "second"), (1500, "a", 0, "second")):
        hang_file(tmp_path, when, host, rank, job)
    told = json.loads(harness.cli("hang", tmp_path, "--json").stdout)
    assert [(p["host"], p["rank"]) for p in told["processes"]] == [("a", 0), ("b", 1)], told


QUIET = """
import ctypes, subprocess, sys, time
op(b"aten::linear")
k = ctypes.CDLL(None)
k.kprof_step()
until = time.monotonic() + 5
n = 0
def one(n): return sum(range(n))
def two(n): return max(one(n), 1)
while time.monotonic() < until:
    %s
"""
PAUSES = {"evaluates": "one(2000) if n % 2 else two(2000); n += 1", "is meant": "k.kprof_alive(); time.sleep(0.05)",
          "compiles": "subprocess.run(['timeout', '5', 'sh', '-c', 'while :; do :; done'])",
          "saves": "open(sys.argv[0] + '.save', 'wb').write(b'x' * 3000000); time.sleep(0.05)"}


@pytest.mark.parametrize("how", PAUSES)
def test_a_long_pause_that_is_none_of_a_job_that_stands_is_not_told(mini, tmp_path, how):
    run = harness.run_kprof(mini(QUIET % PAUSES[how]), tmp_path / "out", schedule="none", KPROF_HANG="2s").ok()
    assert "no collective has ended" not in run.err and not list((tmp_path / "out").glob("hang-*")), run.explain()


def test_a_sleep_as_long_is_told(mini, tmp_path):
    run = harness.run_kprof(mini(QUIET % "time.sleep(0.05)"), tmp_path / "out", schedule="none", KPROF_HANG="1s").ok()
    assert re.search(r"has ended for 1 s, after step 0; the program is stuck at \S+:\d+ <module>", run.err), run.explain()
    assert len(list((tmp_path / "out").glob("hang-*.json"))) == 1


# ---- jobs that end ----

def ended(programs, folder, how, odd=1, size=2):
    """What `kprof why --json` says when the job is over; each rank has `kprof run` as its parent, as in a terminal."""
    store, ranks = folder / "store", []
    for rank in range(size):
        command = [harness.KPROF, "run", "--json", "--no-advise", "-o", folder / "out", "--", *harness.script_command("ends.py", store, how, odd)]
        ranks.append(start(programs, folder / "out", command, RANK=rank, WORLD_SIZE=size, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=size, LD_PRELOAD="",
                           KPROF_SCHEDULE="active=1000000", KPROF_CONTROL=0))
    for rank in ranks:
        rank.wait(timeout=harness.LONG)
    told = harness.cli("why", folder / "out", "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)["ends"], harness.cli("why", folder / "out").stdout


@pytest.mark.parametrize("how, by", [("exception", 'by ValueError "a planted one" at ends.py:LINE fails'), ("segv", "by SIGSEGV"), ("abort", "by SIGABRT")])
def test_the_rank_that_ended_a_job_is_told_first(programs, tmp_path, how, by):
    ends, text = ended(programs, tmp_path, how)
    assert ends[0]["rank"] == 1 and not ends[0]["by_itself"], text
    line = str(line_of("exception"))
    assert ends[0]["how"].startswith(by.replace("LINE", line)) and text.startswith("rank 1 ended " + by.replace("LINE", line)), text


@pytest.mark.parametrize("name, odd", [("SIGKILL", 0), ("SIGSEGV", 1), ("a collective's limit", 1), ("NCCL's watchdog", 0)])
def test_under_torchrun_the_rank_that_ended_the_job_is_told_first_with_the_signal(tmp_path, monkeypatch, name, odd):
    monkeypatch.setattr(ends, "RANKS", 2)
    monkeypatch.setattr(ends, "PYTHON", str(harness.PYTHON))
    end, = (one for one in ends.DEATHS if one.name == name)
    text, is_told, _, others = ends.once(end, odd, tmp_path / "job", None)
    assert is_told and not others, text


@pytest.mark.parametrize("how, by", [("raise", 'ended by ValueError "a planted one" at elastic_launched.py:LINE fails, after step 3'), ("kill", "was killed by SIGKILL ")])
def test_a_function_that_torch_started_as_a_rank_is_told_by_its_error_file_and_its_starter(tmp_path, how, by):
    line = next(n for n, text in enumerate((harness.SCRIPTS / "elastic_launched.py").read_text().splitlines(), 1) if text.endswith("# fails"))
    harness.run_kprof("elastic_launched.py", tmp_path / "out", how, schedule="active=1000000", OMP_NUM_THREADS=1, TMPDIR=tmp_path)
    why = harness.cli("why", tmp_path / "out")
    assert why.stdout.startswith(f"rank 1 {by.replace('LINE', str(line))}"), why
    assert "\n  then rank 0 ended by " in why.stdout, why


CHILD = r"waits for a child process \(wait4: process (\d+)\); process \1 "
STANDS_BY = {  # why a program stands, where its own frames do not say it
    "lock": CHILD + r"\(python\S*\) is at stands_by\.py:\d+ takes, waits for another thread \(futex\)\. Was it forked .* held that lock\?",
    "queued": r"reads \(read: a pipe\); process \d+ \(python\S*\) is at stands_by\.py:\d+ takes, waits for another thread \(futex\)\. Was it forked ",
    **dict.fromkeys(("spawn", "forkserver"), r"reads \(read: a pipe\); process \d+ \(python\S*\) is at stands_by\.py:\d+ takes_twice, waits for another thread \(futex\)$"),
    "worker": r"reads \(read: a pipe\); its child process \d+ \(python\S*\) was killed by SIGKILL$",
    "unread": CHILD + r".* is at stands_by\.py:\d+ by_unread_queue, .*At its exit it waits for its thread \d+, which puts into a queue: writes \(write: a pipe\)\. .*: call get\(\) before join\(\)$",
    "lost": r"by_lost_exception, waits for another thread \(futex\); no other thread .*: thread \d+ of a ThreadPoolExecutor waits for work\. Did what it ran end by an exception ",
    "busy": r"by_busy_thread, waits for another thread \(futex\)$",  # a thread of the pool works
    "pipe": CHILD + r"\(sh\) writes \(write: a pipe\)$",
    "flock": r"waits for the lock of a file \(flock: FOLDER/file\)$",
    "fifo": r"opens a file \(openat: FOLDER/file\)$",
    "semaphore": r"by_semaphore, waits for another process \(futex: shared memory\)(; its child process \d+ was killed by SIGKILL \S+ s before)?$",  # where waitpid was seen
    "gil": r"waits for Python's GIL \(futex: thread (\d+)\); thread \1 is at stands_by\.py:\d+ holds_gil, waits for a signal \(pause\)$",
    "spin": r"is at stands_by\.py:\d+ by_spin, runs$",
    "compiler": r"^process \d+ is at .* " + CHILD + r"\(sh\) runs$",  # one process alone is told
    "exit": r"it waits at its exit for thread \d+, which is at stands_by.py:\d+ uploads, sleeps \(clock_nanosleep\)$",
}


@pytest.mark.parametrize("how", STANDS_BY)
def test_what_a_program_waits_for_outside_of_its_frames_is_told(how, programs, tmp_path):
    program = start(programs, tmp_path / "k", harness.script_command("stands_by.py", how, tmp_path), KPROF_HANG="600s")
    wanted = re.compile(STANDS_BY[how].replace("FOLDER", re.escape(str(tmp_path))))

    def told():
        said = harness.cli("hang", str(program.pid)).stdout.splitlines()
        return said and wanted.search(said[0])
    try:
        until(told)
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(program.pid)], check=False)
