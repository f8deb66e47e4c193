// SPDX-License-Identifier: Apache-2.0
/*
 * filter.c - enables the single calls that we or the program want recorded, and disables the others
 *
 * Called by: control.c on the thread kprof-cuda, after it enabled or disabled kinds; tee.c inside the program's Disable
 * Owns:      nothing; enabled.c and client.c know what each side wants
 * Locks:     none. As with kinds (tee.c), each side changes its own word, sets the call, and reads both words again.
 * On fail:   returns CUPTI's error, and still sets the other calls
 *
 * An Enable or Disable of the calls' kind overrides all that was set singly before. So the calls to set depend on what
 * was last done to their kind. The header says that a single call is recorded "without using the activity kind"; CUPTI
 * 13.0.85 on an H200 did not do so. So we enable the kinds and leave calls out (docs/decisions/107).
 */
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { LOOKS = 4 };

static bool is_wanted(bool is_driver, uint32_t cbid)
{
    return kp_cupti_wants_call(is_driver, cbid) || kp_client_has_call(is_driver, cbid);
}

/* Can the call differ from its kind? We leave out noise: a few runtime calls, and most of the driver's. The program
 * may choose any call. */
static bool may_differ(bool is_driver, uint32_t cbid)
{
    const struct kp_cupti_call *call = &kp_calls[is_driver][cbid];
    return (call->name && call->what & KP_CALL_NOISE) || kp_client_chose_call(is_driver, cbid);
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
