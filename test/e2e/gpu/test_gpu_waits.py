# SPDX-License-Identifier: Apache-2.0
"""Waits (cuda_sync): recorded when they are asked for, as torch.profiler's enable_cuda_sync_events does; a query is no wait."""
import collections
import gzip
import json

import gpufacts
import harness
import simgpu

SYNCHRONIZATION = 38
QUERIES = {"cudaEventQuery", "cudaStreamQuery"}


def waits(trace):
    """Of the stepped window, without queries: how often a program polls differs from run to run."""
    low, high = gpufacts.window(trace)
    calls = gpufacts.launches(trace)
    said = []
    for event in gpufacts.of(trace, "cuda_sync"):
        args = gpufacts.args(event)
        call = calls.get(args["correlation"])
        if call and call["name"] not in QUERIES and low <= gpufacts.facts.begin(call) < high:
            said.append((event["name"], call["name"], args["cuda_sync_kind"], args["stream"], args.get("wait_on_stream")))
    return collections.Counter(said)


def test_unasked_neither_has_any(kineto, kprof, loaded):
    for run in (kineto("training.py"), kprof("training.py", KPROF_PROFILE_MEMORY=1)):
        assert not gpufacts.of(loaded(run), "cuda_sync")


def test_asked_both_have_the_same(kineto, kprof, loaded):
    theirs = waits(loaded(kineto("training.py", waits=True)))
    ours = waits(loaded(kprof("training.py", KPROF_CUDA_SYNC=1)))
    assert {name for name, *_ in theirs} >= {"Stream Sync", "Stream Wait Event"}
    assert ours == theirs


# --- a program that asks again and again whether an event is reached ---

def polls(folder, plan="l3q.l5ql3s.", **env):
    settings = {"LD_LIBRARY_PATH": simgpu.FOLDER, "LD_PRELOAD": harness.LIBRARY, "KPROF_DIR": folder, "SIMGPU_KERNEL_NS": 20000000,
                "SIMGPU_LOG": folder / "truth", "SIMCUPTI_LOG": folder / "calls", **env}
    command = [simgpu.FOLDER / "client", folder / "records", plan]
    run = harness.Run(command, folder, harness.clean_environment(**settings), timeout=harness.LONG).ok()
    truth, calls = ([json.loads(line) for line in (folder / name).read_text().splitlines()] for name in ("truth", "calls"))
    events = json.loads(gzip.open(run.trace).read())["traceEvents"]
    asked = collections.Counter(row["result"] for row in truth if row["what"] == "query")
    assert asked[600], "nothing was asked in vain"  # how often, in 160 ms, is how often it had a core
    told = [row["args"][0] for row in calls if row.get("call") == "cuptiActivityEnableAllSyncRecords" and row["result"] == 0]
    return collections.Counter(e["name"] for e in events if e.get("cat") == "cuda_sync"), asked, told, calls


def test_unasked_cupti_makes_no_record_of_waits(tmp_path):
    shown, _, told, calls = polls(tmp_path)
    assert not shown and not told
    assert not [row for row in calls if row.get("call") == "cuptiActivityEnable" and row["args"][0] == SYNCHRONIZATION]


def test_a_query_that_found_nothing_done_is_no_wait(tmp_path):
    shown, asked, told, _ = polls(tmp_path, KPROF_CUDA_SYNC=1)
    assert sum(shown.values()) == 1 + asked[0]  # cudaDeviceSynchronize, and each answer that it is reached
    assert told in ([0], [0, 1]), "left out while we record, told again afterwards, unless that is the exit, which disables nothing"


def test_after_a_window_cupti_tells_of_queries_again(tmp_path):
    """A program that goes on after its window: what we left out is told as before."""
    told = polls(tmp_path, plan="l3q.l5ql3s.k" + "z" * 20 + "s." + "z" * 20 + "l3qs", KPROF_CUDA_SYNC=1)[2]
    assert told == [0, 1]


def test_nor_where_cupti_tells_of_it_all_the_same(tmp_path):
    shown, asked, _, _ = polls(tmp_path, KPROF_CUDA_SYNC=1, SIMCUPTI_FAIL="cuptiActivityEnableAllSyncRecords:0:1")
    assert sum(shown.values()) == 1 + asked[0]
