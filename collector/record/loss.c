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

static _Atomic uint64_t early[KP_KIND_N][KP_LOSS_N];
static struct kp_file_head *_Atomic file; /* NULL: no file yet */
static _Atomic uint64_t waited_ns;

static _Atomic uint64_t *count_of(int kind, int reason)
{
    struct kp_file_head *head = kp_load_acquire(&file); /* pairs with: loss.c:kp_loss_open */
    if (!head) return &early[kind][reason];
    return reason < KP_LOSS_FIRST ? &head->loss[kind][reason] : &head->loss_more[kind][reason - KP_LOSS_FIRST];
}

void kp_loss_count(enum kp_kind kind, enum kp_loss reason)
{
    if ((unsigned)kind < KP_KIND_N && (unsigned)reason < KP_LOSS_N) kp_add_relaxed(count_of((int)kind, (int)reason), 1);
}

uint64_t kp_loss_total(void)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++) sum += kp_load_relaxed(count_of(kind, reason));
    return sum;
}

enum kp_loss kp_loss_most(uint64_t *count)
{
    enum kp_loss most = KP_LOSS_N;
    *count = 0;
    for (int reason = 0; reason < KP_LOSS_N; reason++) {
        uint64_t sum = 0;
        for (int kind = 0; kind < KP_KIND_N; kind++) sum += kp_load_relaxed(count_of(kind, reason));
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
    kp_store_release(&file, head); /* pairs with: loss.c:count_of */
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++)
            kp_add_relaxed(count_of(kind, reason), kp_load_relaxed(&early[kind][reason]));
}

void kp_loss_forget(void)
{
    for (int kind = 0; kind < KP_KIND_N; kind++)
        for (int reason = 0; reason < KP_LOSS_N; reason++) kp_store_relaxed(&early[kind][reason], 0);
    kp_store_relaxed(&file, NULL);
    kp_store_relaxed(&waited_ns, 0);
}
