#!/usr/bin/env python3
"""generate.py - makes the tables of the simulated libcupti

  layouts IN.json            the reduced test/data/cupti_layouts.json from a full table (kind -> version -> struct, fields)
  header LAYOUTS.json        layout.h: record sizes by version, where each field lies and since when
  exports VERSION=LIB ...    exports.def: what real libraries export, from which version on, until when
  results LIB                results.def: cuptiGetResultString of a real library (<= 13.1: those need no driver)

The output goes to stdout. Names, offsets and sizes are facts of the interface; nothing of NVIDIA's headers is kept.
"""
import ctypes
import json
import subprocess
import sys

KINDS = """MEMCPY MEMSET KERNEL DRIVER RUNTIME EVENT METRIC DEVICE CONTEXT CONCURRENT_KERNEL NAME MARKER MARKER_DATA
SOURCE_LOCATOR GLOBAL_ACCESS BRANCH OVERHEAD CDP_KERNEL PREEMPTION ENVIRONMENT EVENT_INSTANCE MEMCPY2 METRIC_INSTANCE
INSTRUCTION_EXECUTION UNIFIED_MEMORY_COUNTER FUNCTION MODULE DEVICE_ATTRIBUTE SHARED_ACCESS PC_SAMPLING
PC_SAMPLING_RECORD_INFO INSTRUCTION_CORRELATION OPENACC_DATA OPENACC_LAUNCH OPENACC_OTHER CUDA_EVENT STREAM SYNCHRONIZATION
EXTERNAL_CORRELATION NVLINK INSTANTANEOUS_EVENT INSTANTANEOUS_EVENT_INSTANCE INSTANTANEOUS_METRIC
INSTANTANEOUS_METRIC_INSTANCE MEMORY PCIE OPENMP INTERNAL_LAUNCH_API MEMORY2 MEMORY_POOL GRAPH_TRACE JIT DEVICE_GRAPH_TRACE
MEM_DECOMPRESS CONFIDENTIAL_COMPUTE_ROTATION GRAPH_HOST_NODE COMPUTE_ENGINE_CTX_SWITCH HOST_LAUNCH GREEN_CONTEXT""".split()
# Kinds whose records the libraries no longer know from 13.0 on, though the headers still name them.
DEAD_13 = {6, 7, 14, 15, 16, 21, 23, 24, 29, 30, 31, 32, 41, 42, 43, 44}
# The records that the double writes: only their fields are wanted as constants.
WRITTEN = """RUNTIME KERNEL MEMCPY MEMCPY2 MEMSET SYNCHRONIZATION CUDA_EVENT OVERHEAD CONTEXT STREAM DEVICE MEMORY2
EXTERNAL_CORRELATION GRAPH_TRACE JIT GRAPH_HOST_NODE HOST_LAUNCH""".split()


def reduce_layouts(path):
    full = json.load(open(path))
    versions = list(full["MEMCPY"])
    kinds = {}
    for number, name in enumerate(KINDS, 1):
        by_version = full[name]
        structs, fields, last = [], {}, None
        for version in versions:
            layout = by_version.get(version)
            if layout is None or (number in DEAD_13 and version >= "13"):
                if last is not None:
                    structs.append([version, None, 0])
                last = None
                continue
            if (layout["struct"], layout["size"]) != last:
                last = (layout["struct"], layout["size"])
                structs.append([version, layout["struct"], layout["size"]])
            for field, place in layout["fields"].items():
                places = fields.setdefault(field, [])
                if not places or places[-1][1:] != place:
                    places.append([version, *place])
        if name == "CONFIDENTIAL_COMPUTE_ROTATION":  # the library walks them before the headers tell
            structs[0][0] = "12.9"
        kinds[name] = {"kind": number, "structs": structs, "fields": fields}
    rows = [f'"{n}": ' + json.dumps(k, separators=(",", ":")) for n, k in kinds.items()]
    print('{"versions": ' + json.dumps(versions) + ',\n"kinds": {\n' + ",\n".join(rows) + "\n}}")


def header(path):
    data = json.load(open(path))
    versions = data["versions"]
    print("// SPDX-License-Identifier: Apache-2.0\n/* layout.h - record sizes and fields by version; made by generate.py from "
          "test/data/cupti_layouts.json */\n/* clang-format off */\n#pragma once\n")
    print("#define LAYOUT_VERSIONS " + str(len(versions)))
    names = [f'"{v}"' for v in versions]
    print("#define LAYOUT_VERSION_NAMES {" + ", ".join(names[:10]) + ", \\\n    " + ", ".join(names[10:]) + "}\n")
    print("enum simcupti_kind {")
    for name, kind in data["kinds"].items():
        print(f"    KIND_{name} = {kind['kind']},")
    print("    KIND_COUNT\n};\n\nstatic const unsigned short layout_sizes[KIND_COUNT][LAYOUT_VERSIONS] = {")
    for name, kind in data["kinds"].items():
        starts = {v: size for v, _, size in kind["structs"]}
        size, row = 0, []
        for version in versions:
            size = starts.get(version, size)
            row.append(str(size))
        print(f"    [KIND_{name}] = {{{', '.join(row)}}},")
    print("};\n\n/* A field: where it lies, its size, and the first version (an index) whose records have it. */")
    print("struct layout_field {\n    unsigned short offset;\n    unsigned char size, since;\n};\n")
    for name in WRITTEN:
        for field, places in data["kinds"][name]["fields"].items():
            if field == "kind" or len(places) != 1 or field.startswith(("pad", "reserved")):
                continue
            version, offset, size = places[0]
            print(f"#define {name}_{field.replace('.', '_')} ((struct layout_field){{{offset}, {size}, "
                  f"{versions.index(version)}}})")


def number(text):
    major, minor = text.split(".")[:2]
    return int(major) * 100 + int(minor)


def exports(pairs):
    libs = sorted((number(v), lib) for v, lib in (p.split("=", 1) for p in pairs))
    seen = {}
    for version, lib in libs:
        out = subprocess.run(["nm", "-D", "--defined-only", lib], check=True, capture_output=True, text=True).stdout
        names = {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] == "T"}
        for name in names:
            since, _ = seen.get(name, (version, None))
            seen[name] = (since, version)
    newest = libs[-1][0]
    print("// SPDX-License-Identifier: Apache-2.0\n// exports.def - what libcupti exports: name, first and last version that has it "
          "(1107 is 11.7; 9999: still there); made by generate.py")
    for name, (since, last) in sorted(seen.items()):
        print(f"EXPORT({name}, {since}, {9999 if last == newest else last})")


def results(lib):
    cupti = ctypes.CDLL(lib)
    print("// SPDX-License-Identifier: Apache-2.0\n// results.def - what cuptiGetResultString answers; made by generate.py")
    text = ctypes.c_char_p()
    for result in range(0, 1001):
        if cupti.cuptiGetResultString(result, ctypes.byref(text)) == 0 and text.value:
            print(f'RESULT({result}, "{text.value.decode()}")')


if __name__ == "__main__":
    jobs = {"layouts": lambda a: reduce_layouts(a[0]), "header": lambda a: header(a[0]), "exports": exports, "results": lambda a: results(a[0])}
    if len(sys.argv) < 3 or sys.argv[1] not in jobs:
        sys.exit(__doc__)
    jobs[sys.argv[1]](sys.argv[2:])
