// SPDX-License-Identifier: Apache-2.0
/*
 * loss.c - counts dropped records by kind and reason, and the time that threads waited so as to drop none
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
static _Atomic uint64_t waited_ns;

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

enum kp_loss kp_loss_most(uint64_t *count)
{
    enum kp_loss most = KP_LOSS_N;
    loss_row *r = kp_load_acquire(&rows); /* pairs with: loss.c:kp_loss_open */
    *count = 0;
    for (int reason = 0; reason < KP_LOSS_N; reason++) {
        uint64_t sum = 0;
        for (int kind = 0; kind < KP_KIND_N; kind++) sum += kp_load_relaxed(&r[kind][reason]);
        if (sum <= *count) continue;
        *count = sum;
        most = (enum kp_loss)reason;
    }
    return most;
}

void kp_loss_wait_add(uint64_t ns) { kp_add_relaxed(&waited_ns, ns); }

uint64_t kp_loss_waited_ms(void) { return kp_load_relaxed(&waited_ns) / 1000000; }

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
    kp_store_relaxed(&waited_ns, 0);
}
