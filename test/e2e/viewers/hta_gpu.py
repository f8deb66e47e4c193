# SPDX-License-Identifier: Apache-2.0
"""Asks HolisticTraceAnalysis everything it can say of the GPU rows of a trace; prints JSON.

usage: hta_gpu.py FOLDER      an analysis that raises says {"error": its type and text}: the same of any trace of that kind
"""
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis  # noqa: E402

from plain import plain  # noqa: E402


def critical_path(said):
    """Through the first step, or the first range of param's benchmarks."""
    steps = sorted(s for s in said.t.symbol_table.get_sym_table() if s.startswith(("ProfilerStep#", "[param|")))
    graph, success = said.critical_path_analysis(rank=said.t.get_ranks()[0], annotation=steps[0], instance_id=0)
    return {"success": success, "nodes": len(graph.critical_path_nodes), "edges": len(graph.critical_path_edges_set)}


def main():
    said = TraceAnalysis(trace_dir=sys.argv[1])
    asked = {
        "temporal breakdown": lambda: said.get_temporal_breakdown(visualize=False),
        "kernel breakdown": lambda: said.get_gpu_kernel_breakdown(num_kernels=1000, visualize=False),
        "overlap": lambda: said.get_comm_comp_overlap(visualize=False),
        "idle time": lambda: said.get_idle_time_breakdown(visualize=False),
        "queue length": lambda: said.get_queue_length_summary(),
        "queue series": lambda: said.get_queue_length_time_series(),
        "launches": lambda: said.get_cuda_kernel_launch_stats(visualize=False),
        "memory bandwidth": lambda: said.get_memory_bw_summary(),
        "memory series": lambda: said.get_memory_bw_time_series(),
        "annotations": lambda: said.get_gpu_user_annotation_breakdown(use_gpu_annotation=True, visualize=False),
        "critical path": lambda: critical_path(said),
        "kernels of annotations": lambda: said.get_gpu_kernels_with_user_annotations(said.t.get_ranks()[0]),
    }
    answers = {}
    for name, ask in asked.items():
        try:
            answers[name] = plain(ask())
        except Exception as error:  # what HTA cannot say of one file it must not say of the other
            answers[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    json.dump(answers, sys.stdout)


main()
