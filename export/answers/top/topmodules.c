// SPDX-License-Identifier: Apache-2.0
/*
 * topmodules.c - a row for each module, forward and backward together; a row for each class of modules
 *
 * A module's row is named by its path, "Net_0.Block_1.Linear_4". No backward op of a module lies inside that of
 * another, so those of the modules inside of it add up. A class inside itself (Sequential) has its time once.
 */
#include "export/answers/top/toprows.h"

#include <stdlib.h>
#include <string.h>

struct joining {
    struct kp_top *top;
    struct kp_top_row *rows;
    size_t count, capacity;
    struct kp_keyindex names, modules; /* modules: of a class, with its row */
};

static size_t row_for(struct joining *j, const char *name, size_t bytes)
{
    const uint32_t id = bytes ? kp_strings_put(j->top->trace->strings, name, bytes) : 0;
    const size_t at = kp_keyindex_get(&j->names, id);
    if (at == j->count) *KP_KINETO_NEXT(j->rows, j->count, j->capacity) = (struct kp_top_row){.name = id};
    return at;
}

/* Adds all but the total time, and that where it is wanted. */
static void own_add(struct kp_top_cost *to, const struct kp_top_cost *from, bool with_count, bool with_total)
{
    struct kp_top_cost cost = *from;
    if (!with_count) cost.count = 0;
    if (!with_total) cost.total_ns = cost.gpu_total_ns = cost.backward_ns = cost.gpu_backward_ns = 0;
    kp_top_cost_add(to, &cost);
}

static void backward_add(struct kp_top_cost *to, const struct kp_top_cost *from)
{
    to->total_ns += from->total_ns;
    to->backward_ns += from->total_ns;
    to->gpu_total_ns += from->gpu_total_ns;
    to->gpu_backward_ns += from->gpu_total_ns;
}

/* Returns the row's new number. */
static size_t module_join(struct joining *j, const struct kp_top_row *row)
{
    const char *name = kp_kineto_text(j->top->trace, row->name);
    const size_t own = row_for(j, name, strlen(name));
    own_add(&j->rows[own].cost, &row->cost, !row->is_backward, !row->is_backward);
    own_add(&j->rows[own].steps, &row->steps, !row->is_backward, !row->is_backward);
    for (const char *end = row->is_backward ? name : ""; *end; end += *end == '.') {
        end += strcspn(end, ".");
        const size_t at = row_for(j, name, (size_t)(end - name));
        backward_add(&j->rows[at].cost, &row->cost);
        backward_add(&j->rows[at].steps, &row->steps);
    }
    return own;
}

/* The class of a part of a path: "Linear_4" is a Linear. */
static size_t class_bytes(const char *part, size_t bytes)
{
    size_t n = bytes;
    while (n && part[n - 1] >= '0' && part[n - 1] <= '9') n--;
    return n > 1 && n < bytes && part[n - 1] == '_' ? n - 1 : bytes;
}

/* Whether a module of the same class is around it. */
static bool is_inside_own(const char *path, const char *last)
{
    const size_t its = class_bytes(last, strlen(last));
    for (const char *part = path; part < last;) {
        const size_t bytes = strcspn(part, ".");
        if (class_bytes(part, bytes) == its && memcmp(part, last, its) == 0) return true;
        part += bytes + 1;
    }
    return false;
}

static size_t class_join(struct joining *j, const struct kp_top_row *row)
{
    const char *path = kp_kineto_text(j->top->trace, row->name), *dot = strrchr(path, '.'),
               *last = dot ? dot + 1 : path;
    const size_t at = row_for(j, last, class_bytes(last, strlen(last))), had = j->modules.count;
    const bool is_outer = !is_inside_own(path, last);
    own_add(&j->rows[at].cost, &row->cost, true, is_outer);
    own_add(&j->rows[at].steps, &row->steps, true, is_outer);
    if (!*last) return at;
    const uint32_t module = kp_strings_put(j->top->trace->strings, last, strlen(last));
    j->rows[at].modules += kp_keyindex_get(&j->modules, module) == had;
    return at;
}

/* Puts the rows that `join` makes in place of those that were there. */
static void rows_join(struct kp_top *top, size_t (*join)(struct joining *j, const struct kp_top_row *row))
{
    struct joining j = {.top = top};
    uint32_t *at = kp_kineto_room(top->count + 1, sizeof *at);
    for (size_t i = 0; i < top->count; i++) at[i] = (uint32_t)join(&j, &top->rows[i]);
    for (size_t i = 0; i < top->share_count; i++) top->shares[i].row = at[top->shares[i].row];
    free(at);
    free(top->rows);
    kp_keyindex_fini(&j.names);
    kp_keyindex_fini(&j.modules);
    top->rows = j.rows;
    top->count = j.count;
    top->capacity = j.capacity;
    kp_top_shares_join(top);
}

void kp_top_join_modules(struct kp_top *top)
{
    if (!kp_top_is_by_module(top)) return;
    rows_join(top, module_join);
    if (top->by == KP_TOP_BY_CLASS) rows_join(top, class_join);
}
