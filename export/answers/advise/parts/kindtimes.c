// SPDX-License-Identifier: Apache-2.0
/* kindtimes.c - gathers times by kind: those of one place that have the same turn in their steps */
#include "export/answers/advise/parts/adviseparts.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"

enum { QUICKEST_PART = 10 };

struct place_turn { /* of a place in the step that has its last time */
    size_t step;
    uint32_t turns;
};

void kp_kindtimes_add(struct kp_kindtimes *t, uint64_t place, size_t step, double ns)
{
    struct place_turn *const turn = kp_keyindex_row(&t->places, place, &(struct place_turn){SIZE_MAX, 0}, sizeof *turn);
    if (turn->step != step) *turn = (struct place_turn){.step = step};
    const uint64_t kind = (uint64_t)t->places.last << 32 | turn->turns++;
    *KP_KINETO_NEXT(t->of, t->count, t->capacity) = (struct kp_kindtime){kind, ns, step};
}

KP_ORDER2(kind_order, struct kp_kindtime, kind, ns)

void kp_kindtimes_sort(struct kp_kindtimes *t)
{
    if (t->count) qsort(t->of, t->count, sizeof *t->of, kind_order);
}

size_t kp_kindtimes_end(const struct kp_kindtimes *t, size_t from)
{
    size_t end = from;
    while (end < t->count && t->of[end].kind == t->of[from].kind) end++;
    return end;
}

double kp_kindtimes_quickest(const struct kp_kindtime *of, size_t count) { return of[(count - 1) / QUICKEST_PART].ns; }

void kp_kindtimes_fini(struct kp_kindtimes *t)
{
    free(t->of);
    kp_keyindex_fini(&t->places);
}
