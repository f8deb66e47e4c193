// SPDX-License-Identifier: Apache-2.0
/* rankwaits.c - which rank of a job the others wait for, from the traces of all */
#include "export/report/rankwaits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLLECTIVES_MOST = 200000, RANKS_SHOWN = 8 };

/* ---- one trace ---- */

static bool is_collective(const struct kp_tree *tree, size_t i, bool on_device)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    const char *name = kp_kineto_text(tree->trace, e->name);
    if (tree->nodes[i].removed) return false;
    if (on_device) return e->kind == KP_KINETO_GPU && strncmp(name, "nccl", 4) == 0;
    return (e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_OP) && kp_kineto_is_collective(name);
}

static bool has_kernels(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (is_collective(tree, i, true)) return true;
    return false;
}

/* The rank's row; a new one is added. */
static struct kp_rankwait *rank_get(struct kp_rankwaits *w, long rank)
{
    for (size_t i = 0; i < w->rank_count; i++)
        if (w->ranks[i].rank == rank) return &w->ranks[i];
    w->ranks = kp_kineto_grow(w->ranks, &w->rank_capacity, w->rank_count + 1, sizeof *w->ranks);
    w->ranks[w->rank_count] = (struct kp_rankwait){.rank = rank};
    return &w->ranks[w->rank_count++];
}

static void collective_add(struct kp_rankwaits *w, const char *name, const struct kp_collective *is)
{
    char *kept = strdup(name);
    if (!kept) return;
    w->of = kp_kineto_grow(w->of, &w->capacity, w->count + 1, sizeof *w->of);
    w->of[w->count] = *is;
    w->of[w->count++].name = kept;
}

/* How many of that name the trace had so far: a trace has few names. */
static unsigned number_next(const struct kp_rankwaits *w, size_t first, const char *name)
{
    for (size_t i = w->count; i > first; i--)
        if (strcmp(w->of[i - 1].name, name) == 0) return w->of[i - 1].number + 1;
    return 0;
}

void kp_rankwaits_add(struct kp_rankwaits *w, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const char *rank = kp_kineto_fact(tree->trace, "distributedInfo.rank");
    const char *size = kp_kineto_fact(tree->trace, "distributedInfo.world_size");
    const struct kp_spans *within = chosen->step_count ? &chosen->in_steps : &chosen->spans;
    if (!rank || !size || strtol(size, NULL, 10) < 2) return;
    const bool on_device = has_kernels(tree);
    struct kp_rankwait *row = rank_get(w, strtol(rank, NULL, 10));
    const struct kp_collective is = {.rank = row->rank, .trace = row->traces++};
    const size_t first = w->count;
    for (size_t i = 0; i < tree->count && w->count < COLLECTIVES_MOST; i++) {
        const struct kp_node *n = &tree->nodes[i];
        if (!is_collective(tree, i, on_device) || !kp_spans_has(within, n->start_ns)) continue;
        struct kp_collective one = is;
        const char *name = kp_kineto_text(tree->trace, n->name);
        one.number = number_next(w, first, name);
        one.ns = n->end_ns - n->start_ns;
        collective_add(w, name, &one);
    }
}

/* ---- all ranks ---- */

static int same_compare(const struct kp_collective *x, const struct kp_collective *y)
{
    const int by_name = strcmp(x->name, y->name);
    if (by_name) return by_name;
    if (x->trace != y->trace) return x->trace < y->trace ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int collective_order(const void *a, const void *b)
{
    const struct kp_collective *x = a, *y = b;
    const int order = same_compare(x, y);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int rank_order(const void *a, const void *b)
{
    const struct kp_rankwait *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void kp_rankwaits_settle(struct kp_rankwaits *w)
{
    if (w->count) qsort(w->of, w->count, sizeof *w->of, collective_order);
    if (w->rank_count) qsort(w->ranks, w->rank_count, sizeof *w->ranks, rank_order);
    for (size_t from = 0, to; from < w->count; from = to) {
        size_t least = from;
        for (to = from; to < w->count && same_compare(&w->of[to], &w->of[from]) == 0; to++)
            if (w->of[to].ns < w->of[least].ns) least = to;
        if (to - from != w->rank_count) continue; /* not of all */
        w->matched++;
        rank_get(w, w->of[least].rank)->last++;
        for (size_t i = from; i < to; i++) rank_get(w, w->of[i].rank)->waited_ns += w->of[i].ns - w->of[least].ns;
    }
}

void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *w)
{
    const struct kp_rankwait *late = w->ranks;
    const char *between = "; waited for others: ";
    if (w->rank_count < 2) return;
    if (!w->matched) {
        fputs("ranks    no collective is in the traces of all ranks\n", out);
        return;
    }
    for (size_t i = 0; i < w->rank_count; i++)
        if (w->ranks[i].last > late->last) late = &w->ranks[i];
    fprintf(out, "ranks    rank %ld came last to %zu of %zu collectives", late->rank, late->last, w->matched);
    for (size_t i = 0; i < w->rank_count && i < RANKS_SHOWN; i++, between = ", ")
        fprintf(out, "%srank %ld %.1f ms", between, w->ranks[i].rank, (double)w->ranks[i].waited_ns / 1e6);
    if (w->rank_count > RANKS_SHOWN) fprintf(out, ", and %zu more ranks", w->rank_count - RANKS_SHOWN);
    fputs("\n", out);
}

void kp_rankwaits_fini(struct kp_rankwaits *w)
{
    for (size_t i = 0; i < w->count; i++) free(w->of[i].name);
    free(w->of);
    free(w->ranks);
    *w = (struct kp_rankwaits){0};
}
