# SPDX-License-Identifier: Apache-2.0
"""Asks HolisticTraceAnalysis everything it can say of CPU traces; prints JSON.

usage: hta_ask.py FOLDER OTHER_FOLDER   (the second for the comparison of two traces)
"""
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from hta.trace_diff import LabeledTrace, TraceDiff  # noqa: E402
from hta.utils.validate_trace import validate_trace_format  # noqa: E402


def plain(value):
    if hasattr(value, "to_json"):
        return json.loads(value.reset_index().to_json(orient="records", default_handler=str))
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    return value.item() if hasattr(value, "item") else value


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
    json.dump(plain(answer), sys.stdout)


main()
