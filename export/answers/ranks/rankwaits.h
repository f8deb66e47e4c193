// SPDX-License-Identifier: Apache-2.0
/*
 * rankwaits.h - which rank of a job the others wait for
 *
 * Which collectives are one, rankmatch.c says. The rank that came last spends the shortest time in it: that is the
 * transfer. The time that the others spend more is their wait. If the last one came late since it waited for a rank of
 * another group in that step, that rank is to blame.
 */
#pragma once

#include <stdio.h>

#include "export/read/facts/comm/commkinds.h"
#include "export/read/store/keyindex.h"
#include "export/read/tree/chosen.h"

struct kp_collective {
    uint32_t kind;                   /* string id in `texts`: what it is on every rank, but for its step or number */
    uint32_t name;                   /* string id */
    uint32_t members;                /* string id: the ranks of its process group, "[0, 1]"; 0: not in the file */
    uint32_t line;                   /* string id: the program's own that calls it; 0: not known */
    uint32_t trace, row;             /* indexes in `traces` and, once settled, in `ranks` */
    int32_t group_size;              /* 0: not in the file */
    int32_t part;                    /* among its kind's ranks, groups that time tells apart */
    unsigned number;                 /* among those of its kind, step and rank */
    bool meets;                      /* no rank leaves it before all have entered */
    long at, step;                   /* at: its number in the group where the file has it, else its step */
    int64_t start_ns, ns, bus_bytes; /* bus_bytes: as kp_kineto_work's; 0: not known */
};
struct kp_rankset { /* collectives that are one: of[from] to of[to - 1] */
    size_t from, to, last;
    int64_t start_ns;
};
struct kp_ranktrace {
    long rank;
    struct kp_spans within, waits, spent; /* within: the steps; waits: for other ranks; spent: in collectives of sets */
    int64_t waited_ns, spent_ns;
    size_t last; /* collectives in which it came last */
};
struct kp_rankplace { /* a line of the program, or an op where the trace has no lines */
    char *name;
    double ns; /* its self time in the steps */
    bool is_backward, is_line;
};
struct kp_rankstep {
    long number;
    int64_t start_ns, end_ns;
    double no_core_ns; /* its thread had no core for so long */
    uint32_t trace;    /* index in `traces` */
};
enum kp_rank_part { KP_RANK_OPS, KP_RANK_DATA, KP_RANK_REST, KP_RANK_PARTS };
struct kp_rankwait {
    long rank;
    uint32_t host;               /* string id; 0: its file does not say */
    int64_t waited_ns, spent_ns; /* spent_ns: in collectives that all their ranks have */
    int64_t held_ns;             /* what others waited for it, the longest of each collective */
    size_t last, matched;        /* of the matched collectives it is in, those to which it came last */
    unsigned traces;
    int64_t part_ns[KP_RANK_PARTS]; /* of its steps, without collectives */
    size_t steps;
    int64_t steps_ns;
    int64_t core_had_ns, core_waited_ns; /* of its thread of the steps: it ran, and was ready to and had no core */
    int64_t core_others_ns, core_of_ns;  /* others: its other threads ran; of: from its first step to its last */
    long cores, busy_threads;            /* 0: not in the file */
    bool has_workers;                    /* of a DataLoader, whose time no trace of a rank has */
    struct kp_rankplace *places;         /* those of a thousandth of the steps or more */
    size_t place_count, place_capacity;
    struct kp_rankstep *each;
    size_t each_count, each_capacity;
    struct kp_keyindex calls; /* of ops in its steps: rankinputs.c */
    bool has_shapes, has_device;
};
struct kp_longer_step {
    long number;
    double ns; /* so much longer than the others */
};
struct kp_longer_steps { /* all zero: none */
    const struct kp_longer_step *of;
    size_t count;
    bool is_each_nth; /* by no chance */
};
struct kp_rankasked { /* a question that waits for the traces of all ranks: kp_rankwaits_longer() */
    long rank;
    struct kp_longer_steps longer; /* kept by `texts` */
};
struct kp_rankturn {          /* a rank is late at collectives of that name, and others wait for it so long */
    uint32_t name, line, row; /* string ids in `texts`, line: at which they wait, or 0; an index in `ranks` */
    int64_t ns;
};
struct kp_rankwaits { /* all zero: empty */
    struct kp_strings *texts;
    struct kp_collective *of;
    size_t count, capacity;
    struct kp_rankset *sets; /* by time, once settled */
    size_t set_count, set_capacity;
    struct kp_ranktrace *traces; /* in the order in which they were added */
    size_t trace_count, trace_capacity;
    struct kp_rankwait *ranks; /* by number, once settled */
    size_t rank_count, rank_capacity;
    struct kp_rankasked *asked;
    size_t asked_count, asked_capacity;
    long world; /* ranks of the job, as the traces say */
    /* Collectives that all their ranks have; and those of which a rank has no trace, of which a rank's trace has none,
     * and whose groups cannot be told apart. */
    size_t matched, lacking, partial, untold;
    struct kp_rankturn turns[2]; /* once settled; all zero: none take turns */
    struct kp_commkinds kinds;
    uint32_t job;                   /* string id of the job's id; 0: no trace says one */
    bool has_jobs;                  /* of several jobs that share a folder: nothing is compared */
    bool has_hosts;                 /* ranks are of several machines, or do not say */
    int64_t bus_bytes, transfer_ns; /* of those whose bytes are known */
};

/* Is a node one: a kernel of NCCL on a device, or the range or op of it on the host? */
bool kp_collective_is(const struct kp_tree *tree, size_t node, bool on_device);
/* Adds the collectives of the steps; without steps all. Nothing of a trace that tells no rank of several. */
void kp_rankwaits_add(struct kp_rankwaits *waits, const struct kp_tree *tree, const struct kp_chosen *chosen);
void kp_rankwaits_settle(struct kp_rankwaits *waits);
/* Says in one line who came last and how long each waited; nothing for fewer than two ranks. */
void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *waits);
/* Settled: are ranks missing without which the one that came last is not known? Then there is no verdict. */
bool kp_rankwaits_lack(const struct kp_rankwaits *waits);
enum { KP_RANKTEXT_BYTES = 128 };
/* Names the ranks of the job without a trace: "ranks 2-3", "ranks 5, 7 and 506 more". */
const char *kp_rankwaits_missing(char *out, size_t bytes, const struct kp_rankwaits *waits);
/* Settled: the rank for which others waited longest; NULL: no collective is matched. */
const struct kp_rankwait *kp_rankwaits_most(const struct kp_rankwaits *waits);
/* Settled: the rank for which others waited nearly all of the time that any waited, and not for want of a core alone;
 * or NULL. */
const struct kp_rankwait *kp_rankwaits_late(const struct kp_rankwaits *waits);
/* Settled: that rank, where this one waits for it at least half of the time in collectives; or NULL. */
const struct kp_rankwait *kp_rankwaits_awaited(const struct kp_rankwaits *waits, long rank);
/* The share of a rank's time in the collectives that every rank has, in which it waits for others, 0 to 1. */
double kp_rankwaits_share(const struct kp_rankwaits *waits, long rank);
enum { KP_RANKCAUSE_BYTES = 1024 };
/* For the rank that is late alone: says which part of its steps is longer than the others' by most, and at which line
 * or op: "it spends ...". False: none is, or another rank is late, or none. */
bool kp_rankwaits_cause(char *out, size_t bytes, const struct kp_rankwaits *waits, const struct kp_rankwait *late);
/* The line or op that it names; NULL: none. */
const struct kp_rankplace *kp_rankwaits_place(const struct kp_rankwaits *waits, const struct kp_rankwait *late);
double kp_rankwait_a_step(const struct kp_rankwait *row); /* what it waits for others */
/* Settled: what the others wait for the late rank, in a step of the one that waits most. 0: it is not late, or they do
 * not wait for it (kp_rankwaits_awaited). */
double kp_rankwaits_kept_ns(const struct kp_rankwaits *waits, long rank);
struct kp_rankkept {
    size_t steps, of; /* of these steps, those with half of that or more */
    long longest;     /* the step with most of it */
};
/* In which steps that rank waits for the late one. */
struct kp_rankkept kp_rankwaits_kept_steps(const struct kp_rankwaits *waits, long rank);
/* The part of a rank's time in collectives that is largest. */
enum kp_rankwait_kind {
    KP_RANKWAIT_UNTOLD, /* the traces do not tell */
    KP_RANKWAIT_LATE,   /* a wait for the one rank that is late (kp_rankwaits_awaited) */
    KP_RANKWAIT_TURNS,  /* a wait for others, none of which is late alone */
    KP_RANKWAIT_EACH,   /* a wait for others, each of which is late at collectives of its own (rankturns.c) */
    KP_RANKWAIT_OWN,    /* all had come: the collective itself */
    KP_RANKWAIT_CORE,   /* one of these two, of ranks that had no core meanwhile */
};
/* Settled. */
enum kp_rankwait_kind kp_rankwaits_kind(const struct kp_rankwaits *waits, long rank);
const struct kp_rankwait *kp_rankwaits_row(const struct kp_rankwaits *waits, long rank); /* or NULL */
/* The rank that had no core for most of the time that it wanted one; NULL: there are no ranks. */
const struct kp_rankwait *kp_rankwaits_without_core(const struct kp_rankwaits *waits);
/* Settled: the rank that had no core for most of the time that it wanted one, if that is much; or NULL. */
const struct kp_rankwait *kp_rankwaits_crowded(const struct kp_rankwaits *waits);
double kp_rankwait_no_core(const struct kp_rankwait *row); /* of the time that it wanted a core, 0 to 1 */
long kp_rankwaits_rank(const struct kp_kineto *trace);     /* of a job of several; -1: it tells none */
void kp_rankwaits_fini(struct kp_rankwaits *waits);

/* ---- ranktext.c: so is what is printed, and kp_rankwaits_kind() ---- */

bool kp_rankwaits_take_turns(const struct kp_rankwaits *waits); /* settled: then `turns` are told */
/* Settled: "ranks wait for each other in turn: for rank 1 in gloo:all_reduce at train.py:9 main (29.1 ms per step),
 * ..". "": they do not. Returns `out`. */
const char *kp_rankwaits_in_turn(char *out, size_t bytes, const struct kp_rankwaits *waits);
/* rankturns.c: Fills `turns`. The sets are there, and who came last to each. */
void kp_rankturns_find(struct kp_rankwaits *waits);

/* ---- rankalike.c: what is said of all ranks at once, where none stands out; settled ---- */

/* Does each rank arrive last about as often as the others? */
bool kp_rankwaits_are_last_alike(const struct kp_rankwaits *waits);
/* Writes which rank had no core for most of the time that it wanted one, or how long each had none. Returns `out`. */
const char *kp_rankwaits_core_text(char *out, size_t bytes, const struct kp_rankwaits *waits);
enum kp_rankcores {
    KP_RANKCORES_UNTOLD, /* no other rank of its machine has a trace here */
    KP_RANKCORES_OTHERS, /* the ranks had little of the machine's cores */
    KP_RANKCORES_RANKS,  /* they took the cores from one another */
};
/* Writes what the ranks of that rank's machine had of its cores: "the job's 3 ranks on this machine ran 6 threads on 2
 * cores ..". */
enum kp_rankcores kp_rankwaits_cores_text(char *out, size_t bytes, const struct kp_rankwaits *waits, long rank);

/* ---- ranklonger.c ---- */

enum kp_ranklonger_kind {
    KP_RANKLONGER_UNTOLD, /* the traces do not tell */
    KP_RANKLONGER_CORE,   /* another rank had no core meanwhile */
    KP_RANKLONGER_OWN,    /* another rank did more of its own meanwhile */
};
struct kp_ranklonger {
    enum kp_ranklonger_kind kind;
    const struct kp_rankwait *of;
    long step; /* in which that rank had no core for `ns`; -1: it lacked one in all steps alike */
    double ns;
};
/* Settled: why steps of a rank are long by communication. */
struct kp_ranklonger kp_rankwaits_longer(const struct kp_rankwaits *waits, long rank,
                                         const struct kp_longer_steps *longer);
/* Keeps that question, of the trace that was added last. */
void kp_rankwaits_ask(struct kp_rankwaits *waits, const struct kp_longer_steps *longer);
struct kp_longer_steps kp_longer_steps_keep(const struct kp_longer_steps *longer, struct kp_strings *texts);

/* rankinputs.c: Keeps what ops a rank calls in its steps, with the shapes of their inputs. */
void kp_rankinputs_add(struct kp_rankwaits *waits, struct kp_rankwait *row, const struct kp_tree *tree,
                       const struct kp_chosen *chosen);
/* Says why the late rank spends `more_ns` more of each step in ops, or on its GPU: "Its inputs are ..."; "": not
 * known. */
void kp_rankinputs_tell(char *out, size_t bytes, const struct kp_rankwaits *waits, const struct kp_rankwait *late,
                        double more_ns);

/* rankmatch.c: Sorts the collectives so that those of one set lie together, and fills `sets` and the counts of what
 * is in none. The ranks are sorted. */
void kp_rankmatch_sets(struct kp_rankwaits *waits);
/* Is a rank's collective in the set? */
bool kp_rankset_has(const struct kp_rankwaits *waits, const struct kp_rankset *set, uint32_t row);
/* A rank's row, or NULL. The ranks are sorted. */
const struct kp_rankwait *kp_rankmatch_row(const struct kp_rankwaits *waits, long rank);
