// SPDX-License-Identifier: Apache-2.0
/*
 * guessadvice.c - traces of guessed steps, from before a training: told once, behind the training's
 *
 * What runs before the first step by an optimizer, as an evaluation, has steps of its own: calls of a model, batches.
 * The schedule starts over with the optimizer, so a run leaves traces of both.
 */
#include "export/answers/runadvice/guessadvice.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/adviceprint.h"
#include "export/show/say.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"

struct kp_guessadvice {
    int64_t pid;
    char *label, *said, *critical; /* critical: its findings of that kind, "" for none */
    const char *each;
    size_t steps;
    double ns;
    bool is_told;
};

static const char *each_of(const struct kp_kineto *trace)
{
    return kp_kineto_fact(trace, "kprof.phase") ? NULL : kp_advice_guesses(trace);
}

/* Of a GPU's events it is the number of the GPU. */
static int64_t pid_of(const struct kp_kineto *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind != KP_KINETO_GPU) return trace->events[i].pid;
    return 0;
}

bool kp_guessadvices_look(struct kp_guessadvices *all, const struct kp_kineto *trace)
{
    const char *const source = kp_kineto_fact(trace, "kprof.step_source");
    if (each_of(trace)) return true;
    if (source && strcmp(source, "optimizer") == 0)
        *KP_KINETO_NEXT(all->trained, all->trained_count, all->trained_capacity) = pid_of(trace);
    return false;
}

static char *critical_text(const struct kp_advice *a)
{
    char *text = NULL;
    size_t bytes;
    FILE *const out = open_memstream(&text, &bytes);
    for (size_t i = 0; out && i < a->count; i++)
        if (a->findings[i].is_critical) kp_adviceprint_finding(out, &a->findings[i], a->steps);
    if (out) fclose(out);
    return text;
}

void kp_guessadvices_take(struct kp_guessadvices *all, const struct kp_advised *a, const char *label, char *said)
{
    *KP_KINETO_NEXT(all->of, all->count, all->capacity) = (struct kp_guessadvice){
        .pid = pid_of(a->trace),
        .label = strdup(label),
        .said = said,
        .critical = critical_text(&a->advice),
        .each = each_of(a->trace),
        .steps = a->advice.steps,
        .ns = a->advice.step_ns * (double)a->advice.steps,
    };
}

static bool is_trained(const struct kp_guessadvices *all, int64_t pid)
{
    for (size_t i = 0; i < all->trained_count; i++)
        if (all->trained[i] == pid) return true;
    return false;
}

/* All windows of one process, once, with what is critical in one of them. */
static void windows_print(struct kp_guessadvices *all, size_t first)
{
    size_t windows = 0, steps = 0, critical = 0;
    double ns = 0;
    for (size_t i = first; i < all->count; i++) {
        if (all->of[i].pid != all->of[first].pid) continue;
        windows++;
        steps += all->of[i].steps;
        ns += all->of[i].ns;
        critical += all->of[i].critical && *all->of[i].critical;
        all->of[i].is_told = true;
    }
    kp_cli_say(stdout, "%s%s", all->of[first].label, windows > 1 ? " and others" : "");
    printf("guess    before the training (an evaluation, or a warm-up) the steps are %s: %zu of %.3f ms in all; %s\n",
           all->of[first].each, steps, ns / 1e6,
           critical ? "what is critical in them:" : "nothing is critical in them");
    for (size_t i = first; i < all->count; i++) {
        const struct kp_guessadvice *const g = &all->of[i];
        if (g->pid != all->of[first].pid || !g->critical || !*g->critical) continue;
        if (windows > 1) kp_cli_say(stdout, "%s", g->label);
        fputs(g->critical, stdout);
    }
}

void kp_guessadvices_print(struct kp_guessadvices *all, bool json)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->of[i].is_told) continue;
        if (!json && is_trained(all, all->of[i].pid)) windows_print(all, i);
        else if (all->of[i].said) fputs(all->of[i].said, stdout);
    }
    for (size_t i = 0; i < all->count; i++) {
        free(all->of[i].label);
        free(all->of[i].said);
        free(all->of[i].critical);
    }
    free(all->of);
    free(all->trained);
    *all = (struct kp_guessadvices){0};
}
