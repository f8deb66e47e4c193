// SPDX-License-Identifier: Apache-2.0
/*
 * enabled.c - the kinds of CUPTI records that we have enabled, for both sides to read
 *
 * Called by: control.c, which changes them; buffer.c, filter.c and tee.c on any thread, which ask
 * Owns:      the bits of our enabled kinds; how many records CUPTI dropped
 * Locks:     none. Each side changes its own word and then reads the other's (tee.c), so both words are seq_cst.
 *
 * client.c has what the program wants. control.c and tee.c read both files, and do not call each other about kinds.
 */
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

static _Atomic uint64_t enabled_kinds; /* a bit each */
static _Atomic uint64_t dropped;
static _Atomic bool are_queries_off; /* CUPTI was told to leave out queries that were answered "not ready" */

void kp_kinds_add(uint32_t kind) { atomic_fetch_or(&enabled_kinds, UINT64_C(1) << kind); }

bool kp_kinds_remove(uint32_t kind)
{
    const uint64_t bit = UINT64_C(1) << kind;
    return atomic_fetch_and(&enabled_kinds, ~bit) & bit;
}

void kp_kinds_forget(void)
{
    atomic_store(&enabled_kinds, 0);
    kp_store_relaxed(&are_queries_off, false);
}

bool kp_cupti_wants(uint32_t kind)
{
    return kind < KP_CUPTI_KINDS && atomic_load(&enabled_kinds) >> kind & 1 && kp_cupti_may_call();
}

bool kp_cupti_has_calls(void) { return atomic_load(&enabled_kinds) >> KP_CUPTI_RUNTIME & 1; }

/* A CUPTI that cannot enable single calls also records noise, which lane.c drops. */
bool kp_cupti_wants_call(bool is_driver, uint32_t cbid)
{
    return cbid < KP_CALLS && !(kp_calls[is_driver][cbid].what & KP_CALL_NOISE) &&
           atomic_load(&enabled_kinds) >> (is_driver ? KP_CUPTI_DRIVER : KP_CUPTI_RUNTIME) & 1 && kp_cupti_may_call();
}

/* ---- dropped records ---- */

uint64_t kp_cupti_dropped(void) { return kp_load_relaxed(&dropped); }

void kp_kinds_add_dropped(uint64_t records) { kp_add_relaxed(&dropped, records); }

void kp_cupti_dropped_more(uint64_t records)
{
    if (kp_cupti_state() == KP_CUPTI_STATE_ARMED) kp_kinds_add_dropped(records);
}

/* ---- queries ---- */

void kp_kinds_set_queries_off(bool are_off)
{
    kp_store_release(&are_queries_off, are_off); /* pairs with: kp_cupti_queries_again */
}

bool kp_kinds_are_queries_off(void) { return kp_load_relaxed(&are_queries_off); }

void kp_cupti_queries_again(void)
{
    if (kp_exchange_acq_rel(&are_queries_off, 0))
        (void)kp_cupti.enable_all_sync_records(1); /* as CUPTI has it by default */
}
