// SPDX-License-Identifier: Apache-2.0
/*
 * rankwaits.h - which rank of a job the others wait for
 *
 * A collective is the same one on every rank by its number in its process group, where the trace has it. Else it is by
 * its name and size, its step, and how many of these the step had before. The rank that came last spends the shortest
 * time in it: that is the transfer. What the others spend more, they wait.
 */
#pragma once

#include <stdio.h>

#include "export/report/chosen.h"

struct kp_collective {
    char *key; /* what it is on every rank */
    long rank;
    unsigned trace, number; /* trace: the how-manyth of its rank; number: among those of the key in it */
    int64_t ns, bus_bytes;  /* bus_bytes: as kp_kineto_work's; 0: not known */
};
struct kp_rankplace { /* a line of the program, or an op where the trace has no lines */
    char *name;
    double ns; /* its self time in the steps */
};
enum kp_rank_part { KP_RANK_OPS, KP_RANK_DATA, KP_RANK_REST, KP_RANK_PARTS };
struct kp_rankwait {
    long rank;
    int64_t waited_ns, spent_ns; /* spent_ns: in collectives that every rank has */
    size_t last;                 /* collectives in which it came last */
    unsigned traces;
    int64_t part_ns[KP_RANK_PARTS]; /* of its steps, without collectives */
    size_t steps;
    int64_t steps_ns;
    struct kp_rankplace *places; /* those of a thousandth of the steps or more */
    size_t place_count, place_capacity;
};
struct kp_rankwaits { /* all zero: empty */
    struct kp_collective *of;
    size_t count, capacity;
    struct kp_rankwait *ranks; /* by number, once settled */
    size_t rank_count, rank_capacity;
    size_t matched;                 /* collectives that every rank has */
    char host[128];                 /* of the first trace; "": its file does not say */
    bool has_hosts;                 /* others are of another machine, or do not say */
    int64_t bus_bytes, transfer_ns; /* of those whose bytes are known */
};

/* Is a node one: a kernel of NCCL on a device, or the range or op of it on the host? */
bool kp_collective_is(const struct kp_tree *tree, size_t node, bool on_device);
/* Kernels of a GPU where it has some, else torch's ranges on the host: "gloo:all_reduce". */
bool kp_collective_are_on_gpu(const struct kp_tree *tree);
/* Names what is the same collective on every rank. The work: what the trace says of it, or NULL. */
void kp_collective_key(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen, size_t node,
                       const struct kp_kineto_work *work);

/* Adds the collectives of the steps; without steps all. Nothing of a trace that tells no rank of several. */
void kp_rankwaits_add(struct kp_rankwaits *waits, const struct kp_tree *tree, const struct kp_chosen *chosen);
void kp_rankwaits_settle(struct kp_rankwaits *waits);
/* Says in one line who came last and how long each waited; nothing for fewer than two ranks. */
void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *waits);
/* Settled: the rank that came last to nearly all collectives, so what the others spend in them is the wait for it; or
 * NULL. */
const struct kp_rankwait *kp_rankwaits_late(const struct kp_rankwaits *waits);
/* Settled: that rank, where this one waits for it at least half of the time in collectives; or NULL. */
const struct kp_rankwait *kp_rankwaits_awaited(const struct kp_rankwaits *waits, long rank);
/* Of a rank's time in the collectives that every rank has: the share in which it waits for others, 0 to 1. */
double kp_rankwaits_share(const struct kp_rankwaits *waits, long rank);
enum { KP_RANKCAUSE_BYTES = 480 };
/* Says which part of a rank's steps is longer than the others' by most, and at which line or op: "its steps have ...".
 * False: none is. */
bool kp_rankwaits_cause(char *out, size_t bytes, const struct kp_rankwaits *waits, const struct kp_rankwait *late);
/* Settled: what the others wait for the late rank, in a step of the one that waits most. 0: it is not late, or they do
 * not wait for it (kp_rankwaits_awaited). */
double kp_rankwaits_kept_ns(const struct kp_rankwaits *waits, long rank);
/* Settled: the row of a rank that came last to collectives, and waits less than half of the time in them; or NULL. */
const struct kp_rankwait *kp_rankwaits_last(const struct kp_rankwaits *waits, long rank);
long kp_rankwaits_rank(const struct kp_kineto *trace); /* of a job of several; -1: it tells none */
void kp_rankwaits_fini(struct kp_rankwaits *waits);
