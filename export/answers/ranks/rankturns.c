// SPDX-License-Identifier: Apache-2.0
/*
 * rankturns.c - what a rank's time in collectives is: also ranks that wait for each other in turn, each late at a
 *               collective of its own
 *
 * No rank is late alone then, and yet none is late by chance: the one that makes an object is the last to its
 * broadcast, and the one that unpacks it is the last to the all-reduce behind it. So collectives are looked at by name.
 */
#include "export/answers/ranks/rankwaits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/store/qsort.h"

enum { SETS_LEAST = 8 };  /* of a name */
#define STEADY_SHARE 0.8  /* of what is waited at collectives of a name, and of all that is waited */
#define SECOND_SHARE 0.15 /* of all that is waited: with less, the first is late alone */

struct late { /* at collectives of a name: a rank came last to `sets` of them, and others waited for it so long */
    uint32_t name, row;
    size_t sets;
    int64_t ns;
};

static int late_order(const void *a, const void *b)
{
    const struct late *const x = a, *const y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Who came last to that set, and how long the rank waited that waited longest. */
static struct late late_of(const struct kp_rankwaits *w, const struct kp_rankset *set)
{
    const struct kp_collective *const last = &w->of[set->last];
    struct late out = {last->name, last->row, 1, 0};
    for (size_t i = set->from; i < set->to; i++)
        if (w->of[i].ns - last->ns > out.ns) out.ns = w->of[i].ns - last->ns;
    return out;
}

/* The rank that is late at collectives of one name: all of these are of it. `ns` is 0: none is. */
static struct late steady_of(const struct late *of, size_t count)
{
    struct late most = {0}, row = {0};
    int64_t all_ns = 0;
    size_t sets = 0;
    for (size_t i = 0; i < count; i++) {
        if (!i || of[i].row != of[i - 1].row) row = (struct late){of[i].name, of[i].row, 0, 0};
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

const char *kp_rankwaits_in_turn(char *out, size_t bytes, const struct kp_rankwaits *w)
{
    struct late two[2];
    *out = '\0';
    if (w->rank_count < 2 || !w->set_count || kp_rankwaits_lack(w) || kp_rankwaits_late(w)) return out;
    struct late *const of = kp_kineto_room(w->set_count, sizeof *of);
    for (size_t i = 0; i < w->set_count; i++) of[i] = late_of(w, &w->sets[i]);
    kp_qsort(of, w->set_count, sizeof *of, late_order);
    const double all_ns = (double)two_find(two, of, w->set_count);
    free(of);
    if (!two[1].ns || (double)two[1].ns < SECOND_SHARE * all_ns) return out;
    if ((double)(two[0].ns + two[1].ns) < STEADY_SHARE * all_ns) return out;
    snprintf(out, bytes,
             "ranks wait for each other in turn: for rank %ld in %s (%.1f ms), for rank %ld in %s (%.1f ms)",
             w->ranks[two[0].row].rank, kp_strings_get(w->texts, two[0].name), (double)two[0].ns / 1e6,
             w->ranks[two[1].row].rank, kp_strings_get(w->texts, two[1].name), (double)two[1].ns / 1e6);
    return out;
}

/* ---- what a rank waits for ---- */

/* Had ranks no core for as long as half of what others waited for them? */
static bool is_core_the_wait(const struct kp_rankwaits *w)
{
    int64_t held_ns = 0, no_core_ns = 0;
    for (size_t i = 0; i < w->rank_count; i++) {
        const struct kp_rankwait *const r = &w->ranks[i];
        held_ns += r->held_ns;
        no_core_ns += r->core_waited_ns < r->held_ns ? r->core_waited_ns : r->held_ns;
    }
    return 2 * no_core_ns >= held_ns;
}

enum kp_rankwait_kind kp_rankwaits_kind(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = kp_rankwaits_row(w, rank);
    if (!row || !row->spent_ns) return KP_RANKWAIT_UNTOLD;
    if (kp_rankwaits_awaited(w, rank)) return KP_RANKWAIT_LATE;
    const bool is_wait = 2 * row->waited_ns >= row->spent_ns;
    char turns[KP_RANKCAUSE_BYTES];
    if (is_wait && *kp_rankwaits_in_turn(turns, sizeof turns, w)) return KP_RANKWAIT_EACH;
    if (is_wait ? is_core_the_wait(w) : kp_rankwaits_crowded(w) != NULL) return KP_RANKWAIT_CORE;
    return is_wait ? KP_RANKWAIT_TURNS : KP_RANKWAIT_OWN;
}
