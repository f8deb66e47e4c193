// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - `kprof report`: the table of key_averages() for each trace */
#include "export/cli/cli.h"
#include "export/cli/latest.h"
#include "export/cli/lines.h"
#include "export/cli/trace_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/report/table.h"

struct report_command {
    struct kp_keyavg_options group;
    struct kp_table_options table;
    bool partial;
};

enum option_id {
    SORT,
    LIMIT,
    BY_SHAPE,
    BY_SHAPES,
    BY_OVERLOAD,
    BY_STACK,
    PYTHON,
    TOP_LEVEL,
    HEADER,
    UNIT,
    NAME_WIDTH,
    SHAPES_WIDTH,
    SOURCE_WIDTH,
    PARTIAL,
};

static const struct kp_opt flags[] = {
    [SORT] = {"sort-by", 0, KP_OPT_VALUE, "KEY",
              "descending, by one of torch's names; default: order of first appearance"},
    [LIMIT] = {"row-limit", 0, KP_OPT_VALUE, "N", "default 100, -1: all"},
    [BY_SHAPE] = {"group-by-input-shape", 0, KP_OPT_FLAG, NULL, "one row per name and input shapes"},
    [BY_SHAPES] = {"group-by-input-shapes", 0, KP_OPT_FLAG, NULL, "the same"},
    [BY_OVERLOAD] = {"group-by-overload-name", 0, KP_OPT_FLAG, NULL, "one row per name and overload"},
    [BY_STACK] = {"group-by-stack-n", 0, KP_OPT_VALUE, "N", "one row per name and N innermost frames"},
    [PYTHON] = {"include-python-functions", 0, KP_OPT_FLAG, NULL, "rows for Python functions, too"},
    [TOP_LEVEL] = {"top-level-events-only", 0, KP_OPT_FLAG, NULL, "only rows whose first event had no parent"},
    [HEADER] = {"header", 0, KP_OPT_VALUE, "TEXT", "a line above the table"},
    [UNIT] = {"time-unit", 0, KP_OPT_VALUE, "s|ms|us", "default: by size"},
    [NAME_WIDTH] = {"max-name-column-width", 0, KP_OPT_VALUE, "N", "default 55, none: no limit"},
    [SHAPES_WIDTH] = {"max-shapes-column-width", 0, KP_OPT_VALUE, "N", "default 80"},
    [SOURCE_WIDTH] = {"max-src-column-width", 0, KP_OPT_VALUE, "N", "default 75"},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "of a file that ends early, report what is there"},
    {0}};

static bool number_read(const char *text, long least, long *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < least || value > 1000000000) return false;
    *out = value;
    return true;
}

static int number_set(long *out, long least, const char *flag, const char *text)
{
    return number_read(text, least, out)
               ? 0
               : kp_cli_misuse("report", "--%s is a number from %ld on, not %s", flag, least, text);
}

static int width_set(int *out, const char *flag, const char *text)
{
    long value = 0;
    if (strcmp(text, "none") != 0 && !number_read(text, 1, &value))
        return kp_cli_misuse("report", "--%s is a number from 1 on, or none, not %s", flag, text);
    *out = (int)value;
    return 0;
}

static int unit_set(char *out, const char *text)
{
    if (strcmp(text, "s") != 0 && strcmp(text, "ms") != 0 && strcmp(text, "us") != 0)
        return kp_cli_misuse("report", "--time-unit is s, ms or us, not %s", text);
    *out = text[0];
    return 0;
}

static int sort_set(struct report_command *r, const char *key)
{
    r->table.sort_by = key;
    return kp_keyavg_has_key(key) ? 0 : kp_cli_misuse("report", "no sort key %s; known: %s", key, kp_keyavg_keys());
}

static int stack_set(struct report_command *r, const char *text)
{
    long frames = 0;
    int rc = number_set(&frames, 0, flags[BY_STACK].name, text);
    r->group.by_stack = (uint32_t)frames;
    return rc;
}

static int option_take(struct report_command *r, int id, const char *value)
{
    switch (id) {
    case SORT: return sort_set(r, value);
    case LIMIT: return number_set(&r->table.row_limit, -1, flags[id].name, value);
    case BY_SHAPE:
    case BY_SHAPES: r->group.by_shape = true; return 0;
    case BY_OVERLOAD: r->group.by_overload = true; return 0;
    case BY_STACK: return stack_set(r, value);
    case PYTHON: r->group.python_functions = true; return 0;
    case TOP_LEVEL: r->table.top_level_only = true; return 0;
    case HEADER: r->table.header = value; return 0;
    case UNIT: return unit_set(&r->table.time_unit, value);
    case NAME_WIDTH: return width_set(&r->table.name_width, flags[id].name, value);
    case SHAPES_WIDTH: return width_set(&r->table.shapes_width, flags[id].name, value);
    case SOURCE_WIDTH: return width_set(&r->table.source_width, flags[id].name, value);
    case PARTIAL: r->partial = true; return 0;
    default: return KP_EXIT_USAGE;
    }
}

static int report_trace(void *context, const struct kp_trace_source *source, bool heading)
{
    const struct report_command *r = context;
    struct kp_kineto *trace;
    char why[512];
    int rc = kp_trace_source_read(source, &trace, why, sizeof why);
    if (rc) {
        kp_cli_say(stderr, "kprof: %s", why);
        if (!trace || !r->partial) {
            kp_kineto_close(trace);
            return KP_EXIT_BAD_INPUT;
        }
    }
    struct kp_tree tree;
    struct kp_keyavg averages;
    if (kp_tree_build(&tree, trace) < 0) {
        kp_cli_say(stderr, "kprof: %s: too many events", source->label);
        kp_kineto_close(trace);
        return KP_EXIT_BAD_INPUT;
    }
    if (r->group.by_stack && trace->has_stacks) kp_tree_fill_stacks(&tree, trace->is_ours);
    if (r->group.by_stack) kp_tree_set_stacks(&tree);
    kp_keyavg_build(&averages, &tree, &r->group);
    kp_tree_fini(&tree);
    if (heading) kp_cli_say(stdout, "%s:", source->label);
    kp_table_print(stdout, &averages, &r->table);
    kp_keyavg_fini(&averages);
    kp_kineto_close(trace);
    return KP_EXIT_DONE;
}

int kp_cmd_report(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "report", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct report_command r = {.table = KP_TABLE_DEFAULTS};
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        if (i == KP_OPT_HELP) return printf("sort keys: %s\n\n", kp_keyavg_keys()), kp_cli_help("report", flags);
        if (i == KP_OPT_ARGUMENT) argv[count++] = (char *)value; /* that word was read already */
        else if (option_take(&r, i, value)) return KP_EXIT_USAGE;
    }
    count = kp_latest_take("report", &argv, count, false);
    if (!count) return KP_EXIT_USAGE;
    struct kp_lines *lines = kp_lines_open("report", &(struct kp_lines_options){0});
    const int worst = kp_input_each("report", argv, count, kp_lines_places(lines), report_trace, &r);
    kp_lines_close(lines);
    return worst;
}
