// SPDX-License-Identifier: Apache-2.0
/*
 * stuck.c - finds a job that stands: a collective, an op or a loader is open for longer than any step took
 *
 * A trace of a process that runs, or that was killed, ends when it was read, or when the process was seen last. An op
 * that is open then has no end in the file.
 */
#include "export/answers/ranks/stuck.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"
#include "export/show/units.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/ranks/silence.h"
#include "export/read/facts/comm/commstarts.h"
#include "export/read/facts/namefacts.h"

enum { RANKS_SHOWN = 8, STATES_SHOWN = 4 };

static void text_keep(char *out, const char *text) { kp_plain_text(out, KP_STUCK_NAME_BYTES, text, strlen(text)); }

static void name_keep(char *out, const struct kp_tree *tree, int64_t node)
{
    text_keep(out, node < 0 ? "" : kp_kineto_text(tree->trace, kp_tree_event(tree, (size_t)node)->name));
}

/* A backend works at a collective on a thread of its own, without a stack: the op that started it has the line. */
static const char *collective_line(const struct kp_tree *tree, int64_t node)
{
    int32_t *const starts = kp_commstarts_find(tree);
    const int64_t op = starts && starts[node] >= 0 ? starts[node] : node;
    free(starts);
    return kp_deed_line(tree, (size_t)op);
}

/* Counts the batches that the steps took. Nothing is kept of steps whose numbers have gaps. */
static void batches_count(struct kp_stuckrank *r, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const size_t count = chosen->step_count;
    const struct kp_step *const steps = chosen->steps;
    if (r->rank < 0 || !count || (size_t)(steps[count - 1].number - steps[0].number) != count - 1) return;
    r->batches = kp_kineto_zeros(count, sizeof *r->batches);
    r->first_step = steps[0].number;
    r->steps = count;
    for (size_t i = 0, step = 0; i < tree->count && step < count; i++) { /* nodes are in order of their start */
        while (step < count && tree->nodes[i].start_ns >= steps[step].end_ns) step++;
        if (step == count || tree->nodes[i].start_ns < steps[step].start_ns) continue;
        r->batches[step] += !tree->nodes[i].on_device && kp_node_is(tree, i, KP_NAME_LOADER);
    }
}

static void silence_keep(struct kp_stuckrank *r, const struct kp_tree *tree, const struct kp_chosen *chosen,
                         int64_t last)
{
    const size_t count = chosen->step_count;
    const int64_t all_ns = chosen->steps[count - 1].end_ns - chosen->steps[0].start_ns;
    char after[KP_SILENCE_BYTES - 40];
    snprintf(r->silence, sizeof r->silence, "%s; a step took %.3g ms",
             kp_silence_after(after, sizeof after, tree, chosen, last), (double)all_ns / (double)count / 1e6);
}

void kp_stuck_add(struct kp_stuck *s, const struct kp_tree *tree, const struct kp_chosen *chosen, const char *stood)
{
    const struct kp_kineto *const t = tree->trace;
    struct kp_lastdeeds end;
    s->has_added = false;
    if (!t->has_start || !tree->count) return;
    kp_lastdeeds_find(&end, tree);
    if (end.last_ns == INT64_MIN && !stood) return;
    struct kp_stuckrank r = {.rank = kp_rankwaits_rank(t), .pid = kp_kineto_pid(t), .has_stood = stood != NULL};
    r.ns = end.last_ns == INT64_MIN ? 0 : t->end_ns - end.last_ns;
    const int64_t open = end.collective >= 0 ? end.collective : end.op;
    r.in_collective = end.collective >= 0;
    if (r.in_collective) r.ns = t->end_ns - tree->nodes[open].start_ns;
    const bool is_silent = kp_silence_ns(tree, chosen, &end) > 0;
    r.is_stuck = open >= 0 ? r.ns >= kp_silence_bound(chosen) : is_silent && r.rank >= 0;
    r.is_silent = is_silent && r.rank < 0 && kp_silence_has_steps(t, chosen);
    r.is_follower = kp_ended_lost_peer(t);
    if (stood) snprintf(s->stood, sizeof s->stood, "%s", stood);
    name_keep(r.in, tree, open);
    name_keep(r.after, tree, end.last);
    if (r.is_silent) silence_keep(&r, tree, chosen, end.last);
    name_keep(r.call, tree, end.call);
    if (r.in_collective) text_keep(r.call, collective_line(tree, open));
    else if (end.call < 0 && open >= 0) text_keep(r.call, kp_deed_line(tree, (size_t)open));
    batches_count(&r, tree, chosen);
    if (kp_ended_exception(t)) text_keep(r.by, kp_ended_exception(t));
    s->is_early |= kp_ended_early(t);
    *KP_KINETO_NEXT(s->of, s->count, s->capacity) = r;
    s->has_added = true;
}

void kp_stuck_lead(struct kp_stuck *s, const char *path, bool is_running)
{
    s->is_running |= is_running;
    if (s->has_added) s->of[s->count - 1].is_running = is_running;
    kp_path_folder(s->folder, sizeof s->folder, path);
}

/* The latest trace of a rank, or of a process of no job, tells; those before it ended. */
static bool is_latest(const struct kp_stuck *s, size_t at)
{
    for (size_t i = at + 1; i < s->count; i++)
        if (s->of[i].rank == s->of[at].rank && (s->of[at].rank >= 0 || s->of[i].pid == s->of[at].pid)) return false;
    return true;
}

static const struct kp_stuckrank *silent_of(const struct kp_stuck *s)
{
    const struct kp_stuckrank *found = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct kp_stuckrank *const r = &s->of[i];
        if (r->rank >= 0) return NULL;
        if (!r->is_running || !is_latest(s, i)) continue;
        if (!r->is_silent) return NULL;
        if (!found) found = r;
    }
    return found;
}

int64_t kp_stuck_silent(const struct kp_stuck *s)
{
    const struct kp_stuckrank *const r = silent_of(s);
    return r ? r->pid : 0;
}

void kp_stuck_stand(struct kp_stuck *s, int64_t pid, const char *where)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->of[i].pid != pid || !is_latest(s, i)) continue;
        s->of[i].is_stuck = true;
        text_keep(s->of[i].call, where);
    }
}

void kp_stuck_rest(struct kp_stuck *s, int64_t pid, const char *waits)
{
    kp_stuck_stand(s, pid, "");
    s->deaf = pid;
    snprintf(s->waits, sizeof s->waits, "%s", waits);
}

/* One that computes without torch is silent as well, and so is one that rests between two trainings. */
static void quiet_put(struct kp_stuck_told *out, const struct kp_stuck *s)
{
    const struct kp_stuckrank *const r = silent_of(s);
    if (r)
        snprintf(out->what, sizeof out->what, "the program (process %lld) has run no operator for %.1f s (%s)",
                 (long long)r->pid, (double)r->ns / 1e9, r->silence);
}

static bool is_same(const struct kp_stuckrank *a, const struct kp_stuckrank *b)
{
    if (strcmp(a->by, b->by) != 0) return false;
    if (strcmp(a->in, b->in) != 0) return false;
    if (a->in_collective) return strcmp(a->call, b->call) == 0;
    return *a->in || (strcmp(a->after, b->after) == 0 && strcmp(a->call, b->call) == 0);
}

static void ranks_put(FILE *f, const struct kp_stuck *s, size_t first, bool *told, const char *waits_for)
{
    size_t count = 0;
    int64_t most = 0;
    char numbers[RANKS_SHOWN * 24] = "";
    for (size_t i = first; i < s->count; i++) {
        if (told[i] || !is_latest(s, i) || !is_same(&s->of[i], &s->of[first])) continue;
        told[i] = true;
        if (s->of[i].ns > most) most = s->of[i].ns;
        const size_t used = strlen(numbers);
        if (count++ < RANKS_SHOWN)
            snprintf(numbers + used, sizeof numbers - used, "%s%ld", used ? ", " : "", s->of[i].rank);
    }
    const struct kp_stuckrank *const r = &s->of[first];
    if (r->rank < 0) fputs("the program", f);
    else fprintf(f, "rank%s %s", kp_units_s(count), numbers);
    if (count > RANKS_SHOWN) fprintf(f, " and %zu more", count - RANKS_SHOWN);
    if (*r->by) {
        fprintf(f, " ended by %s%s", r->by, r->is_follower ? " after another rank was gone" : "");
        return;
    }
    if (*r->in) fprintf(f, " ha%s been in %s", count > 1 ? "ve" : "s", r->in);
    else fputs(" did nothing", f);
    fprintf(f, " for %.1f s", (double)most / 1e9);
    if (!*r->in && *r->silence) fprintf(f, " (%s)", r->silence);
    else if (!*r->in && *r->after) fprintf(f, " (after %s)", r->after);
    if (*r->call) fprintf(f, ", at %s", r->call);
    if (r->in_collective && waits_for) fprintf(f, ", and wait%s for %s", count == 1 ? "s" : "", waits_for);
}

/* 0: the others wait for it; 1: it waits in a collective; 2: it ended since another rank was gone. */
static int pass_of(const struct kp_stuckrank *r) { return r->is_follower ? 2 : r->in_collective; }

/* Returns how many ranks the others wait for. */
static size_t waited_count(const struct kp_stuck *s, long *rank)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        if (is_latest(s, i) && pass_of(&s->of[i]) == 0) *rank = s->of[i].rank, count++;
    if (count != 1) *rank = -1;
    return count;
}

static void states_put(FILE *f, const struct kp_stuck *s, size_t waited)
{
    bool *const told = kp_kineto_zeros(s->count, sizeof *told);
    size_t states = 0;
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < s->count; i++) {
            if (told[i] || !is_latest(s, i) || pass_of(&s->of[i]) != pass) continue;
            if (states++ == STATES_SHOWN) fputs("; others are elsewhere", f);
            if (states > STATES_SHOWN) continue;
            if (states > 1) fputs("; ", f);
            ranks_put(f, s, i, told, waited > 1 ? "them" : waited ? "it" : NULL);
        }
    }
    free(told);
}

/* Batches of the steps that both ranks have. */
static long batches_between(const struct kp_stuckrank *r, long first, long last)
{
    long count = 0;
    for (long step = first; step <= last; step++) count += r->batches[step - r->first_step];
    return count;
}

/* "; rank 1 took 2 batches more than rank 0 in steps 1 to 97": such a rank skipped some, or got more of the data. */
static void batches_put(FILE *f, const struct kp_stuck *s)
{
    const struct kp_stuckrank *most = NULL, *least = NULL;
    long first = 0, last = LONG_MAX, most_count = 0, least_count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct kp_stuckrank *const r = &s->of[i];
        if (!is_latest(s, i) || !r->steps) continue;
        if (r->first_step > first) first = r->first_step;
        if (r->first_step + (long)r->steps - 1 < last) last = r->first_step + (long)r->steps - 1;
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct kp_stuckrank *const r = &s->of[i];
        if (!is_latest(s, i) || !r->steps) continue;
        const long count = batches_between(r, first, last);
        if (!most || count > most_count) most = r, most_count = count;
        if (!least || count < least_count) least = r, least_count = count;
    }
    if (most_count == least_count || !least_count) return;
    fprintf(f, "; rank %ld took %ld batch%s more than rank %ld in steps %ld to %ld", most->rank,
            most_count - least_count, most_count - least_count == 1 ? "" : "es", least->rank, first, last);
}

static void next_put(struct kp_stuck_told *out, const struct kp_stuck *s)
{
    if (s->deaf)
        snprintf(out->next, sizeof out->next,
                 "It was started without --control, so `kprof hang` cannot ask it: `py-spy dump --pid %lld` can.",
                 (long long)s->deaf);
    else if (s->is_running)
        snprintf(out->next, sizeof out->next,
                 "`kprof hang %s` says who waits for whom, and at which line each thread is.", s->folder);
    else if (s->is_early)
        snprintf(out->next, sizeof out->next, "It runs no more: `kprof why %s` says how it ended%s.", s->folder,
                 *s->stood ? ", `kprof hang` where its threads were" : "");
    else if (*s->stood)
        snprintf(out->next, sizeof out->next, "`kprof hang %s` says at which line each thread was.", s->folder);
}

bool kp_stuck_tell(struct kp_stuck_told *out, const struct kp_stuck *s)
{
    bool stands = false, has_stood = false;
    for (size_t i = 0; i < s->count; i++) {
        stands |= (s->of[i].is_stuck || s->of[i].has_stood) && is_latest(s, i);
        has_stood |= s->of[i].has_stood && is_latest(s, i);
    }
    char *text = NULL;
    size_t length = 0;
    FILE *const f = stands ? open_memstream(&text, &length) : NULL;
    *out = (struct kp_stuck_told){.what = ""};
    if (!stands) quiet_put(out, s);
    if (!f) return false;
    const size_t waited = waited_count(s, &out->rank);
    if (has_stood) fputs(s->stood, f); /* it says the line of each as well */
    else states_put(f, s, waited);
    if (s->deaf) fprintf(f, "; its main thread %s, and no thread of it computes", s->waits);
    batches_put(f, s);
    fclose(f);
    snprintf(out->what, sizeof out->what, "%s", text);
    out->stands = true;
    free(text);
    next_put(out, s);
    return true;
}

void kp_stuck_put(FILE *out, const struct kp_stuck_told *told)
{
    if (!*told->what) return;
    fprintf(out, "%-9s%s\n", told->stands ? "STUCK" : "silent", told->what);
    if (*told->next) kp_plain_fmt(out, "         %s\n", told->next);
}

void kp_stuck_drop(struct kp_stuck *s, size_t count)
{
    while (s->count > count) free(s->of[--s->count].batches);
}

void kp_stuck_fini(struct kp_stuck *s)
{
    kp_stuck_drop(s, 0);
    free(s->of);
    *s = (struct kp_stuck){0};
}
