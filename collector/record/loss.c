// SPDX-License-Identifier: Apache-2.0
/*
 * loss.c - counts dropped records by kind and reason
 *
 * Called by: any host thread inside a hook, and any other thread
 * Owns:      the table in the file's header, and one in memory for the time before the file exists
 * Safe in:   signal handlers yes; after fork yes (the child counts in memory)
 */
#include "collector/record/record_internal.h"

#include "collector/base/kp_poison.h"

typedef _Atomic uint64_t loss_row[KP_LOSS_N];

static loss_row early[KP_KIND_N];
static loss_row *_Atomic rows = early;

void kp_loss_count(enum kp_kind kind, enum kp_loss reason)
{
    loss_row *r = kp_load_acquire(&rows); /* pairs with: loss.c:kp_loss_open */
    if ((unsigned)kind < KP_KIND_N && (unsigned)reason < KP_LOSS_N) kp_add_relaxed(&r[kind][reason], 1);
}

uint64_t kp_loss_total(void)
{
    uint64_t sum = 0;
    loss_row *r = kp_load_acquire(&rows); /* pairs with: loss.c:kp_loss_open */
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++) sum += kp_load_relaxed(&r[kind][reason]);
    return sum;
}

void kp_loss_open(struct kp_file_head *head)
{
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++)
            kp_store_relaxed(&head->loss[kind][reason], kp_load_relaxed(&early[kind][reason]));
    kp_store_release(&rows, head->loss); /* pairs with: loss.c:kp_loss_count */
}

void kp_loss_forget(void)
{
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++) kp_store_relaxed(&early[kind][reason], 0);
    kp_store_relaxed(&rows, early);
}
