// SPDX-License-Identifier: Apache-2.0
/*
 * join.c - inputs seen on a thread that wait for the end of their op
 *
 * Inputs are written when an op starts, the op itself when it ends: between them lies everything nested in it. So a stack per
 * thread, nearly always taken from the top. An op whose record was lost leaves its inputs behind; when the stack is full the
 * older half is given up.
 */
#include "collector/read/join.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_poison.h"

#define DEPTH 512u /* nested or crossing ops with inputs; one page */

int kp_join_push(struct kp_join *j, const struct kp_rec_inputs *inputs)
{
    if (!j->open) j->open = kp_map_alloc(DEPTH * sizeof *j->open);
    if (!j->open) return -ENOMEM;
    if (j->n == DEPTH) {
        j->n = DEPTH / 2;
        memmove(j->open, j->open + DEPTH / 2, DEPTH / 2 * sizeof *j->open);
    }
    j->open[j->n++] = inputs;
    return 0;
}

const struct kp_rec_inputs *kp_join_take(struct kp_join *j, uint64_t start)
{
    const struct kp_rec_inputs *found;
    uint32_t i = j->n;
    while (i && j->open[i - 1]->start != start) i--;
    if (!i) return NULL;
    found = j->open[i - 1];
    memmove(j->open + i - 1, j->open + i, (j->n - i) * sizeof *j->open);
    j->n--;
    return found;
}

void kp_join_fini(struct kp_join *j)
{
    if (j->open) kp_map_free(j->open, DEPTH * sizeof *j->open);
    *j = (struct kp_join){0};
}
