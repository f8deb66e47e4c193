# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of cases.py under `kprof run` and puts what is told beside what is true, in a table.

usage: python truth.py [--quick] [-k TEXT] [--keep FOLDER]
Exit 0: each case is told right, and nothing else is; but for rows that are known to be wrong, which are told, too.
The programs' own clocks are the truth (programs/clock.py). A case that is told wrong runs again at the end where its
program had no core for much of the time that it wanted one, and each such run is printed. One that never had its core
is skipped, with the reason, and counted.
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
BUSY, TRIES = 0.1, 3  # a program that had no core for more of the time that it wanted one; runs of a case


def environment(flags=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KPROF_", "LD_PRELOAD")) or k == "KPROF_TEST_INDUCTOR"}
    env.pop("OMP_NUM_THREADS", None)  # the programs set their threads themselves
    if steps := re.search(r"--schedule (\d+-\d+)", " ".join(flags)):
        env["TRUTH_STEPS"] = steps.group(1)
    return env


def record(case, folder, kprof, python, args):
    """Runs the program, and returns its TRUTH and what `kprof run` said."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.ranks)] if case.ranks else []
    command = [kprof, "run", *case.flags, "-o", folder, "--", python, *launch, HERE / "programs" / case.program, *args]
    done = subprocess.run(command, env=environment(case.flags), capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("TRUTH ")]
    assert done.returncode == case.code and lines, f"{case.name}: {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
    return json.loads(lines[-1][len("TRUTH "):]) if lines else {}, done.stderr


def read(case, folders, kprof):
    """What the reading command says: its text, and the findings of all lines of JSON."""
    done = subprocess.run([kprof, *case.read, *folders], env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False)
    if case.refuses and case.refuses in done.stderr:
        return done.stderr, []
    allowed = (0, 1) if case.read[0] == "diff" else (0,)
    assert done.returncode in allowed, f"{case.name}: {done.stderr[-2000:]}"
    findings = []
    if "--json" in case.read:
        for line in done.stdout.splitlines():
            findings += json.loads(line).get("findings", [])
    return done.stdout, findings


def figure(finding, told=None):
    """A finding's cost: bytes where it has some, else ms a step. Where a pattern has a group, that is the figure: None where the
    pattern is not said, the finding's cost where it is said by an alternative without a group."""
    cost = finding["step_bytes"] or finding["step_ms"]
    with_figure = [pattern for pattern in told.says if re.compile(pattern).groups] if told and told.truth else []
    said = [match for pattern in with_figure if (match := re.search(pattern, json.dumps(finding, ensure_ascii=False)))]
    groups = [float(group) for match in said for group in match.groups() if group is not None]
    return groups[0] if groups else cost if said or not with_figure else None


def wrong_of(told, finding, truth, times):
    """What is wrong with a finding, as words. `times`: how much more may be off, on a busy machine."""
    wrong = []
    if told.truth:
        said, true = figure(finding, told), truth[told.truth]
        slack = told.slack * (1024 if finding["step_bytes"] else 1)
        if said is not None and abs(said - true) > times * max(told.within * true, slack):
            wrong.append("cost")
    words = json.dumps(finding, ensure_ascii=False)
    if told.line and told.line not in f"{finding['line']} {finding['where']} {finding['what']}":
        wrong.append("line")
    wrong += [f"says no /{pattern}/" for pattern in told.says if not re.search(pattern, words)]
    if told.severity and finding["severity"] != told.severity:
        wrong.append(finding["severity"])
    return wrong


def words_figure(match, key):
    """The first number that the pattern found; ms where TRUTH has ms, whatever its unit."""
    at = next(at for at, group in enumerate(match.groups(), 1) if group is not None)
    unit = re.match(r" (us|s)\b", match.string[match.end(at):])
    times = {"us": 1e-3, "s": 1e3}[unit.group(1)] if unit and key.endswith("_ms") else 1
    return times * abs(float(match.group(at)))


def text_row(told, truth, text, times):
    """Of words: patterns; with `truth`, the first one's group is the figure."""
    missing = [f"says no /{pattern}/" for pattern in told.says if not re.search(pattern, text)]
    if not told.truth or missing:
        return told.id, None, truth.get(told.truth), missing
    said, true = words_figure(re.search(told.says[0], text), told.truth), truth[told.truth]
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


def busy_share(truth):
    """Of the time that the program's thread wanted a core, the share in which it had none; 0 where its clock does not say."""
    wanted = truth.get("ran_ms", 0) + truth.get("no_core_ms", 0)
    return truth.get("no_core_ms", 0) / wanted if wanted else 0


def once(case, folder, kprof, python, times):
    """The case's rows, what the command said, and how busy the machine was."""
    shutil.rmtree(folder, ignore_errors=True)
    if case.than is None:
        (truth, said), folders = record(case, folder, kprof, python, case.args), [folder]
        busy = busy_share(truth)
    else:  # two recordings, and what differs
        folders = [folder / "first", folder / "second"]
        (first, said), (second, _) = (record(case, of, kprof, python, args) for of, args in zip(folders, (case.args, case.than)))
        truth = {"less_ms": first["wall_median_ms"] - second["wall_median_ms"]}  # as diff's, which a busy machine shifts as much
        busy = max(busy_share(first), busy_share(second))
    text, findings = read(case, folders, kprof)
    text += said
    return list(rows_of(case, truth, text, findings, times)), text, busy


def is_of_machine(case, row):
    """Can a machine without a core for the program make it so? It changes no words, unless it changes the cost, too, and no names where the program fills the cores itself."""
    has_words = any(wrong.startswith("says ") for wrong in row[-1])
    return "cost" in row[-1] if has_words else row[-1] == ["cost"] or not (case.fills or row[0] == "text")


def judge(case, folder, kprof=KPROF, python=PYTHON, times=1, say=lambda text: None, tries=TRIES):
    """The case's rows, what the command said, and why it is skipped: of the first run that is right, or that had its cores, or of the last."""
    for _ in range(tries):
        rows, text, busy = once(case, folder, kprof, python, times)
        wrong = wrong_rows(case, rows)
        lacked = wrong and busy > BUSY and all(is_of_machine(case, row) for row in wrong)
        if not lacked:
            return rows, text, ""
        said = f"{'; '.join(f'{row[0]}: {row[-1]}' for row in wrong)}, and had no core for {100 * busy:.0f} % of what it wanted"
        say(f"wrong: {said}")
    return rows, text, said


def is_known(case, row):
    """Is it wrong in the way that the case says, and by that much?"""
    name, said, true, wrong = row
    if name not in case.known:
        return False
    known = case.known[name]
    as_said = known.share is None or (said is not None and true and abs(said / true - known.share) <= 0.1)
    return len(wrong) == 1 and wrong[0].startswith(known.wrong) and as_said


def wrong_rows(case, rows):
    return [row for row in rows if row[-1] and not is_known(case, row)]


def table_print(case, rows):
    for row in rows or [("nothing", None, None, [])]:
        name, said, true, wrong = row
        off = f"{100 * (said / true - 1):+.1f} %" if said and true else ""
        word = f"known wrong: {', '.join(wrong)}: {case.known[name].why}" if is_known(case, row) else ", ".join(wrong) or "right"
        print(f"{case.name:32} {name:22} {number(said):>12} {number(true):>12} {off:>8} {word}", flush=True)


def all_judged(chosen, judge_one):
    """(case, rows, text, skipped) of each; those that had no core come again when all others are done."""
    later = []
    for case in chosen:
        judged = judge_one(case, 1)
        if judged[-1]:
            later.append(case)
        else:
            yield case, *judged
    for case in later:
        yield case, *judge_one(case, TRIES - 1)


def told_of(case, rows, skipped):
    """Prints the case, and returns what it counts as: right, wrong or skipped; and how many rows are known to be wrong."""
    if skipped:
        print(f"{case.name:32} skipped: {skipped}", flush=True)
        return "skipped", 0
    table_print(case, rows)
    seen = {row[0] for row in rows if is_known(case, row)}
    for name in case.known.keys() - seen:
        print(f"{case.name:32} {name:22} is not wrong in the way that cases.py says: take its mark away", flush=True)
    return "wrong" if wrong_rows(case, rows) or case.known.keys() - seen else "right", len(seen)


def closing(names, known):
    left = f"; {known} rows are known to be wrong" if known else ""
    if names["skipped"]:
        left += f"; {len(names['skipped'])} cases are skipped, as their programs had no core: {', '.join(names['skipped'])}"
    bad = names["wrong"]
    return f"{len(bad)} cases are told wrong: {', '.join(bad)}{left}" if bad else f"all {'else ' if left else ''}is told right{left}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="the cases of CI alone")
    parser.add_argument("-k", default="", help="the cases with this text in their name")
    parser.add_argument("--keep", help="a folder for the recordings")
    args = parser.parse_args()
    root = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="truth"))
    names, known = {"right": [], "wrong": [], "skipped": []}, 0

    def judge_one(case, tries):
        return judge(case, root / re.sub(r"\W+", "_", case.name), tries=tries, say=lambda said: print(f"{case.name:32} {said}", flush=True))

    print(f"{'case':32} {'told':22} {'said':>12} {'true':>12} {'':8} wrong")
    chosen = [case for case in cases.CASES if args.k in case.name and (case.quick or not args.quick)]
    for case, rows, text, skipped in all_judged(chosen, judge_one):
        word, more = told_of(case, rows, skipped)
        names[word].append(case.name)
        known += more
        folder = root / re.sub(r"\W+", "_", case.name)
        folder.mkdir(exist_ok=True)
        (folder / "said.txt").write_text(text)
    if not args.keep:
        shutil.rmtree(root)
    print(closing(names, known))
    return bool(names["wrong"])


if __name__ == "__main__":
    sys.exit(main())
