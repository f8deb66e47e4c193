// SPDX-License-Identifier: Apache-2.0
/*
 * rankturns.c - finds ranks that wait for each other in turn: each is late at a collective of its own
 *
 * No rank is late alone then, and yet none is late by chance: the one that makes an object is the last to its
 * broadcast, and the one that unpacks it is the last to the all-reduce behind it. So collectives are looked at by name.
 */
#include "export/answers/ranks/rankwaits.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/store/qsort.h"

enum { SETS_LEAST = 8 };  /* of a name */
#define STEADY_SHARE 0.8  /* of what is waited at collectives of a name, and of all that is waited */
#define SECOND_SHARE 0.15 /* of all that is waited: with less, the first is late alone */

struct late { /* at collectives of a name: a rank came last to `sets` of them, and others waited for it so long */
    uint32_t name, row, line; /* line: at which one of them waited longest */
    size_t sets;
    int64_t ns;
};

KP_ORDER2(late_order, struct late, name, row)

/* Who came last to that set, and how long the rank waited that waited longest. */
static struct late late_of(const struct kp_rankwaits *w, const struct kp_rankset *set)
{
    const struct kp_collective *const last = &w->of[set->last];
    struct late out = {last->name, last->row, last->line, 1, 0};
    for (size_t i = set->from; i < set->to; i++)
        if (w->of[i].ns - last->ns > out.ns) out.ns = w->of[i].ns - last->ns, out.line = w->of[i].line;
    return out;
}

/* The rank that is late at collectives of one name: all of these are of it. `ns` is 0: none is. */
static struct late steady_of(const struct late *of, size_t count)
{
    struct late most = {0}, row = {0};
    int64_t all_ns = 0, longest_ns = 0;
    size_t sets = 0;
    for (size_t i = 0; i < count; i++) {
        if (!i || of[i].row != of[i - 1].row) row = (struct late){.name = of[i].name, .row = of[i].row}, longest_ns = 0;
        if (of[i].ns > longest_ns) longest_ns = of[i].ns, row.line = of[i].line;
        row.sets += of[i].sets;
        row.ns += of[i].ns;
        sets += of[i].sets;
        all_ns += of[i].ns;
        if (row.ns > most.ns) most = row;
    }
    const bool is_steady =
        sets >= SETS_LEAST && 2 * most.sets >= sets && (double)most.ns >= STEADY_SHARE * (double)all_ns;
    return is_steady ? most : (struct late){0};
}

/* The two ranks that are waited for most, at names of their own. Returns what is waited in all. */
static int64_t two_find(struct late two[2], struct late *of, size_t count)
{
    int64_t all_ns = 0;
    two[0] = two[1] = (struct late){0};
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && of[to].name == of[from].name; to++) all_ns += of[to].ns;
        const struct late one = steady_of(&of[from], to - from);
        if (one.ns > two[0].ns) {
            if (two[0].row != one.row) two[1] = two[0];
            two[0] = one;
        } else if (one.ns > two[1].ns && one.row != two[0].row) {
            two[1] = one;
        }
    }
    return all_ns;
}

void kp_rankturns_find(struct kp_rankwaits *w)
{
    struct late two[2];
    if (!w->set_count) return;
    struct late *const of = kp_kineto_room(w->set_count, sizeof *of);
    for (size_t i = 0; i < w->set_count; i++) of[i] = late_of(w, &w->sets[i]);
    kp_qsort(of, w->set_count, sizeof *of, late_order);
    const double all_ns = (double)two_find(two, of, w->set_count);
    free(of);
    if (!two[1].ns || (double)two[1].ns < SECOND_SHARE * all_ns) return;
    if ((double)(two[0].ns + two[1].ns) < STEADY_SHARE * all_ns) return;
    for (int i = 0; i < 2; i++) w->turns[i] = (struct kp_rankturn){two[i].name, two[i].line, two[i].row, two[i].ns};
}
