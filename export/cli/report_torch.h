// SPDX-License-Identifier: Apache-2.0
/* report_torch.h - `kprof report --torch`: the table of key_averages(), with torch's own options */
#pragma once

#include <stdbool.h>

#include "export/answers/torchtable/keyavg.h"

struct kp_report_torch {
    struct kp_keyavg_options group;
    struct kp_table_options table;
    const char *given;    /* the last of torch's options that was given, or NULL */
    bool adds_up;         /* acc_events: one table of all traces */
    struct kp_keyavg sum; /* of those that were taken; its trace is open */
};

/* Takes one of torch's options: 0, KP_EXIT_USAGE with a message, or -1 for an option that is none of them. */
int kp_report_torch_option(struct kp_report_torch *r, const char *name, const char *value);
/* Prints the table of a tree. */
void kp_report_torch_print(const struct kp_report_torch *r, struct kp_tree *tree);
/* Instead: adds a tree to the sum and takes its trace. The other prints the sum and closes it. */
void kp_report_torch_add(struct kp_report_torch *r, struct kp_tree *tree);
void kp_report_torch_end(struct kp_report_torch *r);

/* Reads a whole number from `least` on, of that flag of `kprof report`. Returns 0, or KP_EXIT_USAGE with a message. */
int kp_report_number_set(long *out, long least, const char *flag, const char *text);

/* The rows of torch's options for a table of options. */
#define KP_REPORT_TORCH_OPTIONS                                                                                        \
    {"sort-by", 0, KP_OPT_VALUE, "KEY", "descending, by one of torch's names; default: order of first appearance", 0}, \
        {"row-limit", 0, KP_OPT_VALUE, "N", "default 100, -1: all", 0},                                                \
        {"group-by-input-shape", 0, KP_OPT_FLAG, NULL, "one row per name and input shapes", 0},                        \
        {"group-by-input-shapes", 0, KP_OPT_FLAG, NULL, "the same", 0},                                                \
        {"group-by-overload-name", 0, KP_OPT_FLAG, NULL, "one row per name and overload", 0},                          \
        {"group-by-stack-n", 0, KP_OPT_VALUE, "N", "one row per name and N innermost frames", 0},                      \
        {"include-python-functions", 0, KP_OPT_FLAG, NULL, "also rows for Python functions", 0},                       \
        {"acc-events", 0, KP_OPT_FLAG, NULL, "one table of all traces, as if their windows were one", 0},              \
        {"top-level-events-only", 0, KP_OPT_FLAG, NULL, "only rows whose first event had no parent", 0},               \
        {"header", 0, KP_OPT_VALUE, "TEXT", "a line above the table", 0},                                              \
        {"time-unit", 0, KP_OPT_VALUE, "s|ms|us", "default: by size", 0},                                              \
        {"max-name-column-width", 0, KP_OPT_VALUE, "N", "default 55, none: no limit", 0},                              \
        {"max-shapes-column-width", 0, KP_OPT_VALUE, "N", "default 80", 0},                                            \
    {                                                                                                                  \
        "max-src-column-width", 0, KP_OPT_VALUE, "N", "default 75", 0                                                  \
    }
