// SPDX-License-Identifier: Apache-2.0
/*
 * domain.c - CUPTI's clock beside ours: sampled pairs, and which of its clocks a stamp is of
 *
 * Called by: the thread kprof-cuda (sample), lane.c (whose stamp is this: hot), tee.c (the clock was changed)
 * Owns:      the last sample of the two newest domains
 * Locks:     none: the domains are read with a version word around them
 *
 * Without torch we register no timestamp callback: another one in the process would be replaced, and a registered one
 * has stale stamps after an idle time. With torch it is the processor's counter, and that before anything is enabled
 * for the first time:
 * torch.profiler registers just that at each of its starts, and CUPTI up to 13.2 goes on to stamp what GPUs do in the
 * clock of the first enabling (pytorch#190346), and spoils a record at each further registration (pytorch#192021).
 * Registered before, it need not be passed on again (tee.c).
 *
 * The program may register another: from then on CUPTI stamps in that. The two differ by orders of magnitude (1.7e18 of
 * CLOCK_REALTIME, 1e14 of a TSC), so a stamp belongs to the domain whose last sample is nearest. A sample that jumps
 * away from what its domain predicts begins a domain as well.
 */
#include <string.h>
#include <time.h>

#include "collector/base/kp_clock.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { TRIES = 20, LOOKS = 3, APART_TICKS = 1000 };
#define JUMP_NS UINT64_C(60000000000) /* CLOCK_REALTIME may be set; a minute is no drift */

static _Atomic uint32_t domain_now; /* number of the newest */
static _Atomic uint64_t stamps[2];  /* last sample of an even, of an odd domain; 0: none */
static uint64_t mono_of_last;       /* when the last sample was taken; kprof-cuda's */
static _Atomic bool is_announced;   /* kp_domain_next was called since the last sample */
static _Atomic bool was_enabled;    /* a kind was: CUPTI's clock is left as it is */
static _Atomic bool is_counter;     /* it is the processor's counter, registered by us */

/* ---- a clock of our own ---- */

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
    /* A TSC runs up to five times as fast as ns do. */
    return device + JUMP_NS < last || device > last + 6 * span + JUMP_NS;
}

/* Which of two domains is newest may change between a look and the next: a stamp of a domain two changes ago is lost
 * anyway. */
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
    (void)kp_record_meta(&r, sizeof r); /* a lost one was counted; the next comes in a second */
}
