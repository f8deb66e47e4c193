// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_clock.c - samples CUPTI's clock beside ours, and tells which of CUPTI's clocks a timestamp is of
 *
 * Called by: control.c and helper.c (sample), lane.c (which clock: hot), tee.c (is it ours)
 * Owns:      the last sample of the two newest domains
 * Locks:     none; the timestamps and the newest domain's number are atomic
 *
 * If there is no torch we register no timestamp callback: it would replace another tool's, and CUPTI gives stale times
 * with it after an idle period. With torch we register the processor's counter before the first Enable. torch.profiler
 * registers that counter at each start. CUPTI up to 13.2 keeps the clock of the first Enable for GPU work
 * (pytorch#190346). It also spoils a record at each later registration (pytorch#192021). Since ours came first, tee.c
 * need not pass those on.
 *
 * The program may register another clock, which CUPTI then uses. A timestamp belongs to the domain whose last sample is
 * nearest: clocks differ by orders of magnitude (CLOCK_REALTIME 1.7e18, a TSC 1e14). A sample that jumps away from its
 * domain's prediction begins a new domain.
 */
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { TRIES = 20, LOOKS = 3, APART_TICKS = 1000 };
#define JUMP_NS UINT64_C(60000000000) /* more than a minute is no drift: CLOCK_REALTIME was set */

static _Atomic uint32_t domain_now; /* number of the newest domain */
static _Atomic uint64_t stamps[2];  /* last sample of the even and the odd domain; 0: none */
static uint64_t mono_of_last;       /* when the last sample was taken; with control */
static _Atomic bool is_announced;   /* kp_domain_next was called since the last sample */
static _Atomic bool was_enabled;    /* we enabled a kind before, so CUPTI keeps its clock */
static _Atomic bool is_counter;     /* we registered the processor's counter at CUPTI */

/* ---- our own clock ---- */

static uint64_t counter(void) { return kp_ticks(); }

void kp_domain_prepare(void)
{
    if (kp_exchange_acq_rel(&was_enabled, true) || !kp_cupti.register_timestamp_callback) return;
    if (!kp_load_relaxed(&kp_clock_is_tsc) || !kp_cupti_has_torch() || kp_client_is_there() || kp_client_clock())
        return;
    if (!kp_watchdog_call_begins()) return;
    kp_store_release(&is_counter,
                     kp_cupti.register_timestamp_callback(counter) == 0); /* pairs with: kp_domain_is_counter */
    kp_watchdog_call_ends();
}

void kp_domain_forget(void)
{
    kp_store_relaxed(&was_enabled, false);
    kp_store_release(&is_counter, false); /* pairs with: kp_domain_is_counter */
}

bool kp_domain_is_counter(uint64_t (*clock)(void))
{
    if (!clock || !kp_load_acquire(&is_counter)) return false; /* pairs with: kp_domain_prepare */
    for (int i = 0; i < LOOKS; i++) {
        uint64_t before = kp_ticks(), seen = clock(), after = kp_ticks();
        if (seen + APART_TICKS < before || seen > after + APART_TICKS) return false;
    }
    return true;
}

/* It does not call CUPTI, whose callbacks ask for it. By default CUPTI's clock is CLOCK_REALTIME. */
uint64_t kp_domain_time(void)
{
    const kp_client_clock_fn clients = kp_client_clock();
    if (clients) return clients();
    if (kp_load_acquire(&is_counter)) return kp_ticks(); /* pairs with: kp_domain_prepare */
    return kp_clock_ns(CLOCK_REALTIME);
}

/* ---- samples and domains ---- */

void kp_domain_next(void)
{
    kp_store_release(&is_counter, false);  /* pairs with: kp_domain_is_counter */
    kp_store_release(&is_announced, true); /* pairs with: kp_domain_sample */
}

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static bool has_jumped(uint64_t device, uint64_t mono_ns)
{
    uint64_t last = kp_load_relaxed(&stamps[kp_load_relaxed(&domain_now) & 1]);
    if (last == 0) return false;
    uint64_t span = mono_ns - mono_of_last;
    /* A TSC has up to five ticks a nanosecond. */
    return device + JUMP_NS < last || device > last + 6 * span + JUMP_NS;
}

/* The newest domain may change between the loads. That hurts only timestamps of two changes ago: those are lost. */
uint32_t kp_domain_of(uint64_t stamp)
{
    uint32_t now = kp_load_acquire(&domain_now); /* pairs with: kp_domain_sample */
    if (now == 0 || stamp == 0) return now;
    uint64_t mine = kp_load_relaxed(&stamps[now & 1]), other = kp_load_relaxed(&stamps[(now & 1) ^ 1]);
    if (other == 0 || mine == 0) return now;
    return distance(stamp, mine) <= distance(stamp, other) ? now : now - 1;
}

static bool best_pair(struct kp_rec_devclock *r)
{
    r->width = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t device = 0, before = kp_ticks();
        if (kp_cupti.get_timestamp(&device) != 0) return false;
        uint64_t width = kp_ticks() - before;
        if (width >= r->width) continue;
        r->width = width;
        r->ticks = before + width / 2;
        r->device = device;
    }
    return true;
}

void kp_domain_sample(void)
{
    struct kp_rec_devclock r = {.head = {.kind = KP_KIND_DEVCLOCK, .size = sizeof r}};
    bool have = false, is_new = kp_load_acquire(&is_announced); /* pairs with: kp_domain_next */
    if (!kp_watchdog_call_begins()) return;
    have = best_pair(&r);
    kp_watchdog_call_ends();
    if (!have) return;
    uint64_t mono = kp_clock_ns(CLOCK_MONOTONIC);
    uint32_t number = kp_load_relaxed(&domain_now);
    if (is_new) kp_store_relaxed(&is_announced, false);
    if (has_jumped(r.device, mono)) {
        kp_store_relaxed(&stamps[(number & 1) ^ 1], r.device);
        kp_store_release(&domain_now, ++number); /* pairs with: kp_domain_of */
    } else {
        kp_store_relaxed(&stamps[number & 1], r.device);
    }
    mono_of_last = mono;
    r.domain = number;
    (void)kp_record_meta(&r, sizeof r); /* a lost sample is counted; the next comes in a second */
}
