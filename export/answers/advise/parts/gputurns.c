// SPDX-License-Identifier: Apache-2.0
/*
 * gputurns.c - tells from the gaps of a GPU whether another process shares it
 */
#include "export/answers/advise/parts/adviseparts.h"

#include <stdlib.h>

/* Processes that share a GPU have it in turns of a few milliseconds (2.4 on an H200), as regular as a clock, and
 * before any work. A program's own wait comes before the same work each time. */
enum { TURN_LEAST_NS = 1000000, TURNS_LEAST = 4, TURN_WORKS_LEAST = 3 };
static const double turn_spread = 0.015, turns_share = 0.4;

struct kp_late_work {
    int64_t gap_ns; /* nothing ran for so long before it */
    const char *name;
};

void kp_turns_add(struct kp_late *late, const struct kp_tree *tree, int32_t node, int64_t gap_ns, int64_t launched_ns)
{
    if (launched_ns < TURN_LEAST_NS) return;
    *KP_KINETO_NEXT(late->of, late->count, late->capacity) =
        (struct kp_late_work){gap_ns, kp_kineto_text(tree->trace, kp_tree_event(tree, (size_t)node)->name)};
}

static int late_order(const void *a, const void *b)
{
    const int64_t x = ((const struct kp_late_work *)a)->gap_ns, y = ((const struct kp_late_work *)b)->gap_ns;
    return (x > y) - (x < y);
}

static size_t names_count(const struct kp_late_work *late, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count && names < TURN_WORKS_LEAST; i++) {
        size_t before = 0;
        while (before < i && strcmp(late[before].name, late[i].name) != 0) before++;
        names += before == i;
    }
    return names;
}

/* The most gaps of one length, if they are another process's turns. */
struct kp_turns kp_turns_find(struct kp_late *late)
{
    size_t first = 0, most = 0;
    if (late->count) qsort(late->of, late->count, sizeof *late->of, late_order);
    for (size_t i = 0, end = 0; i < late->count; i++) {
        while (end < late->count && (double)late->of[end].gap_ns <= (double)late->of[i].gap_ns * (1 + 2 * turn_spread))
            end++;
        if (end - i > most) most = end - i, first = i;
    }
    if (most < TURNS_LEAST || (double)most < turns_share * (double)late->count ||
        names_count(late->of + first, most) < TURN_WORKS_LEAST)
        return (struct kp_turns){0};
    return (struct kp_turns){most, late->of[first + most / 2].gap_ns};
}
