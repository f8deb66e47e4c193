# SPDX-License-Identifier: Apache-2.0
"""What two builds of kprof print of each stored and built trace, spool and folder of ranks, byte for byte.

usage: compare.py BEFORE AFTER [--only WORD] [--lines N]     exit 1 where any command differs
BEFORE, AFTER: the `kprof` of each build. It shows a change that was to change nothing (make golden BEFORE=path).
"""
import argparse
import base64
import concurrent.futures
import difflib
import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import advicetraces  # noqa: E402
import pagedata  # noqa: E402

DATA = HERE.parent / "data"
BY = ("line", "module", "class", "shape", "kernel", "step", "phase", "library")
OF_A_TRACE = [("report",), ("report", "--json"), ("report", "--torch"), *(("report", *form, "--by", by) for by in BY for form in ((), ("--json",))), ("report", "--json", "--step", "1"),
              ("advise",), ("advise", "--json"), ("html",), ("html", "--json"), ("stacks",), ("stacks", "--json"), ("stacks", "--torch"), ("stacks", "--svg"),
              ("stacks", "-m", "gpu"), ("memory",), ("memory", "--json"), ("memory", "--html"), ("memory", "--leaks"), ("events",), ("events", "--json"), ("view", "--json")]
OF_A_FOLDER = [("report", "--json"), ("report",), ("advise",), ("advise", "--json"), ("html",)]
SECONDS = 300


def inputs(folder):
    """Paths by name; those built are the 88 of advicetraces.py, the folders have the ranks."""
    found = {}
    for path in sorted(DATA.rglob("*.pt.trace.json.gz")):
        found[str(path.relative_to(DATA))] = path
    for kind, table in (("sick", advicetraces.SICKNESSES), ("well", advicetraces.TWINS)):
        for name, make in table.items():
            found[f"{kind}/{name}"] = make().write(folder / f"{kind}_{name.replace('/', '_').replace(' ', '_')}.pt.trace.json")
    ranks = folder / "ranks"
    ranks.mkdir()
    for path in sorted((DATA / "traces").glob("gloo_rank*")):
        shutil.copy(path, ranks)
    found["ranks"] = ranks
    for path in sorted((DATA / "spools").glob("*.kprof.gz")):
        spool = folder / path.name[:-3]
        spool.write_bytes(gzip.decompress(path.read_bytes()))
        found[f"spools/{spool.name}"] = spool
    return found


def unpacked(out):
    """A page with the data of its blocks as they were before deflate, which may pack them in several ways."""
    return pagedata.BLOCK.sub(lambda block: f"{block[1]}: {zlib.decompress(base64.b64decode(block[2]))!r}", out.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def said(kprof, command, paths):
    done = subprocess.run([kprof, *command, *map(str, paths)], capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    out = unpacked(done.stdout) if command == ("html",) else done.stdout
    return f"status {done.returncode}\n".encode() + out + b"\n--- stderr\n" + done.stderr


def differs(before, after, lines):
    texts = [text.decode(errors="replace").splitlines() for text in (before, after)]
    shown = [line[:200] for line in difflib.unified_diff(*texts, "before", "after", lineterm="", n=0)]
    return "\n".join("    " + line for line in shown[2:2 + lines])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--only", default="")
    parser.add_argument("--lines", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary, concurrent.futures.ThreadPoolExecutor(2) as pool:
        work = [(name, command, [path]) for name, path in inputs(pathlib.Path(temporary)).items() for command in (OF_A_FOLDER if path.is_dir() else OF_A_TRACE)]
        traces = [paths[0] for _, command, paths in work if command == ("report",) and paths[0].is_file()]
        work += [(f"{a.name} beside {b.name}", ("diff", *form, "--all"), [a, b]) for a, b in zip(traces, traces[1:]) for form in ((), ("--json",))]
        work = [w for w in work if options.only in f"{' '.join(w[1])} {w[0]}"]
        both = lambda w: [said(kprof, w[1], w[2]) for kprof in (options.before, options.after)]  # noqa: E731
        different = 0
        for (name, command, _), (before, after) in zip(work, pool.map(both, work)):
            if before == after:
                continue
            different += 1
            print(f"differs: kprof {' '.join(command)} of {name}\n{differs(before, after, options.lines)}", flush=True)
    print(f"golden: {len(work) - different} passed, {different} failed")
    sys.exit(different != 0 or not work)


if __name__ == "__main__":
    main()
