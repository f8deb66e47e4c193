#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names.py - writes the name tables of the doubles from what libraries of CUDA export and answer

usage: names.py --cupti LIBCUPTI --cuda LIBCUDA --cudart 11.0=LIB --cudart 12=LIB --cudart 13=LIB

cbids.def            number and name of every callback, as cuptiGetCallbackName answers (needs no driver up to 13.1)
cuda_exports.def     the names libcuda.so.1 exports (the link stub of the toolkit has them all)
cudart_exports.def   the names each libcudart exports
Run by hand when a newer CUDA is to be doubled; the tables are kept in the repository and hold nothing but names and numbers.
"""
import argparse
import ctypes
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
HEAD = "// SPDX-License-Identifier: Apache-2.0\n/* {} - {} (made by names.py) */\n"


def callbacks(library, domain):
    """The (number, name) pairs of one domain."""
    lib = ctypes.CDLL(library)
    for number in range(1, 1400):
        name = ctypes.c_char_p()
        if lib.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0 and name.value:
            yield number, name.value.decode()


def plain(name):
    """cudaLaunchKernel_v7000 -> cudaLaunchKernel, 7000"""
    m = re.fullmatch(r"(.*)_v(\d{4,5})", name)
    return (m[1], int(m[2])) if m else (name, 0)


def callback_rows(library):
    for domain, macro in ((1, "DRIVER"), (2, "RUNTIME")):
        newest = {}
        rows = [(number, name, *plain(name)) for number, name in callbacks(library, domain)]
        for number, name, key, version in rows:
            newest[key] = max(newest.get(key, 0), version)
        for number, name, key, version in rows:
            yield f'SIM_{macro}({number}, {key if newest[key] == version else name}, "{name}")'


def exports(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[1] in "TWi"})


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--cupti", required=True)
    args.add_argument("--cuda", required=True)
    args.add_argument("--cudart", action="append", required=True)
    args = args.parse_args()

    def write(name, says, rows):
        (HERE / name).write_text(HEAD.format(name, says) + "\n".join(rows) + "\n")

    write("cbids.def", "numbers and names of CUPTI's callbacks", callback_rows(args.cupti))
    write("cuda_exports.def", "what libcuda.so.1 exports", (f"SIM_EXPORT({n})" for n in exports(args.cuda)))
    have = {}
    for pair in args.cudart:
        version, library = pair.split("=")
        for name in exports(library):
            if "cuda" in name:
                have.setdefault(name, []).append("V" + version.replace(".0", ""))
    write("cudart_exports.def", "what each libcudart exports", (f"SIM_EXPORT({n}, {' | '.join(v)})" for n, v in sorted(have.items())))


if __name__ == "__main__":
    main()
