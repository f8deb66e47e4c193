// SPDX-License-Identifier: Apache-2.0
/* rankwaits.c - which rank of a job the others wait for, from the traces of all */
#include "export/report/rankwaits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/report/keyindex.h"
#include "export/report/plain.h"
#include "export/report/timeshares.h"
#include "export/report/toprows.h"

enum { COLLECTIVES_MOST = 200000, RANKS_SHOWN = 8, PLACE_BYTES = 200 };
#define CAUSE_LEAST_MS 0.1
#define LATE_SHARE 0.8     /* of the collectives */
#define PLACE_LEAST 0.001  /* of the steps */
#define PLACE_OF_CAUSE 0.2 /* of what a rank has more: a line that has less of it explains nothing */

/* ---- one trace ---- */

bool kp_collective_is(const struct kp_tree *tree, size_t node, bool on_device)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    const char *name = kp_kineto_text(tree->trace, e->name);
    if (tree->nodes[node].removed) return false;
    if (on_device) return e->kind == KP_KINETO_GPU && strncmp(name, "nccl", 4) == 0;
    return (e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_OP) && kp_kineto_is_collective(name);
}

bool kp_collective_are_on_gpu(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_collective_is(tree, i, true)) return true;
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

/* The number of the step that a time is in; -1: none. */
static long step_at(const struct kp_chosen *chosen, int64_t ns)
{
    const size_t at = kp_step_at(chosen->steps, chosen->step_count, ns);
    return at < chosen->step_count ? chosen->steps[at].number : -1;
}

void kp_collective_key(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen, size_t node,
                       const struct kp_kineto_work *work)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    if (work && work->group && work->sequence >= 0)
        snprintf(out, bytes, "%" PRIu32 " %" PRId64, work->group, work->sequence);
    else
        snprintf(out, bytes, "%ld %s %s %" PRId64, step_at(chosen, tree->nodes[node].start_ns),
                 kp_kineto_text(tree->trace, e->name), e->shapes ? kp_kineto_text(tree->trace, e->shapes) : "",
                 work ? work->bus_bytes : 0);
}

static void collective_add(struct kp_rankwaits *w, const char *key, const struct kp_collective *is)
{
    char *kept = strdup(key);
    if (!kept) return;
    w->of = kp_kineto_grow(w->of, &w->capacity, w->count + 1, sizeof *w->of);
    w->of[w->count] = *is;
    w->of[w->count++].key = kept;
}

/* Rows: how many of each key a trace had so far. */
static unsigned number_next(struct kp_keyindex *counts, struct kp_strings *strings, const char *key)
{
    unsigned *const count =
        kp_keyindex_row(counts, kp_strings_put(strings, key, strlen(key)), &(unsigned){0}, sizeof *count);
    return (*count)++;
}

/* Where its steps' time goes, to compare it with that of the others. */
static void parts_add(struct kp_rankwait *row, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_summary s;
    kp_summary_make(&s, tree, chosen);
    row->steps += s.steps;
    row->steps_ns += s.step_mean_ns * (int64_t)s.steps;
    row->part_ns[KP_RANK_OPS] += s.op_ns;
    row->part_ns[KP_RANK_DATA] += s.data_ns;
    row->part_ns[KP_RANK_REST] += s.rest_ns;
}

static void place_add(struct kp_rankwait *row, const char *name, double ns)
{
    for (size_t i = 0; i < row->place_count; i++)
        if (strcmp(row->places[i].name, name) == 0) {
            row->places[i].ns += ns;
            return;
        }
    char *const kept = strdup(name);
    if (kept) *KP_KINETO_NEXT(row->places, row->place_count, row->place_capacity) = (struct kp_rankplace){kept, ns};
}

/* What collectives take is the wait for other ranks. */
static void places_add(struct kp_rankwait *row, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const double least_ns = PLACE_LEAST * (double)kp_spans_length(&chosen->in_steps, NULL);
    struct kp_top top;
    kp_top_build(&top, tree, chosen, tree->trace->has_stacks ? KP_TOP_BY_LINE : KP_TOP_BY_OP);
    for (size_t i = 0; i < top.count; i++) {
        const struct kp_top_row *const r = &top.rows[i];
        const char *const text = kp_kineto_text(tree->trace, r->name);
        char name[PLACE_BYTES], shown[PLACE_BYTES];
        if (!r->name || r->steps.self_ns < least_ns || kp_kineto_is_collective(text)) continue;
        snprintf(name, sizeof name, "%s%s", r->is_backward ? KP_TOP_BACKWARD_OF : "", text);
        kp_plain_text(shown, sizeof shown, name, strlen(name));
        place_add(row, shown, r->steps.self_ns);
    }
    kp_top_fini(&top);
}

long kp_rankwaits_rank(const struct kp_kineto *trace)
{
    const char *rank = kp_kineto_fact(trace, "distributedInfo.rank");
    return rank && kp_kineto_number(trace, "distributedInfo.world_size") >= 2 ? strtol(rank, NULL, 10) : -1;
}

static void host_add(struct kp_rankwaits *w, const struct kp_kineto *trace)
{
    const char *const host = kp_kineto_fact(trace, "host_name");
    if (!w->rank_count && host) snprintf(w->host, sizeof w->host, "%s", host);
    w->has_hosts |= !host || strncmp(w->host, host, sizeof w->host - 1) != 0;
}

void kp_rankwaits_add(struct kp_rankwaits *w, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const struct kp_spans *within = chosen->step_count ? &chosen->in_steps : &chosen->spans;
    const long rank = kp_rankwaits_rank(tree->trace);
    if (rank < 0) return;
    const bool on_device = kp_collective_are_on_gpu(tree);
    host_add(w, tree->trace);
    struct kp_rankwait *row = rank_get(w, rank);
    const struct kp_collective is = {.rank = row->rank, .trace = row->traces++};
    struct kp_keyindex counts = {0};
    parts_add(row, tree, chosen);
    if (chosen->step_count) places_add(row, tree, chosen);
    for (size_t i = 0; i < tree->count && w->count < COLLECTIVES_MOST; i++) {
        const struct kp_node *n = &tree->nodes[i];
        if (!kp_collective_is(tree, i, on_device) || !kp_spans_has(within, n->start_ns)) continue;
        const struct kp_kineto_work *work = kp_kineto_work_of(tree->trace, n->event);
        struct kp_collective one = is;
        char key[1024];
        kp_collective_key(key, sizeof key, tree, chosen, i, work);
        one.number = number_next(&counts, tree->trace->strings, key);
        one.ns = n->end_ns - n->start_ns;
        one.bus_bytes = work ? work->bus_bytes : 0;
        collective_add(w, key, &one);
    }
    kp_keyindex_fini(&counts);
}

/* ---- all ranks ---- */

static int same_compare(const struct kp_collective *x, const struct kp_collective *y)
{
    const int by_key = strcmp(x->key, y->key);
    if (by_key) return by_key;
    if (x->trace != y->trace) return x->trace < y->trace ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int collective_order(const void *a, const void *b)
{
    const struct kp_collective *x = a, *y = b;
    const int order = same_compare(x, y);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

KP_ORDER(rank_order, struct kp_rankwait, rank)

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
        w->bus_bytes += w->of[least].bus_bytes;
        w->transfer_ns += w->of[least].bus_bytes ? w->of[least].ns : 0;
        rank_get(w, w->of[least].rank)->last++;
        for (size_t i = from; i < to; i++) {
            rank_get(w, w->of[i].rank)->waited_ns += w->of[i].ns - w->of[least].ns;
            rank_get(w, w->of[i].rank)->spent_ns += w->of[i].ns;
        }
    }
}

static double part_ms(const struct kp_rankwait *row, int part)
{
    return row->steps ? (double)row->part_ns[part] / 1e6 / (double)row->steps : 0;
}

static double place_ms(const struct kp_rankwait *row, const char *name)
{
    for (size_t i = 0; i < row->place_count && row->steps; i++)
        if (strcmp(row->places[i].name, name) == 0) return row->places[i].ns / 1e6 / (double)row->steps;
    return 0;
}

/* Appends the line or op that a rank has more of than the others, if it is a part of what the rank has more. */
static void place_tell(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late,
                       double more_ms)
{
    const struct kp_rankplace *best = NULL;
    double most = PLACE_OF_CAUSE * more_ms, others_most = 0;
    for (size_t p = 0; p < late->place_count; p++) {
        double others = 0;
        for (size_t i = 0; i < w->rank_count; i++)
            if (&w->ranks[i] != late)
                others += place_ms(&w->ranks[i], late->places[p].name) / (double)(w->rank_count - 1);
        const double more = late->places[p].ns / 1e6 / (double)late->steps - others;
        if (more <= most) continue;
        most = more;
        others_most = others;
        best = &late->places[p];
    }
    if (best)
        snprintf(out, bytes, "; %s takes %.1f ms a step there, %.1f ms in the other%s", best->name, most + others_most,
                 others_most, w->rank_count > 2 ? "s" : "");
}

bool kp_rankwaits_cause(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late)
{
    static const char *const names[] = {
        [KP_RANK_OPS] = "ops", [KP_RANK_DATA] = "data loading", [KP_RANK_REST] = "Python and waiting (no op)"};
    double most = CAUSE_LEAST_MS, others_most = 0;
    int best = -1;
    for (int part = 0; part < KP_RANK_PARTS; part++) {
        double others = 0;
        for (size_t i = 0; i < w->rank_count; i++)
            if (&w->ranks[i] != late) others += part_ms(&w->ranks[i], part) / (double)(w->rank_count - 1);
        if (part_ms(late, part) - others <= most) continue;
        most = part_ms(late, part) - others;
        others_most = others;
        best = part;
    }
    if (best < 0 || !late->steps) return false;
    snprintf(out, bytes, "its steps have %.1f ms of %s each, those of the other%s %.1f ms", part_ms(late, best),
             names[best], w->rank_count > 2 ? "s" : "", others_most);
    const size_t used = strlen(out);
    place_tell(out + used, bytes - used, w, late, most);
    return true;
}

static const struct kp_rankwait *late_find(const struct kp_rankwaits *w)
{
    const struct kp_rankwait *late = w->ranks;
    for (size_t i = 0; i < w->rank_count; i++)
        if (w->ranks[i].last > late->last) late = &w->ranks[i];
    return late;
}

const struct kp_rankwait *kp_rankwaits_late(const struct kp_rankwaits *w)
{
    if (w->rank_count < 2 || !w->matched) return NULL;
    const struct kp_rankwait *const late = late_find(w);
    return (double)late->last >= LATE_SHARE * (double)w->matched ? late : NULL;
}

static const struct kp_rankwait *rank_find(const struct kp_rankwaits *w, long rank)
{
    for (size_t i = 0; i < w->rank_count && w->rank_count > 1; i++)
        if (w->ranks[i].rank == rank) return &w->ranks[i];
    return NULL;
}

const struct kp_rankwait *kp_rankwaits_last(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = rank_find(w, rank);
    return row && row->last && 2 * row->waited_ns < row->spent_ns ? row : NULL;
}

const struct kp_rankwait *kp_rankwaits_awaited(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = rank_find(w, rank), *const late = kp_rankwaits_late(w);
    return row && row != late && row->spent_ns && 2 * row->waited_ns >= row->spent_ns ? late : NULL;
}

double kp_rankwaits_kept_ns(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_late(w);
    double most = 0;
    for (size_t i = 0; late && late->rank == rank && i < w->rank_count; i++) {
        const struct kp_rankwait *const row = &w->ranks[i];
        if (!row->steps || kp_rankwaits_awaited(w, row->rank) != late) continue;
        const double ns = (double)row->waited_ns / (double)row->steps;
        if (ns > most) most = ns;
    }
    return most;
}

double kp_rankwaits_share(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = rank_find(w, rank);
    return row && row->spent_ns ? (double)row->waited_ns / (double)row->spent_ns : 0;
}

void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *w)
{
    const struct kp_rankwait *late = late_find(w);
    const char *between = "; waited for others: ";
    if (w->rank_count < 2) return;
    if (!w->matched) {
        fputs("ranks    no collective is in the traces of all ranks\n", out);
        return;
    }
    fprintf(out, "ranks    rank %ld came last to %zu of %zu collectives", late->rank, late->last, w->matched);
    for (size_t i = 0; i < w->rank_count && i < RANKS_SHOWN; i++, between = ", ")
        fprintf(out, "%srank %ld %.1f ms", between, w->ranks[i].rank, (double)w->ranks[i].waited_ns / 1e6);
    if (w->rank_count > RANKS_SHOWN) fprintf(out, ", and %zu more ranks", w->rank_count - RANKS_SHOWN);
    if (w->transfer_ns > 0)
        fprintf(out, "; transfers at %.1f GB/s of bus bandwidth", (double)w->bus_bytes / (double)w->transfer_ns);
    fputs("\n", out);
    char cause[KP_RANKCAUSE_BYTES];
    if (kp_rankwaits_cause(cause, sizeof cause, w, late)) fprintf(out, "         %s\n", cause);
}

void kp_rankwaits_fini(struct kp_rankwaits *w)
{
    for (size_t i = 0; i < w->count; i++) free(w->of[i].key);
    for (size_t i = 0; i < w->rank_count; i++) {
        for (size_t p = 0; p < w->ranks[i].place_count; p++) free(w->ranks[i].places[p].name);
        free(w->ranks[i].places);
    }
    free(w->of);
    free(w->ranks);
    *w = (struct kp_rankwaits){0};
}
