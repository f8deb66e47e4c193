# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of cases.py under `kprof run` and puts what is told beside what is true, in a table.

usage: python truth.py [--quick] [-k TEXT] [--keep FOLDER]
Exit 0: each case is told right, and nothing else is; but for those that are known to be wrong, which are told, too. The programs' own clocks are the truth (programs/clock.py).
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import cases

HERE = pathlib.Path(__file__).resolve().parent
KPROF = pathlib.Path(os.environ.get("KPROF_BUILD", HERE.parent.parent / "build")) / "kprof"
PYTHON = os.environ.get("KPROF_PYTHON", sys.executable)
SECONDS = 600


def environment(flags=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF_", "LD_PRELOAD")) or k == "KPROF_TEST_INDUCTOR"}
    env.pop("OMP_NUM_THREADS", None)  # the programs set their threads themselves
    if steps := re.search(r"--schedule (\d+-\d+)", " ".join(flags)):
        env["TRUTH_STEPS"] = steps.group(1)
    return env


def record(case, folder, kprof, python, args):
    """Runs the program, and returns its TRUTH."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.ranks)] if case.ranks else []
    command = [kprof, "run", *case.flags, "-o", folder, "--", python, *launch, HERE / "programs" / case.program, *args]
    done = subprocess.run(command, env=environment(case.flags), capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TRUTH ")]
    assert done.returncode == case.code and lines, f"{case.name}: {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
    return json.loads(lines[-1][len("TRUTH "):]) if lines else {}


def read(case, folders, kprof):
    """What the reading command says: its text, and the findings of all lines of JSON."""
    done = subprocess.run([kprof, *case.read, *folders], env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False)
    if case.known and done.returncode:
        return done.stderr, []
    allowed = (0, 1) if case.read[0] == "diff" else (0,)
    assert done.returncode in allowed, f"{case.name}: {done.stderr[-2000:]}"
    findings = []
    if "--json" in case.read:
        for line in done.stdout.splitlines():
            findings += json.loads(line).get("findings", [])
    return done.stdout, findings


def figure(finding, told=None):
    """A finding's cost: bytes where it has some, else ms a step. Where a pattern has a group, it is the figure."""
    for pattern in told.says if told and told.truth else ():
        if (said := re.search(pattern, finding["what"])) and said.groups():
            return float(said.group(1))
    return finding["step_bytes"] or finding["step_ms"]


def wrong_of(told, finding, truth, times):
    """What is wrong with a finding, as words. `times`: how much more may be off, on a busy machine."""
    wrong = []
    if told.truth:
        said, true = figure(finding, told), truth[told.truth]
        slack = told.slack * (1024 if finding["step_bytes"] else 1)
        if abs(said - true) > times * max(told.within * true, slack):
            wrong.append("cost")
    words = json.dumps(finding, ensure_ascii=False)
    if told.line and told.line not in f"{finding['line']} {finding['where']} {finding['what']}":
        wrong.append("line")
    wrong += [f"says no /{pattern}/" for pattern in told.says if not re.search(pattern, words)]
    if told.severity and finding["severity"] != told.severity:
        wrong.append(finding["severity"])
    return wrong


def text_row(told, truth, text, times):
    """Of words: patterns; with `truth`, the first one's group is the figure."""
    missing = [f"says no /{pattern}/" for pattern in told.says if not re.search(pattern, text)]
    if not told.truth or missing:
        return told.id, None, truth.get(told.truth), missing
    said, true = abs(float(re.search(told.says[0], text).group(1))), truth[told.truth]
    return told.id, said, true, ["cost"] if abs(said - true) > times * max(told.within * true, told.slack) else []


def rows_of(case, truth, text, findings, times):
    """(told, cost, truth, wrong) of each that must be told, and of each that must not."""
    for told in case.told:
        if told.id == "text":
            yield text_row(told, truth, text, times)
            continue
        of_id = [finding for finding in findings if finding["id"] == told.id]
        found = next((finding for finding in of_id if told.line in f"{finding['line']} {finding['where']}"), of_id[0] if of_id else None)
        true = truth.get(told.truth)
        yield (told.id, figure(found, told), true, wrong_of(told, found, truth, times)) if found else (told.id, None, true, ["not told"])
    named = {told.id for told in case.told} | case.also
    for finding in findings:
        if finding["id"] not in named:
            yield finding["id"], figure(finding), None, ["false"]
    for pattern in case.unsaid:
        if said := re.search(pattern, text):
            yield "text", None, None, [f"says {said.group(0)!r}"]


def number(value):
    return "-" if value is None else f"{value:.3f}" if value < 1e5 else f"{value / 1024:.1f} KiB"


def judge(case, folder, kprof=KPROF, python=PYTHON, times=1):
    """The case's rows, and what the command said."""
    if case.than is None:
        truth, folders = record(case, folder, kprof, python, case.args), [folder]
    else:  # two recordings, and what differs
        folders = [folder / "first", folder / "second"]
        first, second = (record(case, of, kprof, python, args) for of, args in zip(folders, (case.args, case.than)))
        truth = {"less_ms": first["wall_ms"] - second["wall_ms"]}
    text, findings = read(case, folders, kprof)
    return list(rows_of(case, truth, text, findings, times)), text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="the cases of CI alone")
    parser.add_argument("-k", default="", help="the cases with this text in their name")
    parser.add_argument("--keep", help="a folder for the recordings")
    args = parser.parse_args()
    root = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="truth"))
    bad = known = 0
    print(f"{'case':32} {'told':22} {'said':>12} {'true':>12} {'':8} wrong")
    for case in (case for case in cases.CASES if args.k in case.name and (case.quick or not args.quick)):
        folder = root / re.sub(r"\W+", "_", case.name)
        shutil.rmtree(folder, ignore_errors=True)
        rows, text = judge(case, folder)
        for name, said, true, wrong in rows or [("nothing", None, None, [])]:
            off = f"{100 * (said / true - 1):+.1f} %" if said and true else ""
            print(f"{case.name:32} {name:22} {number(said):>12} {number(true):>12} {off:>8} {', '.join(wrong) or 'right'}", flush=True)
        is_wrong = any(wrong for *_, wrong in rows)
        if case.known:
            print(f"{case.name:32} {'known wrong' if is_wrong else 'known wrong, and is right now: take its mark away'}: {case.known}", flush=True)
        bad += is_wrong != bool(case.known)
        known += bool(case.known and is_wrong)
        folder.mkdir(exist_ok=True)
        (folder / "said.txt").write_text(text)
    if not args.keep:
        shutil.rmtree(root)
    print(f"{bad} cases are told wrong" if bad else "all else is told right" if known else "all is told right", f"; {known} are known to be wrong" if known else "", sep="")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
