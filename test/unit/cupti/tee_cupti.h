// SPDX-License-Identifier: Apache-2.0
/*
 * tee_cupti.h - for the tests of tee.c: a small CUPTI with one buffer at a time, as the real one asks for it on the
 * thread that makes a record
 *
 * Calls as cupti_activity.h has it: a single one is recorded "without using the activity kind"; a kind that is enabled
 * or disabled after that overrides it.
 */
#pragma once

#include <string.h>

#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "test/support/support.h"

enum { MEMCPY2 = 22, RUNTIME = 5, DRIVER = 4, KERNEL = 10, SYNC = 38, EVENT = 36, LAUNCH = 211, GET_DEVICE = 3 };

static struct fake {
    uint64_t now, kinds;
    uint8_t runtime_on[1024], driver_on[1024];
    int requests;
    kp_cupti_request_fn request;
    kp_cupti_complete_fn complete;
    uint8_t *buffer;
    size_t bytes, used, dropped;
    uint32_t correlation;
    int finish_at_flush; /* kernels in flight end at this many flushes from now */
    size_t pending[64];
    int pending_count, flushes, registered, finalized, finalized_alone;
    uint64_t (*clock)(void), clock_kinds; /* what was enabled when it was registered last */
    int clocks;
} fake;

uint32_t kp_record_bytes(uint32_t kind)
{
    return kind == RUNTIME || kind == DRIVER ? 40
           : kind == KERNEL                  ? 208
           : kind == SYNC || kind == EVENT   ? 56
           : kind == MEMCPY2                 ? 96
                                             : 0;
}

static uint64_t stamp(void)
{
    fake.now += 10;
    return fake.clock ? fake.clock() : fake.now;
}

static void deliver(void)
{
    uint8_t *b = fake.buffer;
    fake.buffer = NULL;
    fake.pending_count = 0;
    if (b) fake.complete(NULL, 0, b, fake.bytes, fake.used);
}

static uint8_t *fake_wanted(uint32_t kind)
{
    uint32_t n = kp_record_bytes(kind);
    size_t most = 0;
    if (fake.buffer && fake.used + n > fake.bytes) deliver();
    if (!fake.buffer) {
        fake.used = 0;
        fake.requests++;
        fake.request(&fake.buffer, &fake.bytes, &most);
    }
    if (!fake.buffer) {
        fake.dropped++;
        return NULL;
    }
    uint8_t *r = fake.buffer + fake.used;
    memset(r, 0, n);
    memcpy(r, &kind, 4);
    fake.used += n;
    return r;
}

static uint8_t *fake_record(uint32_t kind) { return fake.kinds >> kind & 1 ? fake_wanted(kind) : NULL; }

static void put32(uint8_t *r, size_t at, uint32_t v) { memcpy(r + at, &v, 4); }
static void put64(uint8_t *r, size_t at, uint64_t v) { memcpy(r + at, &v, 8); }

static void fake_call(uint32_t kind, uint32_t cbid, uint32_t correlation)
{
    uint8_t *r = (kind == RUNTIME ? fake.runtime_on : fake.driver_on)[cbid] ? fake_wanted(kind) : NULL;
    uint64_t start = stamp(), end = stamp();
    if (!r) return;
    put32(r, 4, cbid);
    put64(r, 8, start);
    put64(r, 16, end);
    put32(r, 32, correlation);
}

/* cudaLaunchKernel and its kernel. in_flight: it ends at a later flush. */
static uint32_t fake_launch(bool in_flight)
{
    uint32_t correlation = ++fake.correlation;
    fake_call(RUNTIME, LAUNCH, correlation);
    uint8_t *r = fake_record(KERNEL);
    if (!r) return correlation;
    put32(r, 92, correlation);
    put64(r, 16, stamp());
    if (in_flight) fake.pending[fake.pending_count++] = (size_t)(r - fake.buffer);
    else put64(r, 24, stamp());
    return correlation;
}

static inline void fake_sync(void)
{
    uint32_t correlation = ++fake.correlation;
    uint8_t *r = fake_record(SYNC);
    if (r) put64(r, 8, stamp()), put64(r, 16, stamp()), put32(r, 24, correlation);
    r = fake.kinds >> SYNC & 1 ? (fake.kinds |= UINT64_C(1) << EVENT, fake_record(EVENT)) : NULL;
    fake.kinds &= ~(UINT64_C(1) << EVENT);
    if (r) put32(r, 4, correlation);
}

static int cupti_get_timestamp(uint64_t *out)
{
    *out = stamp();
    return 0;
}
static int cupti_register(kp_cupti_request_fn request, kp_cupti_complete_fn complete)
{
    fake.registered++;
    fake.request = request;
    fake.complete = complete;
    return request && complete ? 0 : 1;
}
static void set_kind(int kind, bool on)
{
    fake.kinds = on ? fake.kinds | UINT64_C(1) << kind : fake.kinds & ~(UINT64_C(1) << kind);
    if (kind == RUNTIME) memset(fake.runtime_on, on, sizeof fake.runtime_on);
    if (kind == DRIVER) memset(fake.driver_on, on, sizeof fake.driver_on);
}
static void (*after_enable)(void); /* what another thread does right then */
static int cupti_enable(int kind)
{
    void (*then)(void) = after_enable;
    set_kind(kind, true);
    after_enable = NULL;
    if (then) then();
    return 0;
}
static void (*before_disable)(void); /* what another thread does right before that of driver calls */
static int cupti_disable(int kind)
{
    void (*first)(void) = kind == DRIVER ? before_disable : NULL;
    if (first) before_disable = NULL, first();
    set_kind(kind, false);
    return 0;
}
static int cupti_runtime_api(uint32_t cbid, uint8_t on)
{
    fake.runtime_on[cbid] = on;
    return 0;
}
static void (*before_single)(void); /* what another thread does right then */
static int cupti_driver_api(uint32_t cbid, uint8_t on)
{
    void (*first)(void) = before_single;
    before_single = NULL;
    if (first) first();
    fake.driver_on[cbid] = on;
    return 0;
}
static int cupti_attribute(int a, size_t *n, void *v)
{
    (void)a, (void)n, (void)v;
    return 77;
}
static int cupti_clock(uint64_t (*clock)(void))
{
    fake.clock = clock, fake.clocks++, fake.clock_kinds = fake.kinds;
    return 0;
}
static bool is_control_taken;
static int cupti_finalize(void)
{
    fake.finalized_alone += is_control_taken;
    fake.kinds = 0;
    memset(fake.runtime_on, 0, sizeof fake.runtime_on);
    memset(fake.driver_on, 0, sizeof fake.driver_on);
    fake.request = NULL;
    fake.complete = NULL;
    fake.buffer = NULL;
    fake.finalized++;
    return 0;
}
static int cupti_dropped(void *c, uint32_t s, size_t *n)
{
    (void)c, (void)s;
    *n = fake.dropped;
    fake.dropped = 0;
    return 0;
}
static int cupti_flush(uint32_t forced)
{
    fake.flushes++;
    if (fake.finish_at_flush && --fake.finish_at_flush == 0) {
        for (int i = 0; i < fake.pending_count; i++) put64(fake.buffer + fake.pending[i], 24, stamp());
        fake.pending_count = 0;
    }
    if (forced || !fake.pending_count) deliver();
    return 0;
}
