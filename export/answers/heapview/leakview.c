// SPDX-License-Identifier: Apache-2.0
/*
 * leakview.c - `kprof memory --leaks`: the call stacks that left most bytes in steps, and what each step left
 *
 * Step 0 of a program that was recorded from its start has the start-up in it: imports leave a hundred thousand call
 * stacks. The last step still uses what it has: its gradients, its loss. So what was left in these two is a row each,
 * behind the others, whose bytes add up to the sum of the first line.
 */
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/heapview/heapview.h"
#include "export/show/units.h"

enum { STEPS_SHOWN = 8, FEW_ROWS = 5, STEP_ROWS = 20 };

struct leaks {
    FILE *out;
    const struct kp_profile *p;
    const struct kp_places *places;
    size_t from, to; /* steps, by index */
};
struct leaking { /* a call stack, in the steps between the start-up and the last */
    const struct kp_profile_leak *of;
    size_t n; /* steps */
    uint64_t bytes, blocks;
};

struct leaks_folded { /* what is one row */
    size_t stacks, step;
    uint64_t bytes, blocks;
};

static bool is_startup(const struct leaks *l, size_t step) { return kp_profile_is_startup(l->p, l->from, l->to, step); }

/* The last step's index. The part behind the program's last whole step has a number as well: it left far fewer blocks,
 * and the step before it has the bytes in use at the end. */
static size_t last_from(const struct leaks *l)
{
    const size_t last = l->p->steps_n ? l->p->steps_n - 1 : 0;
    const struct kp_profile_step *s = &l->p->steps[last];
    const bool is_behind = l->to - l->from > 2 && s->left_blocks < s[-1].left_blocks / 2;
    return is_behind ? last - 1 : last;
}

static bool is_last(const struct leaks *l, size_t step) { return l->to - l->from > 1 && step >= last_from(l); }

/* ---- call stacks ---- */

KP_ORDERED(by_bytes, struct leaking, KP_DOWN(bytes) KP_DOWN(n))

static void leaking_print(const struct leaks *l, const struct leaking *k)
{
    fprintf(l->out, "    %s in %llu block%s:", kp_units_size((int64_t)k->bytes), (unsigned long long)k->blocks,
            kp_units_s(k->blocks));
    for (size_t i = 0; i < k->n && i < STEPS_SHOWN; i++)
        fprintf(l->out, "%s step %llu %s", i ? "," : "", (unsigned long long)l->p->steps[k->of[i].step].number,
                kp_units_size((int64_t)k->of[i].bytes));
    if (k->n > STEPS_SHOWN)
        fprintf(l->out, ", and %zu more step%s", k->n - STEPS_SHOWN, kp_units_s(k->n - STEPS_SHOWN));
    fputc('\n', l->out);
    kp_heapview_stack(l->out, l->p, l->places, l->p->sites[k->of[0].site].frame);
}

static void leaks_fold(struct leaks_folded *to, const struct kp_profile_leak *of)
{
    to->stacks++;
    to->step = of->step;
    to->bytes += of->bytes;
    to->blocks += of->blocks;
}

/* Sums of each call stack. Blocks of the start-up and the last step are no growth: they go into `start` and `last`. */
static struct leaking *leaking_list(const struct leaks *l, const struct kp_profile_leak *of, size_t n, size_t *all,
                                    struct leaks_folded *start, struct leaks_folded *last)
{
    struct leaking *sites = kp_kineto_zeros(n + 1, sizeof *sites);
    *all = 0;
    for (size_t i = 0; i < n; i++) {
        struct leaking *k = *all ? &sites[*all - 1] : NULL;
        if (is_last(l, of[i].step)) leaks_fold(last, &of[i]);
        else if (is_startup(l, of[i].step)) leaks_fold(start, &of[i]);
        else {
            if (!k || k->of->site != of[i].site) *(k = &sites[(*all)++]) = (struct leaking){.of = &of[i]};
            k->n++;
            k->bytes += of[i].bytes;
            k->blocks += of[i].blocks;
        }
    }
    if (*all) qsort(sites, *all, sizeof *sites, by_bytes);
    return sites;
}

static void folded_row(const struct leaks *l, const struct leaks_folded *f, const char *before, const char *behind)
{
    const unsigned long long step = f->stacks ? l->p->steps[f->step].number : 0;
    if (!f->stacks) return;
    fprintf(l->out, "    %sstep %llu%s", before, step, behind);
    fprintf(l->out, ": %s in %llu block%s of %zu call stack%s; --step %llu has them\n",
            kp_units_size((int64_t)f->bytes), (unsigned long long)f->blocks, kp_units_s(f->blocks), f->stacks,
            kp_units_s(f->stacks), step);
}

/* Blocks that were left behind the last step are in its row. */
static void last_row(const struct leaks *l, struct leaks_folded *f)
{
    f->step = last_from(l);
    folded_row(l, f, "still in use by ", ", the last");
}

static void rest_print(const struct leaks *l, const struct leaking *rest, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += rest[i].bytes;
    fprintf(l->out, "    and %zu more call stack%s, %s of that sum: -n 0 shows all\n", n, kp_units_s(n),
            kp_units_size((int64_t)bytes));
}

static void sites_print(const struct leaks *l, long row_limit)
{
    struct leaks_folded start = {0}, last = {0};
    size_t n, kept;
    struct kp_profile_leak *of = kp_profile_leaks(l->p, l->from, l->to, &n);
    struct leaking *sites = leaking_list(l, of, n, &kept, &start, &last);
    const size_t shown = row_limit < 0 ? kept : (size_t)(row_limit ? row_limit : FEW_ROWS);
    fprintf(l->out, "where, most bytes first:\n");
    for (size_t i = 0; i < kept && i < shown; i++) leaking_print(l, &sites[i]);
    if (kept > shown) rest_print(l, sites + shown, kept - shown);
    if (!kept) fprintf(l->out, "    none\n");
    last_row(l, &last);
    folded_row(l, &start, "start-up (", ", with imports)");
    free(sites);
    free(of);
}

/* `row_limit` 0: a few. */
static void steps_print(const struct leaks *l, long row_limit)
{
    const struct kp_profile *p = l->p;
    const size_t all = l->to - l->from, rows = row_limit < 0 ? all : (size_t)(row_limit ? row_limit : STEP_ROWS);
    const size_t shown = rows < all ? rows : all;
    fprintf(l->out, "\nwhat each step allocated and left on the host's heap:\n");
    fprintf(l->out, "    %8s %33s %33s\n", "step", "there when it ended", "still there when the last began");
    for (size_t i = l->from; i < l->from + shown; i++) {
        const struct kp_profile_step *s = &p->steps[i];
        fprintf(l->out, "    %8llu %14s in %8llu blocks %14s in %8llu blocks\n", (unsigned long long)s->number,
                kp_units_size((int64_t)s->left_bytes), (unsigned long long)s->left_blocks,
                kp_units_size((int64_t)s->still_bytes), (unsigned long long)s->still_blocks);
    }
    if (all > shown) fprintf(l->out, "    %zu more step%s: -n 0\n", all - shown, kp_units_s(all - shown));
    else if (l->to == p->steps_n) fprintf(l->out, "the last step has what it still uses\n");
}

/* "steps 1-19 left 21.38 KiB in 21 blocks": without the start-up, and without the last, which is still used. */
static void sum_print(const struct leaks *l)
{
    const struct kp_profile *p = l->p;
    const size_t from = is_startup(l, l->from) ? l->from + 1 : l->from,
                 to = is_last(l, l->to - 1) ? last_from(l) : l->to;
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = from; i < to; i++) {
        bytes += p->steps[i].still_bytes;
        blocks += p->steps[i].still_blocks;
    }
    if (from >= to) {
        fprintf(l->out, "no step between the start-up and the last: record more steps to see what they leave\n");
        return;
    }
    fprintf(l->out, "step%s %llu", kp_units_s(to - from), (unsigned long long)p->steps[from].number);
    if (to - from > 1) fprintf(l->out, "-%llu", (unsigned long long)p->steps[to - 1].number);
    fprintf(l->out, " left %s in %llu block%s on the host's heap, %s a step\n", kp_units_size((int64_t)bytes),
            (unsigned long long)blocks, kp_units_s(blocks), kp_units_size((int64_t)(bytes / (to - from))));
}

bool kp_leakview_write(FILE *out, const struct kp_profile *p, long row_limit, const struct kp_places *places,
                       long first, long last)
{
    struct leaks l = {.out = out, .places = places, .p = p, .from = p->steps_n};
    for (size_t i = 0; i < p->steps_n; i++) {
        if (first >= 0 && (p->steps[i].number < (uint64_t)first || p->steps[i].number > (uint64_t)last)) continue;
        l.from = i < l.from ? i : l.from;
        l.to = i + 1;
    }
    if (l.from >= l.to) return false;
    sum_print(&l);
    kp_arenaview_write(out, p, l.from, l.to, KP_ARENAS_GREW);
    fputc('\n', out);
    sites_print(&l, row_limit);
    kp_arenaview_write(out, p, l.from, l.to, KP_ARENAS_RESTED);
    steps_print(&l, row_limit);
    return true;
}
