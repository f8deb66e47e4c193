# SPDX-License-Identifier: Apache-2.0
"""kprof view on a terminal of tmux: keys are pressed, and the whole screen is compared."""
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time

import pytest

import harness

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux here to be its terminal")
SCREENS = harness.HERE / "view"


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def trace_make(path, *more, **head):
    """Two steps with a call of Python, ops, a wait for data, kernels and blocks; times that a person can add up."""
    events, address = [], 4096
    for step, at in ((7, 1000), (8, 11000)):
        events += [event("user_annotation", f"ProfilerStep#{step}", at, 10000),
                   event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 4000, **{"External id": 100 + at}),
                   event("python_function", "train.py(12): step", at + 4000, 5000, **{"Python id": at, "Python parent id": None}),
                   event("cpu_op", "aten::linear", at + 4500, 2000, **{"External id": at + 1}),
                   event("cpu_op", "aten::addmm", at + 5000, 1000, **{"External id": at + 2}),
                   event("cuda_runtime", "cudaLaunchKernel", at + 5500, 100, **{"correlation": at, "External id": at + 2}),
                   event("cpu_op", "aten::relu", at + 7000, 500 if step == 7 else 900, **{"External id": at + 3})]
        events.append({**event("kernel", "gemm<float>", at + 6000, 1500, tid=7, device=0, stream=7, correlation=at, **{"External id": at + 2}), "pid": 0})
        for size, when, op_at in ((4096, 5100, 1), (1024, 7100, 2)):
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + when,
                           "args": {"Total Allocated": size, "Bytes": size, "Addr": address, "Device Id": -1, "Device Type": 0, "Ev Idx": op_at}})
            address += 65536
    path.write_text(json.dumps({"schemaVersion": 1, "profile_memory": 1, "deviceProperties": [], **head, "traceEvents": events + list(more)}))
    return path


class Terminal:
    def __init__(self, folder, trace, width, height, locale):
        self.socket = folder / "tmux"
        command = f"{shlex.quote(str(harness.KPROF))} view {shlex.quote(str(trace))} 2>{shlex.quote(str(folder / 'said'))}; echo left with $?; exec sleep 600"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), command, LC_ALL=locale)

    def tmux(self, *words, **env):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *words], capture_output=True, text=True, check=True,
                              env=harness.clean_environment(**env), timeout=harness.LONG).stdout

    def screen(self):
        return [line.rstrip() for line in self.tmux("capture-pane", "-p").split("\n")]

    def until(self, holds):
        """The screen, once it holds and stands still."""
        limit = time.monotonic() + harness.LONG
        while True:
            said = self.screen()
            if holds(said):
                time.sleep(0.1)
                if self.screen() == said:
                    return said
            assert time.monotonic() < limit, "\n".join(said)
            time.sleep(0.05)

    def press(self, *keys):
        """The screen after some keys: once it changed."""
        before = self.screen()
        self.tmux("send-keys", *keys)
        return self.until(lambda said: said != before)


@contextlib.contextmanager
def terminal(folder, trace, width=80, height=24, locale="C.UTF-8"):
    it = Terminal(folder, trace, width, height, locale)
    try:
        it.until(lambda said: any(said))
        yield it
    finally:
        it.tmux("kill-server")


def same_screen(said, name):
    """As test/e2e/view/NAME.txt has it. KPROF_SCREENS_NEW=1 writes it, to be looked at."""
    path, text = SCREENS / f"{name}.txt", "\n".join(said).rstrip("\n") + "\n"
    if os.environ.get("KPROF_SCREENS_NEW"):
        path.write_text(text)
    assert text == path.read_text()


def test_every_view_on_80_columns(tmp_path):
    with terminal(tmp_path, trace_make(tmp_path / "run.json")) as at:
        same_screen(at.until(lambda said: "q quit" in said[23]), "findings")
        for name in ("steps", "ops", "tree", "kernels", "memory"):
            same_screen(at.press("Tab"), name)
        same_screen(at.press("4"), "tree")
        same_screen(at.press("E"), "tree_open")
        same_screen(at.press("?"), "help")
        same_screen(at.press("x"), "tree_open")


def test_ranks_of_a_folder_are_shown_one_at_a_time(tmp_path):
    """The head says which of how many, keys lead to the others, in the same view; one that cannot be read is left out."""
    log = tmp_path / "log"
    log.mkdir()
    for rank in (0, 1, 2):
        trace_make(log / f"n_r{rank}_{70 + rank}.{1_795_000_000_000_000_000 + rank}.pt.trace.json", distributedInfo={"rank": rank, "world_size": 3})
    with terminal(tmp_path, log) as at:
        first = at.until(lambda said: "q quit" in said[23])
        assert first[0].startswith("kprof view  rank 0 (1 of 3)  n_r0_70.") and "] [ other trace" in first[23]
        at.press("3")
        second = at.press("]")
        assert second[0].startswith("kprof view  rank 1 (2 of 3)  n_r1_71.") and "self" in second[2] and "aten::addmm" in second[3]
        assert at.press("[")[0].startswith("kprof view  rank 0 (1 of 3)") and at.press("[")[0].startswith("kprof view  rank 2 (3 of 3)")
        for torn in log.glob("n_r0_*"):
            torn.write_text("{")
        assert at.press("]")[0].startswith("kprof view  rank 1 (1 of 2)")
        left = at.press("q")
        assert any("left with 1" in line for line in left) and "n_r0_70" in (tmp_path / "said").read_text()
    shown = [json.loads(line) for line in harness.cli("view", "--json", log).stdout.splitlines()]
    assert len(shown) == 2 and {os.path.basename(one["trace"])[:4] for one in shown} == {"n_r1", "n_r2"}


def test_rows_fold_sort_and_are_found(tmp_path):
    with terminal(tmp_path, trace_make(tmp_path / "run.json")) as at:
        at.press("4")
        assert "data loading" in at.screen()[4] and "train.py" in at.press("Enter")[4]
        found = at.press("/", "ADDMM")
        assert found[23].startswith("/ADDMM") and any("aten::addmm" in line for line in found[3:20])
        assert at.press("Enter")[21] == "aten::addmm"
        missing = at.press("/", "nothing here", "Enter")
        assert missing[23] == 'no name here has "nothing here"'
        assert "train.py" in at.press("Left")[4]  # to what is around it
        assert "data loading" in at.press("Left")[4]  # and folded
        assert "train.py" in at.press("E")[4] and "data loading" in at.press("C")[4]
        rows = [line.split()[-1] for line in at.press("3")[3:8] if line]
        assert rows[0] == "aten::addmm"  # by the GPU's time
        by_self = at.press("s")
        assert "self*" in by_self[2] and by_self[3].split()[-1] != rows[0]
        at.press("End"), at.press("Home")
        assert at.press("q")[0] == "left with 0"


def test_a_step_is_shown_alone(tmp_path):
    with terminal(tmp_path, trace_make(tmp_path / "run.json")) as at:
        at.press("2"), at.press("Down")
        chosen = at.press("Enter")
        assert chosen[1].endswith("step 8 (Esc: all)")
        alone = at.press("3")
        assert re.search(r" 900\.00 us .* 1 .* aten::relu$", "\n".join(alone), re.M)
        assert re.search(r" 1\.40 ms .* 2 .* aten::relu$", "\n".join(at.press("Escape")), re.M)


def test_the_window_changes_its_size(tmp_path):
    with terminal(tmp_path, trace_make(tmp_path / "run.json")) as at:
        at.press("3")
        at.tmux("resize-window", "-x", "120", "-y", "30")
        wide = at.until(lambda said: len(said) >= 30 and "q quit" in said[29])
        assert "aten::linear" in "\n".join(wide)
        for columns, lines in ((20, 5), (1, 1), (80, 24)):
            at.tmux("resize-window", "-x", str(columns), "-y", str(lines))
        assert at.until(lambda said: len(said) >= 24 and "q quit" in said[23])[1].startswith(" 1 Findings")
        assert at.press("q")[0] == "left with 0"


EVIL = ["\x1b]0;owned\x07\x1b[2J", "a\nb\tc", "\u202e\u4e2d\u6587\u4e2d\u6587", "\u0085\u009b31m", "x" * 5000]


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_no_control_letter_of_a_trace_reaches_the_terminal(locale, tmp_path):
    trace = trace_make(tmp_path / "evil.json", *(event("cpu_op", name, 20000 + 90 * i, 80, **{"External id": 9000 + i}) for i, name in enumerate(EVIL)))
    with terminal(tmp_path, trace, width=150, locale=locale) as at:
        said = "\n".join(at.press("3"))
        assert "\\x1b]0;owned\\x07\\x1b[2J" in said and "a\\x0ab\\x09c" in said and "\\x85\\x9b31m" in said and "xxxx.." in said
        assert ("\u4e2d\u6587" in said) == (locale == "C.UTF-8") and ("??" in said) == (locale == "C")
        assert "owned" not in at.tmux("display-message", "-p", "#{pane_title}")


def test_what_is_no_terminal_or_no_trace_is_one_line(tmp_path):
    said = harness.cli("view", trace_make(tmp_path / "run.json"))
    assert said.returncode == 1 and said.stderr.count("\n") == 1 and "not a terminal" in said.stderr and not said.stdout
    (tmp_path / "empty.json").write_text("")
    with terminal(tmp_path, tmp_path / "empty.json") as at:
        assert at.until(lambda screen: screen[0])[0] == "left with 1"
    assert (tmp_path / "said").read_text().count("\n") == 1
