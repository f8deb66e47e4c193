// SPDX-License-Identifier: Apache-2.0
/*
 * rankmatch.c - finds which collectives of several ranks are one
 *
 * A process group's name, its members and a number in it tell that. If a trace has no group, as over gloo, it is the
 * name, the sizes, the step, and how many of these the step had before. Ranks of one machine must meet in it then: a
 * rank leaves no all-reduce before the last one has entered. If they do not, the groups are smaller than the job.
 */
#include "export/answers/ranks/rankwaits.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/store/qsort.h"

/* Collectives in no set: a rank's step has more of them than another's; or groups that cannot be told apart. */
enum { PART_UNEVEN = INT32_MAX, PART_UNTOLD = INT32_MAX - 1 };
#define MEET_SLACK_NS 100000 /* clocks of one machine, and the ends of ranges */

KP_ORDERED(seen_order, struct kp_collective, KP_UP(kind) KP_UP(at) KP_UP(row) KP_UP(start_ns))

KP_ORDERED(set_order, struct kp_collective, KP_UP(kind) KP_UP(number) KP_UP(at) KP_UP(part) KP_UP(row))

/* Numbers those of one kind and step by their begin. `of`: these, by rank. */
static void numbers_give(struct kp_collective *of, size_t count)
{
    size_t had = 0;
    bool is_uneven = false;
    for (size_t i = 0; i < count; i++) of[i].number = i && of[i].row == of[i - 1].row ? of[i - 1].number + 1 : 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && of[i + 1].row == of[i].row) continue;
        is_uneven |= had && had != of[i].number + 1;
        had = of[i].number + 1;
    }
    for (size_t i = 0; i < count; i++) of[i].part = is_uneven ? PART_UNEVEN : 0;
}

/* ---- groups that time tells apart ---- */

struct ranks_met { /* the ranks of a kind, numbered from 0 */
    struct kp_keyindex rows;
    int32_t *part;
    size_t count;
    bool *together; /* [i * count + j]: they meet in each */
};

/* Can the clocks of two ranks be compared? */
static bool is_one_clock(const struct kp_rankwaits *w, const struct kp_collective *a, const struct kp_collective *b)
{
    const uint32_t host = w->ranks[a->row].host;
    return host && host == w->ranks[b->row].host;
}

static bool do_meet(const struct kp_rankwaits *w, const struct kp_collective *a, const struct kp_collective *b)
{
    if (!a->meets || !is_one_clock(w, a, b)) return true;
    return a->start_ns <= b->start_ns + b->ns + MEET_SLACK_NS && b->start_ns <= a->start_ns + a->ns + MEET_SLACK_NS;
}

/* Notes which ranks do not meet in one set. Returns whether all do. */
static bool set_look(const struct kp_rankwaits *w, struct ranks_met *m, const struct kp_collective *of, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            if (of[i].part == PART_UNEVEN || do_meet(w, &of[i], &of[k])) continue;
            const size_t x = kp_keyindex_get(&m->rows, of[i].row), y = kp_keyindex_get(&m->rows, of[k].row);
            m->together[x * m->count + y] = m->together[y * m->count + x] = all = false;
        }
    }
    return all;
}

static size_t company_of(const struct ranks_met *m, size_t i)
{
    size_t count = 0;
    for (size_t k = 0; k < m->count; k++) count += m->part[k] < 0 && m->together[i * m->count + k];
    return count;
}

/* The rank with the fewest it can be with is with these, if these meet each other, too. */
static bool group_take(struct ranks_met *m, int32_t part)
{
    size_t best = m->count, least = m->count + 1;
    for (size_t i = 0; i < m->count; i++) {
        const size_t has = m->part[i] < 0 ? company_of(m, i) : m->count + 1;
        if (has < least) least = has, best = i;
    }
    if (least < 2) return false;
    for (size_t i = 0; i < m->count; i++) {
        if (m->part[i] >= 0 || !m->together[best * m->count + i]) continue;
        for (size_t k = 0; k < m->count; k++)
            if (m->part[k] < 0 && m->together[best * m->count + k] && !m->together[i * m->count + k]) return false;
    }
    for (size_t i = 0; i < m->count; i++)
        if (i != best && m->part[i] < 0 && m->together[best * m->count + i]) m->part[i] = part;
    m->part[best] = part;
    return true;
}

static bool has_left(const struct ranks_met *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->part[i] < 0) return true;
    return false;
}

/* Divides ranks that do not all meet. */
static void groups_find(struct ranks_met *m)
{
    for (size_t i = 0; i < m->count; i++) m->part[i] = -1;
    for (int32_t part = 0; has_left(m); part++) {
        if (group_take(m, part)) continue;
        for (size_t i = 0; i < m->count; i++) m->part[i] = PART_UNTOLD;
        return;
    }
}

static size_t run_end(const struct kp_rankwaits *w, size_t from, size_t to)
{
    size_t end = from + 1;
    while (end < to && w->of[end].at == w->of[from].at && w->of[end].part == w->of[from].part) end++;
    return end;
}

static struct ranks_met met_make(const struct kp_rankwaits *w, size_t from, size_t to)
{
    struct ranks_met m = {.part = kp_kineto_zeros(w->rank_count, sizeof *m.part)};
    for (size_t i = from; i < to; i++) (void)kp_keyindex_get(&m.rows, w->of[i].row);
    m.count = m.rows.count;
    m.together = kp_kineto_room(m.count * m.count, sizeof *m.together);
    memset(m.together, true, m.count * m.count * sizeof *m.together);
    return m;
}

/* ---- sets ---- */

KP_ORDER(row_order, struct kp_rankwait, rank)

const struct kp_rankwait *kp_rankmatch_row(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait wanted = {.rank = rank};
    return w->rank_count ? bsearch(&wanted, w->ranks, w->rank_count, sizeof *w->ranks, row_order) : NULL;
}

/* Has a list of ranks, "[0, 1, ..., 7]", one of which there is no trace? A list that is cut tells less. */
static bool do_members_lack(const struct kp_rankwaits *w, const char *list)
{
    for (const char *at = list; *at;) {
        char *end;
        const long rank = strtol(at, &end, 10);
        if (end == at) {
            at++;
            continue;
        }
        if (!kp_rankmatch_row(w, rank)) return true;
        at = end;
    }
    return strstr(list, "...") && (long)w->rank_count < w->world;
}

/* Counts one that is not of all its ranks, by the reason. */
static void unmatched_count(struct kp_rankwaits *w, const struct kp_collective *of)
{
    const bool is_lacking =
        of->group_size > 0 ? do_members_lack(w, kp_strings_get(w->texts, of->members)) : (long)w->rank_count < w->world;
    if (is_lacking) w->lacking++;
    else if (of->part == PART_UNTOLD) w->untold++;
    else w->partial++;
}

static size_t size_of(const struct kp_collective *of, const struct ranks_met *m)
{
    size_t count = 0;
    if (of->group_size > 0) return (size_t)of->group_size;
    for (size_t i = 0; i < m->count; i++) count += m->part[i] == of->part;
    return count;
}

static void sets_add(struct kp_rankwaits *w, const struct ranks_met *m, size_t from, size_t to)
{
    for (size_t at = from, end; at < to; at = end) {
        const struct kp_collective *const of = &w->of[at];
        end = run_end(w, at, to);
        const size_t size = size_of(of, m);
        if (of->group_size == 1 || w->world == 1) continue;
        if (of->part >= PART_UNTOLD || size < 2 || end - at != size ||
            (of->group_size <= 0 && (long)w->rank_count < w->world))
            unmatched_count(w, of);
        else *KP_KINETO_NEXT(w->sets, w->set_count, w->set_capacity) = (struct kp_rankset){at, end, at, INT64_MAX};
    }
}

/* Collectives of one kind and number in their steps. */
static void kind_settle(struct kp_rankwaits *w, size_t from, size_t to)
{
    struct ranks_met m = met_make(w, from, to);
    bool all = true;
    for (size_t at = from, end; w->of[from].group_size <= 0 && at < to; at = end) {
        end = run_end(w, at, to);
        all &= set_look(w, &m, &w->of[at], end - at);
    }
    if (!all) {
        groups_find(&m);
        for (size_t i = from; i < to; i++)
            if (w->of[i].part != PART_UNEVEN) w->of[i].part = m.part[kp_keyindex_get(&m.rows, w->of[i].row)];
        kp_qsort(&w->of[from], to - from, sizeof *w->of, set_order);
    }
    sets_add(w, &m, from, to);
    kp_keyindex_fini(&m.rows);
    free(m.part);
    free(m.together);
}

bool kp_rankset_has(const struct kp_rankwaits *w, const struct kp_rankset *set, uint32_t row)
{
    for (size_t i = set->from; i < set->to; i++)
        if (w->of[i].row == row) return true;
    return false;
}

void kp_rankmatch_sets(struct kp_rankwaits *w)
{
    if (!w->count) return;
    kp_qsort(w->of, w->count, sizeof *w->of, seen_order);
    for (size_t from = 0, to; from < w->count; from = to) {
        for (to = from + 1; to < w->count && w->of[to].kind == w->of[from].kind && w->of[to].at == w->of[from].at;)
            to++;
        numbers_give(&w->of[from], to - from);
    }
    kp_qsort(w->of, w->count, sizeof *w->of, set_order);
    for (size_t from = 0, to; from < w->count; from = to) {
        for (to = from + 1; to < w->count && w->of[to].kind == w->of[from].kind;) {
            if (w->of[to].number != w->of[from].number) break;
            to++;
        }
        kind_settle(w, from, to);
    }
}
