// SPDX-License-Identifier: Apache-2.0
/*
 * rules.c - tells what the loaded CUPTI may be used for, by its version (collector/base/elf/cuptirule.def)
 *
 * Called by: control.c and cuda_thread.c on the thread kprof-cuda; helper.c, tee.c; cupti_source.c and
 *            cuda_inject.c (touch)
 * Owns:      the version's rules, the number of sessions
 * Locks:     none
 */
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"

#include "collector/base/elf/kp_cuptirule.h"
#include "collector/base/kp_poison.h"

static _Atomic uint32_t rules;
static _Atomic uint32_t sessions; /* how often CUPTI began to record, for us or for the program */
static _Atomic bool is_touched;   /* we armed, or tried to: no early touch is due any more */
static _Atomic bool was_finalized;

void kp_rules_set(uint32_t version)
{
    kp_store_relaxed(&rules, kp_cuptirule_all(version));
    kp_store_relaxed(&kp_lane_looks, (kp_load_relaxed(&rules) & KP_CUPTI_LOOK) != 0);
}

uint32_t kp_rules_all(void) { return kp_load_relaxed(&rules); }

/* Applies only to a CUPTI that the program has loaded, as torch does: we look for another only in a window. Releases
 * before 12.6 lack enable_allocation_source. cuptiGetVersion must not be called before the driver is up. */
bool kp_rules_want_touch(void)
{
    if (!kp_load_acquire(&kp_cupti.is_filled) || kp_cupti.enable_allocation_source)
        return false; /* pairs with: cupti_find.c */
    return !kp_load_relaxed(&is_touched) && !kp_client_is_there();
}

/* The rule that forbids arming after so many sessions; 0: none. */
static uint32_t forbidden(uint32_t before)
{
    const uint32_t all = kp_rules_all();
    const bool are_graphs = kp_graphs_are_used();
    if (all & KP_CUPTI_REFUSE) return KP_CUPTI_REFUSE;
    if (are_graphs && all & KP_CUPTI_EARLY && !before && !kp_client_is_there()) return KP_CUPTI_EARLY;
    if (are_graphs && all & KP_CUPTI_ONE_WINDOW && before) return KP_CUPTI_ONE_WINDOW;
    if (are_graphs && all & KP_CUPTI_ONCE && kp_load_relaxed(&was_finalized)) return KP_CUPTI_ONCE;
    return 0;
}

static bool tell(uint32_t rule)
{
    char why[400];
    if (!rule) return false;
    (void)kp_cuptirule_why(kp_cupti.version, rule, why, sizeof why);
    if (kp_load_relaxed(&sessions)) kp_cupti_end(why);
    else kp_cupti_refuse(why);
    return true;
}

bool kp_rules_forbid_arming(void)
{
    kp_store_relaxed(&is_touched, true);
    return tell(forbidden(kp_load_relaxed(&sessions)));
}

bool kp_rules_forbid_more(void)
{
    return kp_graphs_are_used() && forbidden(kp_load_relaxed(&sessions) - 1) == KP_CUPTI_ONE_WINDOW;
}

void kp_rules_tell_end(void) { (void)tell(KP_CUPTI_ONE_WINDOW); }

void kp_rules_session(void) { kp_add_relaxed(&sessions, 1); }

void kp_rules_finalized(void) { kp_store_relaxed(&was_finalized, true); }
