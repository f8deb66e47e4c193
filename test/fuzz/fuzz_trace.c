// SPDX-License-Identifier: Apache-2.0
/* fuzz_trace.c - any bytes are a trace or a clear error, whole or in two pieces, and every table of it prints */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/table.h"

static void tables(struct kp_trace *trace, const struct kp_keyavg_options *group, const struct kp_table_options *table)
{
    struct kp_tree tree;
    struct kp_keyavg averages;
    char *text = NULL;
    size_t bytes = 0;
    if (kp_tree_build(&tree, trace)) return;
    kp_tree_set_stacks(&tree);
    kp_keyavg_build(&averages, &tree, group);
    FILE *out = open_memstream(&text, &bytes);
    if (!out || kp_table_print(out, &averages, table)) abort();
    fclose(out);
    if (averages.count && !strstr(text, "Self CPU time total: ")) abort();
    free(text);
    kp_keyavg_fini(&averages);
    kp_tree_fini(&tree);
}

/* A trace read in two pieces has the events of the one read whole. */
static void pieces(const uint8_t *data, size_t size, size_t events)
{
    struct kp_trace trace = {.strings = kp_strings_open()};
    struct kp_kineto_parser *parser = kp_kineto_parser_open(&trace, false);
    size_t half = size / 2;
    int rc = kp_kineto_parser_feed(parser, (const char *)data, half);
    if (rc == 0) rc = kp_kineto_parser_feed(parser, (const char *)data + half, size - half);
    if (rc == 0) rc = kp_kineto_parser_end(parser);
    if (rc || trace.count != events) abort();
    kp_kineto_parser_close(parser);
    kp_strings_close(trace.strings);
    free(trace.events);
    free(trace.args_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_keyavg_options plain = {0};
    struct kp_keyavg_options grouped = {.by_shape = true, .by_overload = true, .python_functions = true, .by_stack = 2};
    struct kp_table_options defaults = KP_TABLE_DEFAULTS;
    struct kp_table_options narrow = {.row_limit = -1, .name_width = 2, .shapes_width = 3, .source_width = 2,
                                      .sort_by = "self_cpu_time_total", .header = "h", .time_unit = 'm'};
    struct kp_trace *trace;
    char why[256] = "";
    int rc = kp_trace_parse(&trace, (const char *)data, size, true, why, sizeof why);
    if (rc && !strstr(why, "byte ")) abort();
    if (rc == 0) pieces(data, size, trace->count);
    if (trace) {
        tables(trace, &plain, &defaults);
        tables(trace, &grouped, &narrow);
    }
    kp_trace_close(trace);
    return 0;
}
