// SPDX-License-Identifier: Apache-2.0
/* ranktext.c - what a rank's time in collectives mostly is, and what is said of all ranks together */
#include "export/answers/ranks/rankwaits.h"

#include <stdio.h>

#include "export/show/units.h"

enum { RANKS_SHOWN = 8, TURN_BYTES = 256 };

bool kp_rankwaits_take_turns(const struct kp_rankwaits *w)
{
    return w->turns[0].ns && w->rank_count > 1 && !kp_rankwaits_lack(w) && !kp_rankwaits_late(w);
}

/* "for rank 1 in gloo:all_reduce at train.py:9 main (29.1 ms per step)" */
static void turn_text(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankturn *turn)
{
    const struct kp_rankwait *const row = &w->ranks[turn->row];
    const double ns = (double)turn->ns / (double)(row->steps ? row->steps : 1);
    snprintf(out, bytes, "for rank %ld in %s%s%s (%s %s)", row->rank, kp_strings_get(w->texts, turn->name),
             turn->line ? " at " : "", turn->line ? kp_strings_get(w->texts, turn->line) : "", kp_units_ms(ns),
             row->steps ? "per step" : "in all");
}

const char *kp_rankwaits_in_turn(char *out, size_t bytes, const struct kp_rankwaits *w)
{
    char first[TURN_BYTES], second[TURN_BYTES];
    *out = '\0';
    if (!kp_rankwaits_take_turns(w)) return out;
    turn_text(first, sizeof first, w, &w->turns[0]);
    turn_text(second, sizeof second, w, &w->turns[1]);
    snprintf(out, bytes, "ranks wait for each other in turn: %s, %s", first, second);
    return out;
}

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
    if (is_wait && kp_rankwaits_take_turns(w)) return KP_RANKWAIT_EACH;
    if (is_wait ? is_core_the_wait(w) : kp_rankwaits_crowded(w) != NULL) return KP_RANKWAIT_CORE;
    return is_wait ? KP_RANKWAIT_TURNS : KP_RANKWAIT_OWN;
}

/* The first rank from `rank` on whose trace is here, or is not; the number of ranks: there is none. */
static long rank_from(const struct kp_rankwaits *w, long rank, bool is_here)
{
    while (rank < w->world && (kp_rankmatch_row(w, rank) != NULL) != is_here) rank++;
    return rank;
}

/* "ranks 1-2 and 4" */
const char *kp_rankwaits_missing(char *out, size_t bytes, const struct kp_rankwaits *w)
{
    long missing = w->world - (long)w->rank_count, shown = 0;
    size_t used = (size_t)snprintf(out, bytes, "rank%s ", kp_units_s(missing));
    long from = rank_from(w, 0, false), to;
    for (size_t runs = 0; from < w->world && runs < RANKS_SHOWN; from = rank_from(w, to, false), runs++) {
        to = rank_from(w, from, true);
        shown += to - from;
        used += (size_t)snprintf(out + used, bytes - used, "%s%ld",
                                 !runs              ? ""
                                 : shown == missing ? " and "
                                                    : ", ",
                                 from);
        if (to - from > 1) used += (size_t)snprintf(out + used, bytes - used, "-%ld", to - 1);
    }
    if (missing > shown) snprintf(out + used, bytes - used, " and %ld more", missing - shown);
    return out;
}

/* The steps that are not compared, and why. */
static void left_print(FILE *out, const struct kp_rankwaits *w)
{
    if (w->partial && w->matched)
        fprintf(out, "         %zu collective%s missing in the trace of some rank, and not counted\n", w->partial,
                w->partial == 1 ? " is" : "s are");
    if (w->untold)
        fprintf(out,
                "         %zu collective%s of groups that the traces do not tell apart: who came last to %s is not "
                "known\n",
                w->untold, w->untold == 1 ? " is" : "s are", w->untold == 1 ? "it" : "them");
}

static void lack_print(FILE *out, const struct kp_rankwaits *w)
{
    char names[KP_RANKTEXT_BYTES];
    fprintf(out,
            "ranks    INCOMPLETE: %zu of %ld ranks are here. Without %s the last rank is unknown: record all ranks\n",
            w->rank_count, w->world, kp_rankwaits_missing(names, sizeof names, w));
}

/* Each step's wait can be held against the step; without steps it is all that there is. */
static void waits_print(FILE *out, const struct kp_rankwaits *w)
{
    bool have_steps = true;
    for (size_t i = 0; i < w->rank_count; i++) have_steps &= w->ranks[i].steps > 0;
    const char *between = have_steps ? "; waited for others per step: " : "; waited for others in all: ";
    for (size_t i = 0; i < w->rank_count && i < RANKS_SHOWN; i++, between = ", ") {
        const struct kp_rankwait *const r = &w->ranks[i];
        fprintf(out, "%srank %ld %s", between, r->rank,
                kp_units_ms(have_steps ? kp_rankwait_a_step(r) : (double)r->waited_ns));
    }
    if (w->rank_count > RANKS_SHOWN) fprintf(out, ", and %zu more ranks", w->rank_count - RANKS_SHOWN);
    if (w->transfer_ns > 0)
        fprintf(out, "; transfers at %.1f GB/s of bus bandwidth", (double)w->bus_bytes / (double)w->transfer_ns);
    fputs("\n", out);
}

void kp_rankwaits_print(FILE *out, const struct kp_rankwaits *w)
{
    const struct kp_rankwait *const late = kp_rankwaits_most(w);
    char cause[KP_RANKCAUSE_BYTES];
    if (w->has_jobs)
        fputs("ranks    of several jobs, so they are not compared. DIR/latest is the latest job alone\n", out);
    if (w->rank_count < 2 || w->has_jobs) return;
    if (kp_rankwaits_lack(w)) {
        lack_print(out, w);
        return;
    }
    if (!late) fputs("ranks    no collective is in the traces of all ranks\n", out);
    else {
        if (kp_rankwaits_are_last_alike(w))
            fprintf(out, "ranks    each arrived last about as often as the others (%zu collectives)", w->matched);
        else
            fprintf(out, "ranks    rank %ld arrived last at %zu of %zu collectives", late->rank, late->last,
                    late->matched);
        waits_print(out, w);
        if (kp_rankwaits_cause(cause, sizeof cause, w, late)) fprintf(out, "         %s\n", cause);
    }
    left_print(out, w);
}
