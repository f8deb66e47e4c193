// SPDX-License-Identifier: Apache-2.0
/*
 * rankwaits.h - which rank of a job the others wait for
 *
 * The n-th collective of a name in a trace is the same one on every rank. The rank that came last spends the shortest
 * time in it. What the others spend more, they wait.
 */
#ifndef KP_RANKWAITS_H
#define KP_RANKWAITS_H

#include <stdio.h>

#include "export/report/chosen.h"

struct kp_collective {
    char *name;
    long rank;
    unsigned trace, number; /* trace: the how-manyth of its rank; number: among those of the name in it */
    int64_t ns;
};
struct kp_rankwait {
    long rank;
    int64_t waited_ns;
    size_t last; /* collectives in which it came last */
    unsigned traces;
};
struct kp_rankwaits { /* all zero: empty */
    struct kp_collective *of;
    size_t count, capacity;
    struct kp_rankwait *ranks; /* by number, once settled */
    size_t rank_count, rank_capacity;
    size_t matched; /* collectives that every rank has */
};

/* Adds the collectives of the steps; without steps all. Nothing of a trace that tells no rank of several. */
void kp_rankwaits_add(struct kp_rankwaits *waits, const struct kp_tree *tree, const struct kp_chosen *chosen);
void kp_rankwaits_settle(struct kp_rankwaits *waits);
/* Says in one line who came last and how long each waited; nothing for fewer than two ranks. */
void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *waits);
void kp_rankwaits_fini(struct kp_rankwaits *waits);

#endif
