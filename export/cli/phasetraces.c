// SPDX-License-Identifier: Apache-2.0
/* phasetraces.c - puts the traces of a run with phases together, one for each phase of each process */
#include "export/cli/phasetraces.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/kineto_append.h"

static struct kp_phasetrace *find(const struct kp_phasetraces *all, const char *phase, const char *rank, int64_t pid)
{
    for (size_t i = 0; i < all->count; i++) {
        struct kp_phasetrace *p = &all->of[i];
        if (p->pid == pid && strcmp(p->phase, phase) == 0 && strcmp(p->rank ? p->rank : "", rank ? rank : "") == 0)
            return p;
    }
    return NULL;
}

bool kp_phasetraces_take(struct kp_phasetraces *all, struct kp_kineto **trace)
{
    const char *phase = kp_kineto_fact(*trace, "kprof.phase"), *rank = kp_kineto_fact(*trace, "distributedInfo.rank");
    if (!phase || !(*trace)->count) return false;
    if (kp_kineto_number(*trace, "distributedInfo.world_size") < 2) rank = NULL;
    const int64_t pid = (*trace)->events[0].pid;
    struct kp_phasetrace *p = find(all, phase, rank, pid);
    if (p) {
        p->traces++;
        kp_kineto_append(p->trace, *trace);
        kp_kineto_close(*trace);
    } else {
        *KP_KINETO_NEXT(all->of, all->count, all->capacity) =
            (struct kp_phasetrace){*trace, strdup(phase), rank ? strdup(rank) : NULL, pid, 1};
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
    free(all->of);
    *all = (struct kp_phasetraces){0};
}
