# SPDX-License-Identifier: Apache-2.0
"""Asks HolisticTraceAnalysis everything it can say of CPU traces; prints JSON.

usage: hta_ask.py FOLDER OTHER_FOLDER [stacks]   (the second for the comparison of two traces; stacks: the call graph too, which HTA
refuses to build where a call took no time, so of times in nanoseconds only)
"""
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.common.trace_call_graph import CallGraph  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from hta.trace_diff import LabeledTrace, TraceDiff  # noqa: E402
from hta.utils.validate_trace import validate_trace_format  # noqa: E402

from plain import plain  # noqa: E402


def call_stacks(said, rank):
    """Every host event with its depth, its height and the names of those it is in, as HTA's call graph has them."""
    graph, words = CallGraph(said.t, [rank]), said.t.symbol_table.get_sym_table()
    frame = said.t.get_trace(rank)
    names = dict(zip(frame["index"], frame["name"]))
    rows = []
    for stack in graph.get_call_stacks(rank=rank):
        for index in stack.get_nodes():
            if index >= 0:
                path = [words[names[i]] for i in stack.get_path_to_root(index) if i >= 0]
                rows.append([path, int(stack.get_nodes()[index].depth), int(stack.get_nodes()[index].height)])
    return sorted(rows)


def main():
    said = TraceAnalysis(trace_dir=sys.argv[1])
    other = TraceAnalysis(trace_dir=sys.argv[2])
    rank = said.t.get_ranks()[0]
    frame = said.t.get_trace(rank)
    words = said.t.symbol_table.get_sym_table()
    rows = sorted([words[r.cat], words[r.name], r.ts, r.dur, str(r.tid), int(r.iteration)] for r in frame.itertuples())
    first, second = LabeledTrace(label="a", t=said.t), LabeledTrace(label="b", t=other.t)
    answer = {
        "ranks": said.t.get_ranks(),
        "rows": rows,
        "steps": said.get_profiler_steps(),
        "iterations": said.t.get_iterations(rank),
        "annotations": said.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False),
        "difference": TraceDiff.compare_traces(first, second, use_short_name=True),
        "ops difference": TraceDiff.ops_diff(first, second),
        "format": validate_trace_format(list(said.t.trace_files.values())[0], "standard"),
    }
    if sys.argv[3:] == ["stacks"]:
        answer["call stacks"] = call_stacks(said, rank)  # last: it adds columns to the trace
    json.dump(plain(answer), sys.stdout)


main()
