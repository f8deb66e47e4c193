// SPDX-License-Identifier: Apache-2.0
/*
 * heapleaks.c - what each step left on the host's heap, by call stack: blocks taken in it, and kept
 */
#include <stdlib.h>

#include "export/answers/heapview/heapview.h"
#include "collector/base/kp_order.h"

KP_ORDER2(by_site, struct kp_profile_leak, site, step)

struct kp_profile_leak *kp_profile_leaks(const struct kp_profile *p, size_t from, size_t to, size_t *n)
{
    struct kp_profile_leak *of = NULL;
    size_t cap = 0, all = 0;
    for (size_t step = from; step < to && step < p->steps_n; step++)
        for (size_t i = p->steps[step].sizes; i < p->steps[step].sizes_end; i++) {
            const struct kp_profile_size *size = &p->sizes[i];
            if (!size->kept) continue;
            *KP_KINETO_NEXT(of, all, cap) =
                (struct kp_profile_leak){size->site, (uint32_t)step, size->kept, size->kept * size->bytes};
        }
    *n = 0;
    if (all) qsort(of, all, sizeof *of, by_site);
    for (size_t i = 0; i < all; i++) { /* blocks of several sizes */
        if (*n && by_site(&of[*n - 1], &of[i]) == 0) {
            of[*n - 1].blocks += of[i].blocks;
            of[*n - 1].bytes += of[i].bytes;
        } else of[(*n)++] = of[i];
    }
    return of;
}

bool kp_profile_is_startup(const struct kp_profile *p, size_t from, size_t to, size_t step)
{
    return step == 0 && to - from > 1 && p->steps_n && p->steps[0].number == 0;
}

bool kp_profile_is_arena_growth(const struct kp_profile *p, size_t from, size_t to, const struct kp_profile_arena *a)
{
    return !a->is_unmapped && a->step >= from && a->step < to && !kp_profile_is_startup(p, from, to, a->step);
}
