// SPDX-License-Identifier: Apache-2.0
/*
 * event_clock.c - converts the time of a CUDA event to ticks
 *
 * Called by: resolve.c, on the thread kprof-gpu, with the event's context current
 * Owns:      per context, an idle stream and its last KP_BASES reference events; the length of a tick
 * Locks:     none
 * On fail:   false: the work gets no times
 *
 * CUDA only returns the time between two events, in single precision milliseconds. So about once a second a reference
 * event is recorded in an idle stream, between two readings of the clock. A reference at most some seconds away gives
 * an event's time to a part of a microsecond, plus half the distance of those two readings (some microseconds).
 */
#include "collector/base/sys/kp_clock.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { TRIES = 3, NON_BLOCKING = 1, EVENT_DEFAULT = 0, NOT_READY = 600 };
#define WAIT_NS UINT64_C(20000000)
#define FRESH_NS UINT64_C(1000000000)

static struct kp_clock_pair first, last;

void kp_event_clock_sample(void)
{
    kp_clock_sample(&last);
    if (!first.ticks) first = last;
}

/* Measured ticks per ns; after some milliseconds exact to a few parts in a million, and better with time. */
static double ticks_per_ns(void)
{
    if (!kp_load_relaxed(&kp_clock_is_tsc)) return 1.0;
    if (last.mono_ns - first.mono_ns < 1000000) kp_clock_sample(&last);
    return last.mono_ns > first.mono_ns ? (double)(last.ticks - first.ticks) / (double)(last.mono_ns - first.mono_ns)
                                        : 0;
}

/* Records an event in the idle stream and polls it. It happened between the last "not ready" and the first "done". */
static bool take_one(struct kp_context *c, void *event, struct kp_base *out)
{
    uint64_t began_ns = kp_clock_ns(CLOCK_MONOTONIC), not_before = kp_ticks(), asked = not_before;
    int state;
    if (kp_cudrv.cuEventRecord(event, c->stream) != 0) return false;
    for (;;) {
        state = kp_cudrv.cuEventQuery(event);
        if (state != NOT_READY) break;
        not_before = asked;
        asked = kp_ticks();
        if (kp_clock_ns(CLOCK_MONOTONIC) - began_ns > WAIT_NS)
            return false; /* the device is busy: the resolver tries again later */
    }
    uint64_t apart = kp_ticks() - not_before;
    *out = (struct kp_base){.event = event, .ticks = not_before + apart / 2, .width = apart / 2};
    return state == 0;
}

bool kp_event_clock_make(struct kp_context *c)
{
    double per_ns = ticks_per_ns();
    if (c->base_count && per_ns > 0 && (double)(kp_ticks() - c->base_ticks) < per_ns * (double)FRESH_NS) return true;
    if (!c->stream && kp_cudrv.cuStreamCreate(&c->stream, NON_BLOCKING) != 0) return c->base_count > 0;
    struct kp_base *slot = &c->bases[c->base_count % KP_BASES], best = {.event = NULL};
    void *spare = slot->event;
    for (int i = 0; i < TRIES; i++) {
        struct kp_base one;
        if (!spare && kp_cudrv.cuEventCreate(&spare, EVENT_DEFAULT) != 0) break;
        if (!take_one(c, spare, &one)) break;
        if (best.event && best.width <= one.width) continue;
        spare = best.event;
        best = one;
    }
    if (spare && spare != best.event) kp_cudrv.cuEventDestroy_v2(spare);
    *slot = best;
    if (!best.event) return c->base_count > 0;
    c->base_count++;
    c->base_ticks = best.ticks;
    return true;
}

/* The reference nearest to `ticks`. */
static const struct kp_base *base_near(const struct kp_context *c, uint64_t ticks)
{
    const struct kp_base *near = NULL;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < KP_BASES; i++) {
        const struct kp_base *b = &c->bases[i];
        uint64_t apart = b->ticks > ticks ? b->ticks - ticks : ticks - b->ticks;
        if (!b->event || apart >= least) continue;
        least = apart;
        near = b;
    }
    return near;
}

bool kp_event_clock_ticks(struct kp_context *c, void *event, uint64_t not_before, uint64_t *ticks)
{
    const struct kp_base *b = base_near(c, not_before);
    double per_ms = ticks_per_ns() * 1e6;
    float ms = 0;
    if (!b || per_ms <= 0) return false;
    if (kp_cudrv.cuEventElapsedTime(&ms, b->event, event) != 0) return false;
    /* An event before its reference: CUDA answers with a negative time, and where it should not, the other way
     * round. */
    if (ms == 0.0f && b->ticks > not_before) {
        if (kp_cudrv.cuEventElapsedTime(&ms, event, b->event) != 0) return false;
        ms = -ms;
    }
    *ticks = (uint64_t)((double)b->ticks + (double)ms * per_ms);
    return true;
}
