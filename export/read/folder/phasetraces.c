// SPDX-License-Identifier: Apache-2.0
/* phasetraces.c - puts the traces of a run with phases together, one for each phase of each process */
#include "export/read/folder/phasetraces.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/phasetimes.h"
#include "export/read/parse/kineto_parse.h"

/* NULL: of one process alone. */
static const char *rank_of(const struct kp_kineto *trace)
{
    return kp_kineto_number(trace, "distributedInfo.world_size") < 2 ? NULL
                                                                     : kp_kineto_fact(trace, "distributedInfo.rank");
}

static bool is_rank(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

static struct kp_phasetrace *find(const struct kp_phasetraces *all, const char *phase, const char *rank, int64_t pid)
{
    for (size_t i = 0; i < all->count; i++) {
        struct kp_phasetrace *p = &all->of[i];
        if (p->pid == pid && strcmp(p->phase, phase) == 0 && is_rank(p->rank, rank)) return p;
    }
    return NULL;
}

static struct kp_phaselast *last_find(const struct kp_phasetraces *all, const char *rank, int64_t pid)
{
    for (size_t i = 0; i < all->last_count; i++)
        if (all->last[i].pid == pid && is_rank(all->last[i].rank, rank)) return &all->last[i];
    return NULL;
}

void kp_phasetraces_look(struct kp_phasetraces *all, const struct kp_kineto *trace)
{
    struct kp_phasetimes times;
    const char *const rank = rank_of(trace);
    if (!trace->count || !kp_phasetimes_of(&times, trace)) return;
    const int64_t pid = trace->events[0].pid;
    struct kp_phaselast *last = last_find(all, rank, pid);
    if (!last) {
        last = KP_KINETO_NEXT(all->last, all->last_count, all->last_capacity);
        *last = (struct kp_phaselast){.rank = kp_kineto_copy(rank), .pid = pid};
    }
    last->traces++;
    if (times.all_ns <= last->all_ns) return;
    const char *const tail = kp_kineto_fact(trace, "kprof.phase_tail");
    free(last->text);
    free(last->tail);
    last->text = kp_kineto_copy(kp_kineto_fact(trace, "kprof.phase_times"));
    last->tail = kp_kineto_copy(tail);
    last->all_ns = times.all_ns;
}

void kp_phasetraces_settle(struct kp_phasetraces *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct kp_phaselast *const last = last_find(all, all->of[i].rank, all->of[i].pid);
        if (last && last->text && last->traces > 1) kp_phasetimes_set_last(all->of[i].trace, last->text, last->tail);
    }
}

bool kp_phasetraces_take(struct kp_phasetraces *all, struct kp_kineto **trace)
{
    const char *phase = kp_kineto_fact(*trace, "kprof.phase"), *rank = rank_of(*trace);
    if (!phase || !(*trace)->count) return false;
    const int64_t pid = (*trace)->events[0].pid;
    struct kp_phasetrace *p = find(all, phase, rank, pid);
    if (p) {
        p->traces++;
        kp_kineto_append(p->trace, *trace);
        kp_kineto_close(*trace);
    } else {
        *KP_KINETO_NEXT(all->of, all->count, all->capacity) =
            (struct kp_phasetrace){*trace, kp_kineto_copy(phase), kp_kineto_copy(rank), pid, 1};
    }
    *trace = NULL;
    return true;
}

void kp_phasetraces_fini(struct kp_phasetraces *all)
{
    for (size_t i = 0; i < all->count; i++) {
        kp_kineto_close(all->of[i].trace);
        free(all->of[i].phase);
        free(all->of[i].rank);
    }
    for (size_t i = 0; i < all->last_count; i++) {
        free(all->last[i].rank);
        free(all->last[i].text);
        free(all->last[i].tail);
    }
    free(all->last);
    free(all->of);
    *all = (struct kp_phasetraces){0};
}
