// SPDX-License-Identifier: Apache-2.0
/* runadvice.c - what is advised of the traces of a run, as data until all of them are read */
#include "export/answers/runadvice/runadvice.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/advice.h"
#include "export/answers/advise/adviceprint.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/say.h"

struct kp_traceadvice {
    struct kp_advice advice; /* its texts are those of kp_runadvice.texts */
    char *label, *other, *workers;
    const char *each; /* its steps are guessed: what they are. NULL: they are not */
    int64_t pid;
    long rank; /* -1: not known */
};

static void guess_look(struct kp_runadvice *all, struct kp_traceadvice *item, const struct kp_kineto *trace)
{
    const char *const source = kp_kineto_fact(trace, "kprof.step_source");
    item->pid = kp_kineto_pid(trace);
    item->each = kp_kineto_fact(trace, "kprof.phase") ? NULL : kp_advice_guesses(trace);
    if (!item->each && source && strcmp(source, "optimizer") == 0)
        *KP_KINETO_NEXT(all->trained, all->trained_count, all->trained_capacity) = item->pid;
}

const struct kp_finding *kp_runadvice_waiting(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, KP_FINDING_COMM) == 0) return &a->findings[i];
    return NULL;
}

void kp_runadvice_add(struct kp_runadvice *all, struct kp_advised *advised, const char *label, char *other)
{
    if (!all->texts) all->texts = kp_strings_open();
    struct kp_traceadvice *const item = KP_KINETO_NEXT(all->items, all->count, all->capacity);
    *item = (struct kp_traceadvice){.advice = advised->advice,
                                    .label = strdup(label),
                                    .other = other,
                                    .workers = advised->workers,
                                    .rank = kp_rankwaits_rank(advised->trace)};
    advised->workers = NULL;
    kp_advice_keep(&item->advice, all->texts);
    all->has_communication |= kp_runadvice_waiting(&item->advice) != NULL;
    guess_look(all, item, advised->trace);
    item->each = kp_strings_keep(all->texts, item->each);
}

/* ---- what the ranks tell together ---- */

static void finding_first(struct kp_strings *texts, struct kp_advice *a, const struct kp_finding *f)
{
    kp_finding_insert(a, 0, f);
    kp_finding_keep(&a->findings[0], texts);
}

/* A rank that is late in few steps is so by what those steps have more than the others. */
static void late_place(struct kp_finding *late, const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count && 2 * late->steps < a->steps; i++) {
        const struct kp_finding *const f = &a->findings[i];
        if (strcmp(f->id, KP_FINDING_LONG) != 0 || !f->line || f->is_gap || 2 * f->steps < late->steps) continue;
        late->line = f->line;
        late->where = f->where;
        late->is_backward = f->is_backward;
        return;
    }
}

void kp_runadvice_of_rank(struct kp_advice *a, const struct kp_rankwaits *ranks, long rank, struct kp_strings *texts)
{
    struct kp_finding late;
    struct kp_rankwords words;
    kp_advice_of_rank(a, ranks, rank, texts);
    if (!kp_finding_of_late(&late, &words, ranks, rank)) return;
    late_place(&late, a);
    finding_first(texts, a, &late);
}

/* The steps of a job that stands are not judged: nothing that they tell is worth a look before it goes on. */
void kp_runadvice_settle(struct kp_runadvice *all, const struct kp_rankwaits *ranks, const struct kp_stuck_told *stands)
{
    all->stands = stands;
    for (size_t i = 0; i < all->count; i++) {
        struct kp_traceadvice *const item = &all->items[i];
        if (!stands && item->rank >= 0 && !item->other)
            kp_runadvice_of_rank(&item->advice, ranks, item->rank, all->texts);
        if (!stands) continue;
        item->advice.count = 0;
        finding_first(
            all->texts, &item->advice,
            &(struct kp_finding){.id = "stuck", .what = stands->what, .change = stands->next, .is_critical = true});
    }
}

/* ---- printing ---- */

static void item_print(const struct kp_runadvice *all, const struct kp_traceadvice *item, bool several)
{
    if (all->is_json) {
        kp_adviceprint_json(stdout, &item->advice, item->label);
        return;
    }
    if (several) kp_cli_say(stdout, "%s", item->label);
    if (item->other) {
        fputs(item->other, stdout);
        return;
    }
    if (!several) kp_adviceprint_ended(stdout, &item->advice);
    kp_adviceprint_text(stdout, &item->advice);
    if (item->workers) fputs(item->workers, stdout);
}

/* How programs ended stands above all findings, since those matter once the program runs to its end. */
static void ends_print(const struct kp_runadvice *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct kp_traceadvice *const item = &all->items[i];
        if (item->other || !item->advice.ended) continue;
        kp_cli_say(stdout, "%s", item->label);
        kp_adviceprint_ended(stdout, &item->advice);
    }
}

void kp_runadvice_print(const struct kp_runadvice *all, bool several)
{
    if (all->stands && !all->is_json) {
        kp_stuck_put(stdout, all->stands);
        ends_print(all);
        puts(KP_STUCK_UNJUDGED "; kprof report shows them.");
        return;
    }
    if (several && !all->is_json) ends_print(all);
    for (size_t i = 0; i < all->count; i++)
        if (!several || !all->items[i].each) item_print(all, &all->items[i], several);
}

static bool is_trained(const struct kp_runadvice *all, int64_t pid)
{
    for (size_t i = 0; i < all->trained_count; i++)
        if (all->trained[i] == pid) return true;
    return false;
}

static size_t critical_count(const struct kp_advice *a)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) count += a->findings[i].is_critical;
    return count;
}

static bool is_window_of(const struct kp_traceadvice *item, const struct kp_traceadvice *first)
{
    return item->each && item->pid == first->pid;
}

/* All windows of the process of item `first`. */
static void windows_print(const struct kp_runadvice *all, size_t first)
{
    const struct kp_traceadvice *const one = &all->items[first];
    size_t windows = 0, steps = 0, critical = 0;
    double ns = 0;
    for (size_t i = first; i < all->count; i++) {
        const struct kp_advice *const a = &all->items[i].advice;
        if (!is_window_of(&all->items[i], one)) continue;
        windows++;
        steps += a->steps;
        ns += a->step_ns * (double)a->steps;
        critical += critical_count(a);
    }
    kp_cli_say(stdout, "%s%s", one->label, windows > 1 ? " and others" : "");
    printf(
        "guess    before the training (an evaluation or a warm-up) the steps are %s: %zu steps, %.3g ms in all; %s\n",
        one->each, steps, ns / 1e6, critical ? "these are critical:" : "nothing in them is critical");
    for (size_t i = first; i < all->count; i++) {
        const struct kp_advice *const a = &all->items[i].advice;
        if (!is_window_of(&all->items[i], one)) continue;
        if (windows > 1 && critical_count(a)) kp_cli_say(stdout, "%s", all->items[i].label);
        for (size_t k = 0; k < a->count; k++)
            if (a->findings[k].is_critical) kp_adviceprint_finding(stdout, &a->findings[k], a->steps);
    }
}

static bool is_first_window(const struct kp_runadvice *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_window_of(&all->items[i], &all->items[at])) return false;
    return true;
}

void kp_runadvice_guesses_print(const struct kp_runadvice *all, bool several)
{
    const bool is_shown = several && (!all->stands || all->is_json);
    for (size_t i = 0; is_shown && i < all->count; i++) {
        const struct kp_traceadvice *const item = &all->items[i];
        if (!item->each) continue;
        if (all->is_json || !is_trained(all, item->pid)) item_print(all, item, several);
        else if (is_first_window(all, i)) windows_print(all, i);
    }
}

void kp_runadvice_fini(struct kp_runadvice *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->items[i].label);
        free(all->items[i].other);
        free(all->items[i].workers);
    }
    free(all->items);
    free(all->trained);
    if (all->texts) kp_strings_close(all->texts);
    *all = (struct kp_runadvice){0};
}
