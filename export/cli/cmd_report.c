// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - `kprof report`: the table of key_averages() for each trace */
#include "export/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/table.h"

struct report {
    struct kp_keyavg_options group;
    struct kp_table_options table;
    bool partial;
};

static const char usage[] =
    "usage: kprof report [options] FILE...\n"
    "  FILE is a trace (gzip or plain), a folder of traces or a spool\n"
    "  --sort-by KEY              descending; default: order of first appearance\n"
    "  --row-limit N              default 100, -1: all\n"
    "  --group-by-input-shape     one row per name and input shapes\n"
    "  --group-by-overload-name   one row per name and overload\n"
    "  --group-by-stack-n N       one row per name and N innermost frames\n"
    "  --include-python-functions rows for Python functions, too\n"
    "  --top-level-events-only    only rows whose first event had no parent\n"
    "  --header TEXT              a line above the table\n"
    "  --time-unit s|ms|us        default: by size\n"
    "  --max-name-column-width N  default 55, none: no limit\n"
    "  --max-shapes-column-width N   default 80\n"
    "  --max-src-column-width N   default 75\n"
    "  --partial                  of a file that ends early, report what is there\n";

enum option_id {
    SORT = 256, LIMIT, BY_SHAPE, BY_OVERLOAD, BY_STACK, PYTHON, TOP_LEVEL, HEADER, UNIT, NAME_WIDTH, SHAPES_WIDTH,
    SOURCE_WIDTH, PARTIAL, HELP,
};

static const struct option options[] = {
    {"sort-by", required_argument, NULL, SORT},
    {"row-limit", required_argument, NULL, LIMIT},
    {"group-by-input-shape", no_argument, NULL, BY_SHAPE},
    {"group-by-input-shapes", no_argument, NULL, BY_SHAPE},
    {"group-by-overload-name", no_argument, NULL, BY_OVERLOAD},
    {"group-by-stack-n", required_argument, NULL, BY_STACK},
    {"include-python-functions", no_argument, NULL, PYTHON},
    {"top-level-events-only", no_argument, NULL, TOP_LEVEL},
    {"header", required_argument, NULL, HEADER},
    {"time-unit", required_argument, NULL, UNIT},
    {"max-name-column-width", required_argument, NULL, NAME_WIDTH},
    {"max-shapes-column-width", required_argument, NULL, SHAPES_WIDTH},
    {"max-src-column-width", required_argument, NULL, SOURCE_WIDTH},
    {"partial", no_argument, NULL, PARTIAL},
    {"help", no_argument, NULL, HELP},
    {0},
};

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "kprof report: %s%s\n", what, value);
    return KP_EXIT_USAGE;
}

static bool number_read(const char *text, long least, long *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < least || value > 1000000000)
        return false;
    *out = value;
    return true;
}

static int width_set(int *out, const char *text)
{
    long value = 0;
    if (strcmp(text, "none") != 0 && !number_read(text, 1, &value))
        return usage_error("a width is a number from 1 on, or none, not ", text);
    *out = (int)value;
    return 0;
}

static int unit_set(char *out, const char *text)
{
    if (strcmp(text, "s") != 0 && strcmp(text, "ms") != 0 && strcmp(text, "us") != 0)
        return usage_error("a time unit is s, ms or us, not ", text);
    *out = text[0];
    return 0;
}

static int sort_set(struct report *r, const char *key)
{
    r->table.sort_by = key;
    if (kp_keyavg_has_key(key))
        return 0;
    fprintf(stderr, "kprof report: no sort key %s; known: %s\n", key, kp_keyavg_keys());
    return KP_EXIT_USAGE;
}

static int option_take(struct report *r, int id, const char *value)
{
    long number = 0;
    switch (id) {
    case SORT: return sort_set(r, value);
    case LIMIT:
        if (!number_read(value, -1, &r->table.row_limit))
            return usage_error("a row limit is a number from -1 on, not ", value);
        return 0;
    case BY_SHAPE: r->group.by_shape = true; return 0;
    case BY_OVERLOAD: r->group.by_overload = true; return 0;
    case BY_STACK:
        if (!number_read(value, 0, &number))
            return usage_error("a number of frames is 0 or more, not ", value);
        r->group.by_stack = (uint32_t)number;
        return 0;
    case PYTHON: r->group.python_functions = true; return 0;
    case TOP_LEVEL: r->table.top_level_only = true; return 0;
    case HEADER: r->table.header = value; return 0;
    case UNIT: return unit_set(&r->table.time_unit, value);
    case NAME_WIDTH: return width_set(&r->table.name_width, value);
    case SHAPES_WIDTH: return width_set(&r->table.shapes_width, value);
    case SOURCE_WIDTH: return width_set(&r->table.source_width, value);
    case PARTIAL: r->partial = true; return 0;
    default: fputs(usage, stderr); return KP_EXIT_USAGE;
    }
}

static int report_trace(void *context, const char *path, const char *label, bool heading)
{
    const struct report *r = context;
    struct kp_trace *trace;
    char why[512];
    int rc = kp_trace_open(&trace, path, false, why, sizeof why);
    if (rc) {
        fprintf(stderr, "kprof: %s\n", why);
        if (!trace || !r->partial) {
            kp_trace_close(trace);
            return KP_EXIT_BAD_INPUT;
        }
    }
    struct kp_tree tree;
    struct kp_keyavg averages;
    if (kp_tree_build(&tree, trace) < 0) {
        fprintf(stderr, "kprof: %s: too many events\n", label);
        kp_trace_close(trace);
        return KP_EXIT_BAD_INPUT;
    }
    if (r->group.by_stack)
        kp_tree_set_stacks(&tree);
    kp_keyavg_build(&averages, &tree, &r->group);
    kp_tree_fini(&tree);
    if (heading)
        printf("%s:\n", label);
    kp_table_print(stdout, &averages, &r->table);
    kp_keyavg_fini(&averages);
    kp_trace_close(trace);
    return KP_EXIT_DONE;
}

int kp_cmd_report(int argc, char **argv)
{
    struct report r = {.table = KP_TABLE_DEFAULTS};
    int id;
    optind = 0;
    while ((id = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (id == HELP || id == 'h') {
            fputs(usage, stdout);
            return KP_EXIT_DONE;
        }
        int rc = option_take(&r, id, optarg);
        if (rc)
            return rc;
    }
    if (optind == argc)
        return usage_error("no file given", "");
    return kp_input_each(argv + optind, argc - optind, report_trace, &r);
}
