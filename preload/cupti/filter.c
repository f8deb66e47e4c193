// SPDX-License-Identifier: Apache-2.0
/*
 * filter.c - calls that CUPTI records one by one: each that we or the program want, and no other
 *
 * Called by: control.c on the thread kprof-cuda, when kinds were enabled or disabled; tee.c inside the program's own
 *            Disable
 * Owns:      nothing: what is wanted is asked of kinds.c and client.c
 * Locks:     none. As with kinds (tee.c): each side changes its own word first, sets the call, and then looks once
 *            more.
 * On fail:   a call that could not be set is told, the others are set all the same
 *
 * cupti_activity.h: a single call is recorded "without using the activity kind", and a kind that is enabled or disabled
 * overrides all that was set call by call before. So what has to be set depends on what the kind of these calls went
 * through last.
 */
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { LOOKS = 4 };

static bool is_wanted(bool is_driver, uint32_t cbid)
{
    return kp_cupti_wants_call(is_driver, cbid) || kp_client_has_call(is_driver, cbid);
}

/* We keep a few driver calls and leave a few runtime calls out; the program's own choice may be any. */
static bool may_differ(bool is_driver, uint32_t cbid)
{
    const struct kp_call *call = &kp_calls[is_driver][cbid];
    return (call->name && !(call->what & KP_CALL_NOISE) == is_driver) || kp_client_chose_call(is_driver, cbid);
}

int kp_filter_apply(bool is_driver, enum kp_filter_now now, kp_filter_set_fn set)
{
    int failed = 0;
    for (uint32_t cbid = 1; cbid < KP_CALLS; cbid++) {
        bool wanted = is_wanted(is_driver, cbid), is = !wanted;
        if (!may_differ(is_driver, cbid) || (now == KP_FILTER_ALL_ON && wanted) ||
            (now == KP_FILTER_ALL_OFF && !wanted))
            continue;
        for (int look = 0; look < LOOKS && is != wanted; look++) {
            is = wanted;
            int code = set(is_driver, cbid, is);
            if (code != 0) failed = code;
            wanted = is_wanted(is_driver, cbid);
        }
    }
    return failed;
}
