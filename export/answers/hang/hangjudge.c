// SPDX-License-Identifier: Apache-2.0
/*
 * hangjudge.c - who waits for whom: ranks in a collective, and those that have not come
 *
 * A rank that is gone, or that a signal has stopped, is the cause before anything else. Ranks in a collective wait for
 * those that are in none. If all are in one, but in different ones, the fewer have called another than the rest. If all
 * are in one of one name, their lines show whether it is one call, and how often each rank has called it. No rank is
 * accused by its number of calls, as ranks of other process groups have other numbers.
 */
#include "export/answers/hang/hangjudge.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/answers/hang/hangchild.h"
#include "export/answers/hang/hangidle.h"
#include "export/read/facts/comm/commkinds.h"
#include "export/read/frames/ownline.h"
#include "export/read/kineto/kineto.h"
#include "export/show/plain.h"

/* ---- where a process stands ---- */

/* A rank that waits for others to join the job has begun no collective yet; its frames tell. */
static bool is_joining(const struct kp_hang_thread *t)
{
    for (size_t i = 0; t && i < t->frame_count; i++)
        if (strcmp(t->frames[i].function, "init_process_group") == 0) return true;
    return false;
}

void kp_hang_spot(struct kp_hang_spot *out, const struct kp_hang_process *p)
{
    *out = (struct kp_hang_spot){.thread = kp_hang_main(p)};
    if (!out->thread && p->thread_count) out->thread = &p->threads[0];
    if (out->thread) out->frame = kp_hang_own(out->thread);
    for (size_t i = 0; i < p->collective_count; i++) {
        const struct kp_hang_collective *const c = &p->collectives[i];
        if (c->begun > c->ended && (!out->within || c->since_ms > out->within->since_ms)) out->within = c;
    }
    static const struct kp_hang_collective joining = {.name = "init_process_group", .begun = 1};
    if (!out->within && is_joining(out->thread)) out->within = &joining;
}

void kp_hang_spot_put(FILE *out, const struct kp_hang_process *p, const struct kp_hang_spot *s)
{
    if (p->state == KP_HANG_SILENT) fputs("does not answer", out);
    if (p->state == KP_HANG_STOPPED) fputs("stopped by a signal", out);
    if (p->state == KP_HANG_GONE) fputs("gone", out);
    if (s->frame) kp_hang_frame_put(out, s->frame);
    if (!s->thread || !*s->thread->call.words) return;
    if (s->frame) fputs(", ", out);
    kp_hang_call_put(out, &s->thread->call);
}

bool kp_hang_is_at_exit(const struct kp_hang_thread *main)
{
    static const char *const waits[] = {"_shutdown", "_python_exit", "_exit_function"}; /* threading and its like */
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (size_t k = 0; k < main->frame_count; k++)
            if (strcmp(main->frames[k].function, waits[i]) == 0 && !kp_ownline_is_file(NULL, main->frames[k].file))
                return true;
    return false;
}

/* "; process 42 waits at its exit for thread 44, which is at upload.py:7 send, sleeps" */
static void exit_say(FILE *out, const struct kp_hang_process *p, const struct kp_hang_spot *s)
{
    const struct kp_hang_thread *found = NULL;
    if (!s->thread || !kp_hang_is_at_exit(s->thread)) return;
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct kp_hang_thread *const t = &p->threads[i];
        const struct kp_hang_frame *const own = kp_hang_own(t);
        const bool is_better = !found || (own && kp_ownline_is_file(NULL, own->file) && found->frame_count);
        if (t != s->thread && own && is_better) found = t;
    }
    if (!found) return;
    const struct kp_hang_spot at = {.thread = found, .frame = kp_hang_own(found)};
    kp_plain_fmt(out, "; it waits at its exit for thread %ld, which is at ", found->tid);
    kp_hang_spot_put(out, p, &at);
}

/* "; thread 44 is at upload.py:7 send, sleeps": the one that has what the main thread waits for */
static void holder_say(FILE *out, const struct kp_hang_process *p, const struct kp_hang_spot *s)
{
    char name[32];
    for (size_t i = 0; s->thread && i < p->thread_count; i++) {
        const struct kp_hang_spot at = {.thread = &p->threads[i], .frame = kp_hang_own(&p->threads[i])};
        snprintf(name, sizeof name, "thread %ld", p->threads[i].tid);
        if (strcmp(s->thread->call.on, name) != 0) continue;
        fprintf(out, "; %s %s", name, at.frame ? "is at " : "");
        kp_hang_spot_put(out, p, &at);
    }
}

/* ---- names of ranks ---- */

static size_t count_of(const struct kp_hang *h, const bool *of)
{
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++) count += of[i];
    return count;
}

void kp_hang_ranks_put(FILE *out, const struct kp_hang *h, const bool *of)
{
    const size_t count = count_of(h, of);
    bool is_first = true;
    for (size_t i = 0; i < h->count; i++) {
        const struct kp_hang_process *const p = &h->of[i];
        if (!of[i]) continue;
        const bool is_rank = p->rank >= 0;
        size_t last = i;
        while (is_rank && last + 1 < h->count && of[last + 1] && h->of[last + 1].rank == h->of[last].rank + 1) last++;
        if (is_first) fprintf(out, "%s%s ", is_rank ? "rank" : "process", count == 1 ? "" : is_rank ? "s" : "es");
        fprintf(out, "%s%ld", is_first ? "" : ",", is_rank ? p->rank : p->pid);
        if (last > i) fprintf(out, "-%ld", h->of[last].rank);
        is_first = false;
        i = last;
    }
}

/* ---- the verdict ---- */

struct judging {
    const struct kp_hang *hang;
    struct kp_hang_verdict *out;
    struct kp_hang_spot *spots;
    bool *within, *others;
    FILE *text;
};

const char *kp_hang_kind_word(enum kp_hang_kind kind)
{
    static const char *const words[] = {"nobody", "goes on",  "gone",   "stopped",
                                        "absent", "mismatch", "inside", "stands"};
    return words[kind];
}

static bool has_ended_more(const struct kp_hang_process *now, const struct kp_hang_process *before)
{
    if (now->step > before->step) return true;
    for (size_t i = 0; i < now->collective_count; i++)
        for (size_t k = 0; k < before->collective_count; k++)
            if (strcmp(now->collectives[i].name, before->collectives[k].name) == 0 &&
                now->collectives[i].ended > before->collectives[k].ended)
                return true;
    return false;
}

static bool goes_on(const struct kp_hang *h, const struct kp_hang *before)
{
    bool does = false;
    for (size_t i = 0; before && i < h->count; i++) {
        const struct kp_hang_process *const was = kp_hang_find(before, h->of[i].host, h->of[i].pid);
        does |= was && has_ended_more(&h->of[i], was);
    }
    return does;
}

/* Accuses the processes in that state. */
static bool accuse_state(struct judging *j, enum kp_hang_state state)
{
    bool is_any = false;
    for (size_t i = 0; i < j->hang->count; i++) is_any |= j->out->accused[i] = j->hang->of[i].state == state;
    return is_any;
}

/* Among those in a collective, the ones that are in another than most. False: all are in one. */
static bool accuse_odd(struct judging *j)
{
    const struct kp_hang *const h = j->hang;
    size_t most = 0, best = 0, within = 0;
    const char *usual = NULL;
    for (size_t i = 0; i < h->count; i++) {
        size_t same = 0;
        if (!j->within[i]) continue;
        within++;
        for (size_t k = 0; k < h->count; k++)
            same += j->within[k] && strcmp(j->spots[k].within->name, j->spots[i].within->name) == 0;
        if (same > most) {
            most = same;
            usual = j->spots[i].within->name;
            best = same;
        }
    }
    if (!usual || best == within) return false;
    for (size_t i = 0; i < h->count; i++)
        j->out->accused[i] = j->within[i] && (2 * best <= within || strcmp(j->spots[i].within->name, usual) != 0);
    return true;
}

static size_t index_of(const bool *of, size_t count)
{
    size_t i = 0;
    while (i < count && !of[i]) i++;
    return i < count ? i : 0;
}

/* "; ranks 0-2 wait in gloo:all_reduce for it" */
static void waiters_put(struct judging *j, const char *before)
{
    const struct kp_hang *const h = j->hang;
    size_t waiters = 0;
    for (size_t i = 0; i < h->count; i++) waiters += j->others[i] = j->within[i] && !j->out->accused[i];
    if (!waiters) return;
    fputs(before, j->text);
    kp_hang_ranks_put(j->text, h, j->others);
    kp_plain_fmt(j->text, " wait%s in %s", waiters == 1 ? "s" : "",
                 j->spots[index_of(j->others, h->count)].within->name);
}

/* "rank 3 (reader.py:88 fetch, sleeps)", by where they stand */
static void accused_put(struct judging *j, const char *which)
{
    const struct kp_hang *const h = j->hang;
    const size_t count = count_of(h, j->out->accused), first = index_of(j->out->accused, h->count);
    const struct kp_hang_spot *const s = &j->spots[first];
    kp_hang_ranks_put(j->text, h, j->out->accused);
    if (!s->frame && !s->thread && h->of[first].state == KP_HANG_TOLD) return;
    if (count > 1)
        kp_plain_fmt(j->text, "; %s %ld", h->of[first].rank >= 0 ? "rank" : "process",
                     h->of[first].rank >= 0 ? h->of[first].rank : h->of[first].pid);
    fputs(which, j->text);
    if (s->frame) fputs("is at ", j->text);
    kp_hang_spot_put(j->text, &h->of[first], s);
    exit_say(j->text, &h->of[first], s);
    holder_say(j->text, &h->of[first], s);
    kp_hang_child_say(j->text, &h->of[first]);
    kp_hang_idle_say(j->text, &h->of[first]);
}

static void plainly_put(struct judging *j, const char *is, const char *are)
{
    kp_hang_ranks_put(j->text, j->hang, j->out->accused);
    fputs(count_of(j->hang, j->out->accused) == 1 ? is : are, j->text);
    waiters_put(j, "; ");
}

static void mismatch_put(struct judging *j)
{
    bool is_first = true;
    for (size_t i = 0; i < j->hang->count; i++) {
        if (!j->within[i] || !j->out->accused[i]) continue;
        kp_plain_fmt(j->text, "%srank %ld is in %s at ", is_first ? "" : "; ", j->hang->of[i].rank,
                     j->spots[i].within->name);
        kp_hang_spot_put(j->text, &j->hang->of[i], &j->spots[i]);
        is_first = false;
    }
    waiters_put(j, ", while ");
    fputs(": ranks call collectives in different orders", j->text);
}

/* In what ranks differ that are in a collective of one name. */
struct difference {
    const char *name;
    int (*compare)(const struct kp_hang_spot *a, const struct kp_hang_spot *b); /* 0: same, 1: other, -1: not known */
    void (*put)(FILE *out, const struct kp_hang_spot *spot);
};

static int line_compare(const struct kp_hang_spot *a, const struct kp_hang_spot *b)
{
    if (!a->frame || !b->frame) return -1;
    return a->frame->line != b->frame->line || strcmp(a->frame->file, b->frame->file) != 0;
}

static void line_put(FILE *out, const struct kp_hang_spot *s)
{
    kp_plain_fmt(out, " (%s:%ld %s)", kp_path_base(s->frame->file), s->frame->line, s->frame->function);
}

/* In a group that is in step each rank calls it as often. Messages between two ranks are no such calls. */
static int number_compare(const struct kp_hang_spot *a, const struct kp_hang_spot *b)
{
    return kp_commkinds_is_stage(a->within->name) ? -1 : a->within->begun != b->within->begun;
}

static void number_put(FILE *out, const struct kp_hang_spot *s) { fprintf(out, " (no. %ld)", s->within->begun); }

static const struct difference differences[] = {{", at different lines: ", line_compare, line_put},
                                                {", in different calls of it: ", number_compare, number_put}};

/* "ranks 0,2 (train.py:9 sync); ranks 1,3 (train.py:12 sync)". False: they do not differ in that. */
static bool difference_put(struct judging *j, const struct difference *d)
{
    const struct kp_hang *const h = j->hang;
    bool *const told = kp_kineto_zeros(h->count + 1, sizeof *told), differ = false;
    const char *before = d->name;
    for (size_t i = 0; i < h->count; i++)
        for (size_t k = 0; k < i; k++) differ |= d->compare(&j->spots[i], &j->spots[k]) > 0;
    for (size_t i = 0; differ && i < h->count; i++) {
        if (told[i] || d->compare(&j->spots[i], &j->spots[i]) < 0) continue;
        for (size_t k = 0; k < h->count; k++) told[k] |= j->others[k] = d->compare(&j->spots[i], &j->spots[k]) == 0;
        fputs(before, j->text);
        kp_hang_ranks_put(j->text, h, j->others);
        d->put(j->text, &j->spots[i]);
        before = "; ";
    }
    free(told);
    return differ;
}

static void inside_put(struct judging *j)
{
    bool differ = false;
    memset(j->out->accused, 0, j->hang->count);
    fputs("all ranks are in the collective", j->text);
    waiters_put(j, ": ");
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) differ |= difference_put(j, &differences[i]);
    if (differ) fputs(". These calls, or their process groups, may not belong together", j->text);
}

static enum kp_hang_kind kind_find(struct judging *j, const struct kp_hang *before)
{
    const struct kp_hang *const h = j->hang;
    size_t within = 0;
    for (size_t i = 0; i < h->count; i++) {
        kp_hang_spot(&j->spots[i], &h->of[i]);
        within += j->within[i] = h->of[i].state == KP_HANG_TOLD && j->spots[i].within;
    }
    if (!h->count) return KP_HANG_NOBODY;
    if (accuse_state(j, KP_HANG_GONE)) return KP_HANG_LOST;
    if (accuse_state(j, KP_HANG_STOPPED)) return KP_HANG_HALTED;
    if (goes_on(h, before)) return KP_HANG_GOES_ON;
    for (size_t i = 0; i < h->count; i++) j->out->accused[i] = !j->within[i];
    if (within && within < h->count) return KP_HANG_ABSENT;
    if (!within) return KP_HANG_STANDS;
    return accuse_odd(j) ? KP_HANG_MISMATCH : KP_HANG_INSIDE;
}

static void verdict_put(struct judging *j)
{
    switch (j->out->kind) {
    case KP_HANG_NOBODY: fputs("no process of this job is known here", j->text); break;
    case KP_HANG_GOES_ON: fprintf(j->text, "the job goes on: step %ld", j->hang->of[0].step); break;
    case KP_HANG_LOST:
        plainly_put(j, " is gone: its process is no more", " are gone: their processes are no more");
        break;
    case KP_HANG_HALTED: plainly_put(j, " is stopped by a signal", " are stopped by a signal"); break;
    case KP_HANG_MISMATCH: mismatch_put(j); break;
    case KP_HANG_INSIDE: inside_put(j); break;
    case KP_HANG_ABSENT:
        waiters_put(j, "");
        fputs(" for ", j->text);
        accused_put(j, ", which ");
        break;
    case KP_HANG_STANDS: accused_put(j, " "); break;
    }
}

void kp_hang_judge(struct kp_hang_verdict *out, const struct kp_hang *h, const struct kp_hang *before)
{
    char *text = NULL;
    size_t bytes = 0;
    struct judging j = {.hang = h, .out = out};
    j.spots = kp_kineto_zeros(h->count + 1, sizeof *j.spots);
    j.within = kp_kineto_zeros(h->count + 1, sizeof *j.within);
    j.others = kp_kineto_zeros(h->count + 1, sizeof *j.others);
    out->accused = kp_kineto_zeros(h->count + 1, sizeof *out->accused);
    out->kind = kind_find(&j, before);
    out->text[0] = '\0';
    j.text = open_memstream(&text, &bytes);
    if (j.text) {
        verdict_put(&j);
        fclose(j.text);
        snprintf(out->text, sizeof out->text, "%s", text);
        free(text);
    }
    free(j.spots);
    free(j.within);
    free(j.others);
}

void kp_hang_verdict_fini(struct kp_hang_verdict *v)
{
    free(v->accused);
    v->accused = NULL;
}
