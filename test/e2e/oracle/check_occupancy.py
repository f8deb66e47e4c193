# SPDX-License-Identifier: Apache-2.0
"""Computes blocks and warps a multiprocessor and the occupancy of every kernel of a trace again, by CUDA's public rules.

usage: check_occupancy.py TRACE...      one line a trace, with the number of kernels that say something else
A second opinion beside ../gpufacts.py: other hands wrote it, and it shares no code with the tests.
"""
import collections
import gzip
import json
import math
import struct
import sys

# blocks a multiprocessor holds at most, by compute capability
BLOCKS = {(3, 5): 16, (3, 7): 16, (5, 0): 32, (5, 2): 32, (5, 3): 32, (6, 0): 32, (6, 1): 32, (6, 2): 32, (7, 0): 32, (7, 2): 32, (7, 5): 16,
          (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24, (9, 0): 32, (10, 0): 32, (10, 3): 32, (12, 0): 24}
# of a multiprocessor's shared memory, where an old file does not tell it
SHARED = {(7, 0): 98304, (8, 0): 167936, (6, 0): 65536}


def load(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


def single(value):
    """As a float of C."""
    return struct.unpack("f", struct.pack("f", value))[0]


def up(value, step):
    return (value + step - 1) // step * step


def capability(device):
    return device["computeMajor"], device["computeMinor"]


def by_registers(device, registers, warps):
    parts = 2 if capability(device) == (6, 0) else 4
    of_a_warp = up(max(registers, 1) * 32, 256)
    if up(warps, parts) * of_a_warp > device.get("regsPerBlock", 65536):
        return 0
    if not registers:
        return BLOCKS[capability(device)]
    return device.get("regsPerMultiprocessor", 65536) // parts // of_a_warp * parts // warps


def by_shared_memory(device, shared):
    newer = capability(device)[0] >= 8
    total = up(shared + (1024 if newer else 0), 128 if newer else 256)
    if shared > device["sharedMemPerBlock"]:
        return 0
    if not total:
        return BLOCKS[capability(device)]
    return (device.get("sharedMemPerMultiprocessor") or SHARED[capability(device)]) // total


def active_blocks(device, registers, shared, threads):
    warps = (threads + 31) // 32
    too_many = warps * 32 > device.get("maxThreadsPerBlock", 1024)
    by_warps = 0 if too_many else device.get("maxThreadsPerMultiprocessor", 2048) // 32 // warps
    return min(by_warps, BLOCKS[capability(device)], by_registers(device, registers, warps), by_shared_memory(device, shared))


def differs(said, expected):
    return abs(expected - said) > 1e-4 * max(1, expected)


def check(devices, kernels):
    """How many kernels say each of the three otherwise."""
    wrong = collections.Counter()
    for said in kernels:
        device, threads = devices[said["device"]], math.prod(said["block"])
        blocks = single(math.prod(said["grid"]) / device["numSms"])
        active = active_blocks(device, said["registers per thread"], said["shared memory"], threads)
        occupancy = math.floor(min(active, blocks) * threads / device.get("maxThreadsPerMultiprocessor", 2048) * 100 + 0.5)
        wrong["blocks"] += differs(said["blocks per SM"], blocks)
        wrong["warps"] += differs(said["warps per SM"], blocks * threads / 32)
        wrong["occupancy"] += occupancy != said["est. achieved occupancy %"]
    return wrong


def main():
    for path in sys.argv[1:]:
        trace = load(path)
        devices = {device["id"]: device for device in trace.get("deviceProperties", [])}
        kernels = [e["args"] for e in trace["traceEvents"] if e.get("ph") == "X" and str(e.get("cat")).lower() == "kernel"
                   and "est. achieved occupancy %" in e["args"]]
        wrong = check(devices, kernels)
        print(f"{path} kernels {len(kernels)} blocksPerSM mismatch {wrong['blocks']} warpsPerSM mismatch {wrong['warps']}"
              f" occupancy mismatch {wrong['occupancy']}")


if __name__ == "__main__":
    main()
