// SPDX-License-Identifier: Apache-2.0
/* tee_sessions.h - launches by either side of a tee, the records that each must have, a fresh start for each test */
#pragma once

#include <string.h>

#include "test/unit/cupti/tee_sides.h"

static inline void launch(int n)
{
    while (n-- > 0) fake_launch(false);
}

static inline uint32_t count_of(const struct seen *s, uint32_t kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) n += s->kind[i] == kind;
    return n;
}

/* Exactly the launches from..to (correlation ids), each with its call and its kernel. */
static inline void must_be(const struct seen *s, uint32_t from, uint32_t to)
{
    for (uint32_t kind = KERNEL;; kind = RUNTIME) {
        uint32_t expect = from;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->kind[i] == kind) assert_int_equal(s->correlation[i], expect++);
        assert_int_equal(expect, to + 1);
        if (kind == RUNTIME) return;
    }
}

static int reset(void **unused)
{
    (void)unused;
    if (state == KP_CUPTI_STATE_ARMED) disarm();
    for (uint32_t kind = 1; kind < 64; kind++) kp_client_disable(kind, 0);
    kp_client_hand_over();
    kp_client_forget();
    (void)kp_client_take_dropped();
    fake = (struct fake){.now = 1000};
    memset(&ours, 0, sizeof ours);
    memset(&theirs, 0, sizeof theirs);
    memset(pool_out, 0, sizeof pool_out);
    memset(client_state, 0, sizeof client_state);
    client_bytes = 1 << 14;
    client_refuses = 0;
    our_kinds = our_dropped = 0;
    our_noise = -1;
    has_counter = false;
    quiet_anew = 0;
    finalized_told = clock_told = aside = back = flushed_back = queries_told = 0;
    state = KP_CUPTI_STATE_FOUND;
    return 0;
}

static inline uint64_t other_clock(void) { return 5 + fake.now / 100; }

static int set_up(void **unused)
{
    (void)unused;
    kp_cupti.get_timestamp = cupti_get_timestamp;
    kp_cupti.register_callbacks = cupti_register;
    kp_cupti.enable = cupti_enable;
    kp_cupti.disable = cupti_disable;
    kp_cupti.flush_all = cupti_flush;
    kp_cupti.get_num_dropped = cupti_dropped;
    kp_cupti.enable_runtime_api = cupti_runtime_api;
    kp_cupti.enable_driver_api = cupti_driver_api;
    kp_cupti.set_attribute = cupti_attribute;
    kp_cupti.register_timestamp_callback = cupti_clock;
    kp_cupti.finalize = cupti_finalize;
    kp_tee_start(KP_CUPTI_TEE);
    return program_count == 10 ? 0 : -1;
}
