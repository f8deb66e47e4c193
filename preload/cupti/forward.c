// SPDX-License-Identifier: Apache-2.0
/*
 * forward.c - passes buffers between CUPTI and the program
 *
 * Called by: buffer.c (buffer requested, buffer complete); tee.c (arming, disarmed); helper.c
 * Owns:      whose buffers CUPTI gets, and whether they may hold records that the program did not ask for
 * Locks:     none. CUPTI and the client are called with nothing held.
 * Memory:    none
 * On fail:   buffer.c hands out a buffer of the pool
 * Safe in:   signal handlers no
 */
#include <string.h>

#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

static _Atomic bool was_armed; /* a buffer may hold more than the client asked for */
/* From arming to disarmed: CUPTI was told that buffers are zeroed, so it gets only ours. */
static _Atomic bool are_ours_filled;

uint64_t kp_forward_timestamp(void)
{
    uint64_t now = 0;
    return kp_cupti.get_timestamp && kp_cupti.get_timestamp(&now) == 0 ? now : 0;
}

bool kp_forward_request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    bool must_be_zero = kp_load_acquire(&are_ours_filled); /* pairs with: kp_forward_arming, kp_forward_disarmed */
    if (must_be_zero && kp_cupti_may_call()) return false;
    if (!kp_client_request(buffer, bytes, max_records)) return false;
    if (must_be_zero) memset(*buffer, 0, *bytes);
    return true;
}

void kp_forward_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes,
                         bool is_ours)
{
    if (is_ours) kp_client_copy(buffer, valid_bytes, kp_domain_time());
    else kp_client_complete(context, stream, buffer, bytes, valid_bytes, kp_load_relaxed(&was_armed));
}

void kp_forward_arming(void)
{
    kp_store_relaxed(&was_armed, true);
    kp_store_release(&are_ours_filled, true); /* pairs with: kp_forward_request */
}

void kp_forward_disarmed(void) { kp_store_release(&are_ours_filled, false); /* pairs with: kp_forward_request */ }

bool kp_forward_was_armed(void) { return kp_load_relaxed(&was_armed); }

void kp_forward_hide_this_thread(void)
{
    kp_client_hide_this_thread();
    kp_store_relaxed(&was_armed, true); /* the client's own buffers may hold our calls from here on */
}
