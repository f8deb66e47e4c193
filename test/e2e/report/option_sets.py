# SPDX-License-Identifier: Apache-2.0
"""Arguments of torch's key_averages() and table(), and the same for `kprof report`: NAME -> (of key_averages, of table)."""
import json
import os

SOME = {
    "default": ({}, {}),
    "self_cpu": ({}, {"sort_by": "self_cpu_time_total", "row_limit": 10}),
    "cpu_total_all": ({}, {"sort_by": "cpu_time_total", "row_limit": -1}),
    "cpu_time": ({}, {"sort_by": "cpu_time"}),
    "count": ({}, {"sort_by": "count", "row_limit": 20}),
    "cuda_on_cpu": ({}, {"sort_by": "cuda_time_total"}),
    "key": ({}, {"sort_by": "key"}),
    "zero_rows": ({}, {"row_limit": 0}),
    "header": ({}, {"header": "A header \u00e4", "row_limit": 3}),
    "top_level": ({}, {"top_level_events_only": True, "sort_by": "cpu_time_total"}),
    "seconds": ({}, {"time_unit": "s"}),
    "millis": ({}, {"time_unit": "ms", "sort_by": "self_cpu_time_total"}),
    "micros": ({}, {"time_unit": "us"}),
    "narrow": ({}, {"max_name_column_width": 20}),
    "tiny_names": ({}, {"max_name_column_width": 2}),
    "wide": ({}, {"max_name_column_width": None}),
    "by_shape": ({"group_by_input_shape": True}, {"sort_by": "cpu_time_total"}),
    "by_shape_narrow": ({"group_by_input_shape": True}, {"max_shapes_column_width": 17, "row_limit": 30}),
    "by_shape_wide": ({"group_by_input_shape": True}, {"max_shapes_column_width": None, "sort_by": "count"}),
    "by_overload": ({"group_by_overload_name": True}, {}),
    "by_both": ({"group_by_overload_name": True, "group_by_input_shape": True},
                {"sort_by": "self_cpu_time_total", "max_name_column_width": 30}),
    "python": ({"include_python_functions": True}, {"sort_by": "self_cpu_time_total", "row_limit": 40}),
    "by_stack": ({"group_by_stack_n": 3}, {"sort_by": "cpu_time_total", "row_limit": 20}),
    "by_stack_narrow": ({"group_by_stack_n": 6}, {"max_src_column_width": 30, "row_limit": 12}),
}

GPU = {
    "default": ({}, {}),
    "self_cpu": ({}, {"sort_by": "self_cpu_time_total", "row_limit": 25}),
    "self_cuda": ({}, {"sort_by": "self_cuda_time_total", "row_limit": -1}),
    "cuda_total": ({}, {"sort_by": "cuda_time_total", "time_unit": "ms"}),
    "by_shape": ({"group_by_input_shape": True}, {"sort_by": "cpu_time_total"}),
    "top_level": ({}, {"top_level_events_only": True, "header": "H"}),
}

# Everything that torch's table sorts by: the attributes of its rows that have an order, and the names of devices for "device".
KEYS = ["cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count", "flops", "key", "node_id",
        "is_async", "is_user_annotation", "is_legacy", "is_remote", "cpu_time_str", "cpu_time_total_str", "self_cpu_time_total_str",
        "device_time_str", "device_time_total_str", "self_device_time_total_str"]
KEYS += [key.format(device) for device in ("device", "cuda")
         for key in ("{}_time", "{}_time_total", "self_{}_time_total", "{}_memory_usage", "self_{}_memory_usage")]
KEYS += ["self_xpu_time_total", "xpu_memory_usage", "privateuse1_time", "self_privateuse1_memory_usage"]

EVERY = dict(SOME)
EVERY.update({f"sorted by {key}": ({}, {"sort_by": key, "row_limit": 50}) for key in KEYS})
EVERY.update({
    "shapes in order": ({"group_by_input_shape": True}, {"sort_by": "input_shapes", "row_limit": -1}),
    "shapes, most memory": ({"group_by_input_shape": True}, {"sort_by": "self_cuda_memory_usage", "max_name_column_width": 12}),
    "shapes cut to nothing": ({"group_by_input_shape": True}, {"max_shapes_column_width": 1, "row_limit": 9}),
    "overloads in order": ({"group_by_overload_name": True}, {"sort_by": "overload_name"}),
    "innermost frame": ({"group_by_stack_n": 1}, {"row_limit": -1}),
    "innermost frame, whole": ({"group_by_stack_n": 1}, {"sort_by": "flops", "max_src_column_width": None, "row_limit": 40}),
    "five frames": ({"group_by_stack_n": 5}, {"sort_by": "self_cuda_time_total", "row_limit": 40}),
    "five frames, cut": ({"group_by_stack_n": 5}, {"sort_by": "self_cpu_memory_usage", "max_src_column_width": 3, "row_limit": 15}),
    "all frames": ({"group_by_stack_n": 100}, {"sort_by": "stack", "row_limit": 25, "max_src_column_width": 200}),
    "frames and shapes": ({"group_by_stack_n": 2, "group_by_input_shape": True},
                          {"sort_by": "self_cpu_time_total", "header": "frames and shapes", "time_unit": "ms"}),
    "frames of python": ({"group_by_stack_n": 1, "include_python_functions": True}, {"sort_by": "count", "row_limit": 30}),
    "everything at once": ({"group_by_stack_n": 2, "group_by_input_shape": True, "group_by_overload_name": True, "include_python_functions": True},
                           {"sort_by": "cpu_time_total", "header": "h", "row_limit": 20, "top_level_events_only": True, "time_unit": "us",
                            "max_name_column_width": 30, "max_shapes_column_width": 20, "max_src_column_width": 40}),
    "all python functions": ({"include_python_functions": True}, {"row_limit": -1, "max_name_column_width": None}),
    "one row": ({}, {"row_limit": 1, "header": ""}),
})


def write(folder, sets, key_averages):
    """torch's text of each set into FOLDER/tables.json; key_averages(**arguments) makes torch's rows."""
    texts = [{"name": name, "argv": flags(group, table), "text": key_averages(**group).table(**table)} for name, (group, table) in sets.items()]
    with open(os.path.join(folder, "tables.json"), "w", encoding="utf-8") as file:
        json.dump(texts, file)


def flags(group, table):
    """The words of `kprof report` that ask for the same."""
    words = []
    for name, value in {**group, **table}.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append("none" if value is None else str(value))
    return words
