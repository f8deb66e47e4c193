// SPDX-License-Identifier: Apache-2.0
/*
 * tee.c - taps on the program's own CUPTI calls: what it does and what we do must not undo each other
 *
 * Called by: the program's threads in place of CUPTI; control.c (arming, disarmed)
 * Owns:      the taps; the client itself is client.c's, its buffers go through forward.c
 * Locks:     none. CUPTI and the client are called with nothing held.
 * Memory:    none
 * On fail:   the program gets what CUPTI answered
 * Safe in:   signal handlers no; after fork: passes on, and calls nothing of its own
 *
 * CUPTI's activity API has one set of callbacks, kinds and filters for a process. Once the program has registered
 * callbacks, or we have armed, those at CUPTI are buffer.c's, and the program is a client behind them:
 *
 *   we are not armed   its buffers go to CUPTI and come back to it as they are
 *   we are armed       CUPTI fills our buffers; client.c copies what is the client's into buffers that it gives
 *   STALLED, DEAD      as not armed: we cannot call CUPTI, so nothing of the client's is kept from it. Should CUPTI
 *                      still take buffers for zeroed, its own are zeroed by us; what lies in ours is copied when they
 *                      come back
 *   SHARED (yield)     as not armed; control.c keeps away until the client has disabled everything (aside.c)
 *
 * A kind is enabled at CUPTI while either side wants it. Enable is always passed on (twice does no harm); Disable only
 * when we do not want the kind. Both sides first change their own word and then read the other's, and the one that
 * disabled looks once more and enables again, so whatever comes between, a wanted kind ends up enabled.
 *
 * Kineto's course: RegisterTimestampCallback, RegisterCallbacks, Enable..., later Disable..., FlushAll(forced), walk,
 * and with TEARDOWN_CUPTI=1 Subscribe, EnableDomain, Finalize in some API's exit callback. It flushes only when it has
 * given a buffer: so one is asked for as soon as its session begins.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

typedef uint64_t (*clock_fn)(void);

enum { FORCED = 1, SETTLE_TRIES = 50, SETTLE_STEP_US = 1000, FINALIZE_TRIES = 100 };
enum { ATTRIBUTE_ZEROED_BUFFERS = 5, ATTRIBUTE_BUFFER_PER_THREAD = 9 };

static bool is_yielding;
static pid_t pid_of_start;
static _Atomic uint64_t dropped_told; /* of kp_cupti_dropped(): the client knows of these */

/* A forked child: none of ours is there, and a call more than the child's own may hang in a CUPTI that was not made for
 * this. */
static bool is_child(void) { return getpid() != pid_of_start; }

static bool is_armed(void) { return kp_cupti_state() == KP_CUPTI_STATE_ARMED; }

/* CUPTI fills buffers of ours, and may go on with one that is out already after we cannot call it any more. */
static bool are_ours_out(void)
{
    return is_armed() || (!kp_cupti_may_call() && kp_buffer_is_older_out(kp_buffer_mark()));
}

/* On a thread of the program's: it does not wait for the writer. */
static void flush_finished(void)
{
    kp_lane_allow_wait(false);
    kp_cupti.flush_all(0);
    kp_lane_allow_wait(true);
}

/* --- callbacks --- */

static int tap_register(kp_cupti_request_fn request, kp_cupti_complete_fn complete)
{
    if (!request || !complete || is_child()) return kp_cupti.register_callbacks(request, complete);
    if (is_yielding) kp_cupti_stand_aside(false, (const void *)(uintptr_t)request);
    kp_cupti_queries_again();
    int result = is_armed() ? 0 : kp_cupti.register_callbacks(kp_buffer_request, kp_buffer_complete);
    if (result != 0) return result;
    if (!kp_client_is_there()) {
        kp_store_relaxed(&dropped_told, kp_cupti_dropped());
        /* A kind enabled before there was anybody to tell: nothing of then is kept. */
        kp_client_begin(kp_forward_timestamp());
    }
    kp_client_register(request, complete);
    kp_cupti_helper_rest(false); /* its earlier cuptiFinalize is through, then */
    if (kp_client_is_active() && are_ours_out()) kp_client_have_buffer();
    return 0;
}

/* --- kinds --- */

static int set_cbid(bool is_driver, uint32_t cbid, bool enabled)
{
    int (*real)(uint32_t, uint8_t) = is_driver ? kp_cupti.enable_driver_api : kp_cupti.enable_runtime_api;
    return real ? real(cbid, enabled) : 0;
}

static bool is_of_calls(uint32_t kind) { return kind == KP_CUPTI_RUNTIME || kind == KP_CUPTI_DRIVER; }

static int tap_enable(int kind)
{
    bool is_first = !kp_client_is_active();
    uint32_t k = (uint32_t)kind;
    if (is_child()) return kp_cupti.enable(kind);
    if (is_first && is_yielding && kp_client_is_there()) kp_cupti_stand_aside(true, NULL);
    if (is_first && is_armed()) flush_finished(); /* what was there before is not the client's */
    if (is_first) (void)kp_cupti_see_cuinit();    /* asks the driver: later on the client would see that call */
    if (is_first && kp_client_is_there() && !is_armed()) kp_rules_session();
    uint64_t now = kp_forward_timestamp();
    bool had = kp_client_has(k);
    kp_client_enable(k, now); /* own word first: a Disable of ours that comes in between must see it */
    int result = kp_cupti.enable(kind);
    if (result != 0) {
        if (!had && kp_client_disable(k, now) && is_yielding) kp_cupti_come_back(false);
        return result;
    }
    if (is_first && are_ours_out()) kp_client_have_buffer();
    return 0;
}

static int disable(uint32_t kind, enum kp_filter_now *now)
{
    int result = kp_cupti.disable((int)kind);
    *now = KP_FILTER_ALL_OFF;
    if (kp_cupti_wants(kind)) {
        kp_cupti.enable((int)kind);
        *now = KP_FILTER_ALL_ON;
    }
    return result;
}

static int tap_disable(int kind)
{
    int result = 0;
    enum kp_filter_now now = KP_FILTER_AS_SET;
    if (is_child()) return kp_cupti.disable(kind);
    uint32_t k = (uint32_t)kind;
    (void)kp_cupti_helper_check(); /* while a call of ours does not return nothing is kept from CUPTI */
    bool had = kp_client_has(k), ended = kp_client_disable(k, kp_forward_timestamp());
    if (!had || !kp_cupti_wants(k)) result = disable(k, &now);
    if (is_of_calls(k))
        (void)kp_filter_apply(k == KP_CUPTI_DRIVER, now, set_cbid); /* its Disable overrode what we set call by call */
    if (ended) kp_buffer_quiet_anew();
    if (ended && is_yielding) kp_cupti_come_back(false);
    return result;
}

static int tap_cbid(bool is_driver, uint32_t cbid, uint8_t enable)
{
    if (is_child()) return set_cbid(is_driver, cbid, enable);
    kp_client_set_call(is_driver, cbid, enable);
    if (!enable && kp_cupti_wants_call(is_driver, cbid)) return 0;
    int result = set_cbid(is_driver, cbid, enable);
    if (!enable && kp_cupti_wants_call(is_driver, cbid)) set_cbid(is_driver, cbid, true); /* since then */
    return result;
}

static int tap_runtime_api(uint32_t cbid, uint8_t enable) { return tap_cbid(false, cbid, enable); }

static int tap_driver_api(uint32_t cbid, uint8_t enable) { return tap_cbid(true, cbid, enable); }

/* --- flush --- */

/* A forced flush tells of unfinished work without its end, and never again: a loss to us, of no use to the client. So
 * what CUPTI holds now is given a moment to come by itself, SETTLE_TRIES ms at most. true: it did, and nothing is left
 * to be forced. */
static bool settle(void)
{
    uint64_t mark = kp_buffer_mark();
    for (int i = 0; i < SETTLE_TRIES && kp_cupti.flush_all(0) == 0; i++) {
        if (!kp_buffer_is_older_out(mark)) return true;
        kp_io_nap(SETTLE_STEP_US * 1000);
    }
    return false;
}

static int tap_flush(uint32_t flag)
{
    if (is_child()) return kp_cupti.flush_all(flag);
    kp_lane_allow_wait(false);
    bool is_settled = flag == FORCED && kp_cupti_wants(KP_CUPTI_CONCURRENT_KERNEL) && settle();
    int result = is_settled ? 0 : kp_cupti.flush_all(flag);
    kp_lane_allow_wait(true);
    if (!kp_client_is_there()) return result;
    kp_client_hand_over();
    if (is_yielding && !kp_client_is_active()) kp_cupti_come_back(true);
    if (kp_client_is_active() && kp_forward_was_armed()) kp_client_have_buffer(); /* ours may still be outside */
    return result;
}

/* CUPTI's counter falls to 0 when read. Each side gets what it has not been told of. */
static int tap_dropped(void *context, uint32_t stream, size_t *out)
{
    size_t n = 0;
    if (is_child()) return kp_cupti.get_num_dropped(context, stream, out);
    int result = kp_cupti.get_num_dropped(context, stream, out ? &n : NULL);
    if (result != 0 || !out) return result;
    kp_cupti_dropped_more(n);
    uint64_t all = kp_cupti_dropped();
    *out = (size_t)(all - kp_exchange_acq_rel(&dropped_told, all) + kp_client_take_dropped());
    return 0;
}

/* --- what holds for both sides --- */

/* The same clock again (Kineto registers its own at every start) changes nothing, and CUPTI takes it badly: while
 * something of ours is enabled, or was when ours was registered, it is not passed on. */
static int tap_clock(clock_fn clock)
{
    if (is_child()) return kp_cupti.register_timestamp_callback(clock);
    bool is_news = kp_client_clock() != clock;
    if (kp_domain_is_counter(clock) || (clock && !is_news && is_armed())) return 0;
    if (is_yielding) kp_cupti_stand_aside(false, (const void *)(uintptr_t)clock);
    if (is_news && is_armed()) flush_finished(); /* it is still of the old clock */
    if (is_news) kp_cupti_clock_changing();
    int result = kp_cupti.register_timestamp_callback(clock);
    if (result != 0 || !is_news) return result;
    kp_client_set_clock(clock);
    kp_client_clock_changed();
    kp_cupti_clock_changed();
    return 0;
}

/* No call of ours is under way in a CUPTI that ends; where ours waits for this very thread, only so long. */
static bool take_control(void)
{
    for (int i = 0; i < FINALIZE_TRIES; i++) {
        if (kp_watchdog_take_control()) return true;
        kp_io_nap(SETTLE_STEP_US * 1000);
    }
    return false;
}

static int finalize(void)
{
    int result = kp_cupti.finalize();
    if (result != 0) return result;
    kp_client_forget();
    kp_forward_disarmed();
    kp_client_set_clock(NULL);
    kp_cupti_finalized();
    if (is_yielding) kp_cupti_come_back(false);
    return 0;
}

static int tap_finalize(void)
{
    if (is_child()) return kp_cupti.finalize();
    if (kp_client_is_there()) kp_client_hand_over();
    bool has_control = take_control();
    int result = finalize();
    if (has_control) kp_watchdog_give_control();
    return result;
}

/* Two attributes are about buffers, and while we are armed the buffers are ours. */
static int tap_set_attribute(int attribute, size_t *bytes, void *value)
{
    if (!is_child() && is_armed() &&
        (attribute == ATTRIBUTE_BUFFER_PER_THREAD || attribute == ATTRIBUTE_ZEROED_BUFFERS))
        return 0;
    return kp_cupti.set_attribute(attribute, bytes, value);
}

/* --- from control.c --- */

void kp_tee_arming(void)
{
    kp_forward_arming();
    if (kp_client_is_active()) kp_client_have_buffer();
}

/* buffer.c's callbacks stay registered: a buffer of ours that is still outside comes back to us, the client's to the
 * client. */
void kp_tee_disarmed(void)
{
    kp_forward_disarmed();
    if (!kp_client_is_there() || !kp_watchdog_call_begins()) return;
    kp_cupti.register_callbacks(kp_buffer_request, kp_buffer_complete);
    kp_watchdog_call_ends();
}

static const struct {
    const char *symbol;
    size_t member; /* of struct kp_cupti: the real one */
    void *tap;
} tapped[] = {
#define TAPPED(symbol, member, tap)                                         \
    {                                                                       \
        symbol, offsetof(struct kp_cupti, member), (void *)(uintptr_t)(tap) \
    }
    TAPPED("cuptiActivityRegisterCallbacks", register_callbacks, tap_register),
    TAPPED("cuptiActivityEnable", enable, tap_enable),
    TAPPED("cuptiActivityDisable", disable, tap_disable),
    TAPPED("cuptiActivityFlushAll", flush_all, tap_flush),
    TAPPED("cuptiActivityRegisterTimestampCallback", register_timestamp_callback, tap_clock),
    TAPPED("cuptiFinalize", finalize, tap_finalize),
    TAPPED("cuptiActivityGetNumDroppedRecords", get_num_dropped, tap_dropped),
    TAPPED("cuptiActivityEnableRuntimeApi", enable_runtime_api, tap_runtime_api),
    TAPPED("cuptiActivityEnableDriverApi", enable_driver_api, tap_driver_api),
    TAPPED("cuptiActivitySetAttribute", set_attribute, tap_set_attribute),
#undef TAPPED
};
enum { TAPPED_COUNT = sizeof tapped / sizeof *tapped };

/* This CUPTI may lack some. */
static uint32_t taps_find(struct kp_tap *out)
{
    uint32_t n = 0;
    for (int i = 0; i < TAPPED_COUNT; i++) {
        void *real;
        memcpy(&real, (const uint8_t *)&kp_cupti + tapped[i].member, sizeof real);
        if (real) out[n++] = (struct kp_tap){tapped[i].symbol, real, tapped[i].tap};
    }
    return n;
}

int kp_tee_start(uint32_t config_cupti)
{
    static struct kp_tap found[TAPPED_COUNT];
    static uint32_t count;
    is_yielding = config_cupti == KP_CUPTI_YIELD;
    pid_of_start = getpid();
    if (config_cupti == KP_CUPTI_OFF) return 0;
    if (!count) count = taps_find(found);
    int err = kp_hook_add_taps(found, count);
    if (err && err != -EBUSY && err != -EEXIST)
        kp_log(0,
               "the program's use of CUPTI cannot be followed (error %d): beside torch.profiler one of the two may "
               "miss GPU work",
               -err);
    return err;
}

int kp_tee_start_once(uint32_t config_cupti)
{
    enum { NOT_YET, STARTING, STARTED };
    static _Atomic uint32_t stage;
    uint32_t seen = NOT_YET;
    if (!kp_cas_acq_rel(&stage, &seen, STARTING)) return seen == STARTED ? 0 : -EBUSY; /* pairs with: itself */
    int err = kp_tee_start(config_cupti);
    kp_store_release(&stage, err == -EBUSY ? NOT_YET : STARTED); /* pairs with: itself */
    return err == -EBUSY ? err : 0;
}
