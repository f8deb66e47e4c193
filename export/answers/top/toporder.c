// SPDX-License-Identifier: Apache-2.0
/* toporder.c - leaves out the rows of a report that are empty, and sorts the others */
#include "export/answers/top/toprows.h"

#include <string.h>

#include "export/read/store/qsort.h"

struct sorting {
    const struct kp_top *top;
    enum kp_top_sort sort;
};

static double key_of(const struct kp_top *top, const struct kp_top_row *row, enum kp_top_sort sort)
{
    switch (sort) {
    case KP_TOP_TOTAL: return top->has_gpu ? row->cost.gpu_total_ns : row->cost.total_ns;
    case KP_TOP_COUNT: return (double)row->cost.count;
    case KP_TOP_MEM: return (double)(top->has_gpu_memory ? row->cost.gpu_self_bytes : row->cost.self_bytes);
    case KP_TOP_GPU: return row->cost.gpu_self_ns;
    default: return top->has_gpu ? row->cost.gpu_self_ns : row->cost.self_ns;
    }
}

static int row_order(const void *a, const void *b, void *context)
{
    const struct kp_top_row *x = a, *y = b;
    const struct sorting *s = context;
    const double i = key_of(s->top, x, s->sort), j = key_of(s->top, y, s->sort);
    if (i < j || i > j) return i > j ? -1 : 1;
    const double a_ns = x->cost.self_ns, b_ns = y->cost.self_ns;
    if (a_ns < b_ns || a_ns > b_ns) return a_ns > b_ns ? -1 : 1;
    const int order = strcmp(kp_kineto_text(s->top->trace, x->name), kp_kineto_text(s->top->trace, y->name));
    return order ? order : (x->shapes > y->shapes) - (x->shapes < y->shapes);
}

double kp_top_row_step_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->has_gpu ? row->steps.gpu_self_ns : row->steps.self_ns;
}

double kp_top_row_step_total_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->has_gpu ? row->steps.gpu_total_ns : row->steps.total_ns;
}

double kp_top_row_self_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->has_gpu ? row->cost.gpu_self_ns : row->cost.self_ns;
}

/* Such a row is of calls that go on in what they call, and began before what was chosen. */
static bool is_empty(const struct kp_top_row *row)
{
    const struct kp_top_cost *c = &row->cost;
    return !c->count && c->self_ns <= 0 && c->gpu_self_ns <= 0 && !c->self_bytes && !c->gpu_self_bytes &&
           c->backward_ns <= 0;
}

/* No module, or no line of the program. */
static bool is_of_nobody(const struct kp_top *top, const struct kp_top_row *row)
{
    return kp_top_is_by_place(top) && !row->name;
}

/* The call that runs there holds all the rest, once for each thread: that total says nothing. */
static void total_drop(struct kp_top_cost *cost)
{
    cost->total_ns = cost->self_ns;
    cost->gpu_total_ns = cost->gpu_self_ns;
    cost->backward_ns = cost->gpu_backward_ns = cost->longest_ns = 0;
}

void kp_top_order(struct kp_top *top, enum kp_top_sort sort)
{
    struct sorting s = {top, sort};
    size_t kept = 0;
    top->sort = sort;
    for (size_t i = 0; i < top->count; i++) {
        if (is_of_nobody(top, &top->rows[i])) total_drop(&top->rows[i].cost), total_drop(&top->rows[i].steps);
        if (!is_empty(&top->rows[i])) top->rows[kept++] = top->rows[i];
    }
    top->count = kept;
    if (top->count) kp_qsort_r(top->rows, top->count, sizeof *top->rows, row_order, &s);
}
