// SPDX-License-Identifier: Apache-2.0
/* report_torch.c - `kprof report --torch`: the table of key_averages(), with torch's own options */
#include "export/cli/report_torch.h"

#include <stdio.h>
#include <string.h>

#include "export/cli/cli.h"

static bool number_read(const char *text, long least, long *out)
{
    return kp_opt_number(text, least, out) && *out <= 1000000000;
}

int kp_report_number_set(long *out, long least, const char *flag, const char *text)
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

static int sort_set(struct kp_report_torch *r, const char *key)
{
    r->table.sort_by = key;
    return kp_keyavg_has_key(key) ? 0 : kp_cli_misuse("report", "--sort-by has no key %s", key);
}

static int stack_set(struct kp_report_torch *r, const char *name, const char *text)
{
    long frames = 0;
    const int rc = kp_report_number_set(&frames, 0, name, text);
    r->group.by_stack = (uint32_t)frames;
    return rc;
}

/* Options without a value. */
static bool flag_take(struct kp_report_torch *r, const char *name)
{
    const struct {
        const char *name;
        bool *set;
    } rows[] = {
        {"group-by-input-shape", &r->group.by_shape},        {"group-by-input-shapes", &r->group.by_shape},
        {"group-by-overload-name", &r->group.by_overload},   {"include-python-functions", &r->group.python_functions},
        {"top-level-events-only", &r->table.top_level_only}, {"acc-events", &r->adds_up},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return *rows[i].set = true;
    return false;
}

int kp_report_torch_option(struct kp_report_torch *r, const char *name, const char *value)
{
    const char *const before = r->given;
    r->given = name;
    if (flag_take(r, name)) return 0;
    if (strcmp(name, "sort-by") == 0) return sort_set(r, value);
    if (strcmp(name, "row-limit") == 0) return kp_report_number_set(&r->table.row_limit, -1, name, value);
    if (strcmp(name, "group-by-stack-n") == 0) return stack_set(r, name, value);
    if (strcmp(name, "header") == 0) return r->table.header = value, 0;
    if (strcmp(name, "time-unit") == 0) return unit_set(&r->table.time_unit, value);
    if (strcmp(name, "max-name-column-width") == 0) return width_set(&r->table.name_width, name, value);
    if (strcmp(name, "max-shapes-column-width") == 0) return width_set(&r->table.shapes_width, name, value);
    if (strcmp(name, "max-src-column-width") == 0) return width_set(&r->table.source_width, name, value);
    r->given = before;
    return -1;
}

static void averages_make(struct kp_keyavg *out, const struct kp_report_torch *r, struct kp_tree *tree)
{
    if (r->group.by_stack && tree->trace->has_stacks) kp_tree_fill_stacks(tree, tree->trace->is_ours);
    if (r->group.by_stack) kp_tree_set_stacks(tree);
    kp_keyavg_build(out, tree, &r->group);
}

void kp_report_torch_print(const struct kp_report_torch *r, struct kp_tree *tree)
{
    struct kp_keyavg averages;
    averages_make(&averages, r, tree);
    kp_table_print(stdout, &averages, &r->table);
    kp_keyavg_fini(&averages);
}

static void sum_close(struct kp_keyavg *sum)
{
    kp_keyavg_fini(sum);
    kp_kineto_close(sum->trace);
}

/* torch has the events of the last window first. */
void kp_report_torch_add(struct kp_report_torch *r, struct kp_tree *tree)
{
    struct kp_keyavg averages;
    averages_make(&averages, r, tree);
    if (r->sum.trace) {
        kp_keyavg_merge(&averages, &r->sum);
        sum_close(&r->sum);
    }
    r->sum = averages;
}

void kp_report_torch_end(struct kp_report_torch *r)
{
    if (!r->sum.trace) return;
    kp_table_print(stdout, &r->sum, &r->table);
    sum_close(&r->sum);
}
