// SPDX-License-Identifier: Apache-2.0
/*
 * tee.c - taps on the program's own CUPTI calls, so that neither side undoes what the other does
 *
 * Called by: host threads in place of CUPTI; control.c (arming, disarmed)
 * Owns:      the taps. client.c has the client's state, forward.c passes its buffers.
 * Locks:     none. CUPTI and the client are called with nothing held.
 * Memory:    none
 * On fail:   the program gets CUPTI's result
 * Safe in:   signal handlers no; in a forked child the taps only pass calls on
 *
 * CUPTI's activity API has one set of callbacks, kinds and filters for a process. Once we have armed or the program has
 * registered callbacks, CUPTI has the callbacks of buffer.c. The program is a client behind them:
 *
 *   not armed        CUPTI fills the client's buffers; the client gets them back unchanged
 *   ARMED            CUPTI fills our buffers; client.c copies the client's records into the client's buffers
 *   STALLED, DEAD    as not armed, since we cannot call CUPTI. CUPTI may still expect zeroed buffers, so forward.c
 *                    zeroes the client's. Records in our buffers are copied when those come back.
 *   SHARED (yield)   as not armed; we do not arm until the client has disabled everything (aside.c)
 *
 * A kind is enabled at CUPTI while either side wants it. An Enable is always passed on, since a second one does no
 * harm. A Disable is passed on only if we do not want the kind. Each side first changes its own word, then reads the
 * other's. The side that disabled reads once more and enables again if needed, so a wanted kind ends up enabled.
 *
 * Kineto calls RegisterTimestampCallback, RegisterCallbacks and Enable, later Disable and FlushAll(forced), and walks
 * its buffers. With TEARDOWN_CUPTI=1 it also calls Subscribe, EnableDomain, and Finalize in an API's exit callback. It
 * flushes only if it has given a buffer, so we request one as soon as its session begins.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cupti/client.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

typedef uint64_t (*clock_fn)(void);

enum { FORCED = 1, SETTLE_TRIES = 50, SETTLE_STEP_US = 1000, FINALIZE_TRIES = 100 };

static bool is_yielding;
static pid_t pid_of_start;
static _Atomic uint64_t dropped_told; /* the part of kp_cupti_dropped() that the client has read */
static _Atomic bool are_ours_given; /* from before we give CUPTI our first buffer until our kinds are disabled again */

/* Is this a forked child? It has no helper thread, and an extra call may hang, since CUPTI does not support fork. */
static bool is_child(void) { return getpid() != pid_of_start; }

static bool is_armed(void) { return kp_cupti_state() == KP_CUPTI_STATE_ARMED; }

/* May CUPTI be filling our buffers? It keeps those that it has when we cannot call it any more. */
static bool are_ours_out(void)
{
    return atomic_load(&are_ours_given) || is_armed() ||
           (!kp_cupti_may_call() && kp_buffer_is_older_out(kp_buffer_mark()));
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
        /* The client gets no records from before its callbacks, even if it enabled kinds earlier. */
        kp_client_begin(kp_forward_timestamp());
    }
    kp_client_register(request, complete);
    kp_cupti_helper_rest(false); /* so its earlier cuptiFinalize is over */
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
    if (is_first && is_armed()) (void)kp_cupti.flush_all(0); /* records from before are not the client's */
    if (is_first) (void)kp_cupti_see_cuinit(); /* calls the driver now, since in the session the client would see it */
    if (is_first && kp_client_is_there() && !is_armed()) kp_rules_session();
    uint64_t now = kp_forward_timestamp();
    bool had = kp_client_has(k);
    kp_client_enable(k, now); /* before the Enable, so that our own Disable on another thread sees it */
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
    (void)kp_cupti_helper_check(); /* while our call does not return, we pass all calls on */
    bool had = kp_client_has(k), ended = kp_client_disable(k, kp_forward_timestamp());
    if (!had || !kp_cupti_wants(k)) result = disable(k, &now);
    if (is_of_calls(k))
        (void)kp_filter_apply(k == KP_CUPTI_DRIVER, now, set_cbid); /* the Disable overrode our single calls */
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
    if (!enable && kp_cupti_wants_call(is_driver, cbid)) set_cbid(is_driver, cbid, true); /* wanted since */
    return result;
}

static int tap_runtime_api(uint32_t cbid, uint8_t enable) { return tap_cbid(false, cbid, enable); }

static int tap_driver_api(uint32_t cbid, uint8_t enable) { return tap_cbid(true, cbid, enable); }

/* --- flush --- */

/* A forced flush delivers records of unfinished work without an end, and CUPTI does not deliver them again. So this
 * flushes without force for SETTLE_TRIES ms at most. true: all buffers came back, and no force is needed. */
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
    bool is_settled = flag == FORCED && kp_cupti_wants(KP_CUPTI_CONCURRENT_KERNEL) && settle();
    int result = is_settled ? 0 : kp_cupti.flush_all(flag);
    if (!kp_client_is_there()) return result;
    kp_client_hand_over();
    if (is_yielding && !kp_client_is_active()) kp_cupti_come_back(true);
    if (kp_client_is_active() && kp_forward_was_armed()) kp_client_have_buffer(); /* CUPTI may still have ours */
    return result;
}

/* CUPTI's counter falls to 0 when read. Gives the client the drops that it has not read yet. */
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

/* --- clock, finalize, attributes: one for both sides --- */

/* Kineto registers the same clock at every start, and CUPTI may spoil records at each registration (cupti_clock.c). So
 * the clock that CUPTI has is not registered again while we are armed, or if it is our own. */
static int tap_clock(clock_fn clock)
{
    if (is_child()) return kp_cupti.register_timestamp_callback(clock);
    bool is_news = kp_client_clock() != clock;
    if (kp_domain_is_counter(clock) || (clock && !is_news && is_armed())) return 0;
    if (is_yielding) kp_cupti_stand_aside(false, (const void *)(uintptr_t)clock);
    if (is_news && is_armed()) (void)kp_cupti.flush_all(0); /* finished records have the old clock's times */
    if (is_news) kp_cupti_clock_changing();
    int result = kp_cupti.register_timestamp_callback(clock);
    if (result != 0 || !is_news) return result;
    kp_client_set_clock(clock);
    kp_client_clock_changed();
    kp_cupti_clock_changed();
    return 0;
}

/* Waits until kprof-cuda is in no CUPTI call. Bounded, since that call may be waiting for this thread. */
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
    kp_buffer_finalized();
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
    atomic_store(&are_ours_given, false);
    if (has_control) kp_watchdog_give_control();
    return result;
}

/* While we are armed CUPTI fills our buffers, so the two attributes about buffers stay as we set them. */
static int tap_set_attribute(int attribute, size_t *bytes, void *value)
{
    if (!is_child() && is_armed() && (attribute == KP_CUPTI_ATTR_PER_THREAD || attribute == KP_CUPTI_ATTR_ZEROED))
        return 0;
    return kp_cupti.set_attribute(attribute, bytes, value);
}

/* --- called by control.c --- */

void kp_tee_arming(void)
{
    /* A session that begins from now on sees it. One that has begun is seen here. */
    atomic_store(&are_ours_given, true);
    kp_forward_arming();
    if (kp_client_is_active()) kp_client_have_buffer();
}

/* The callbacks of buffer.c stay registered. They tell our buffers from the client's, and both may still be out. */
void kp_tee_disarmed(void)
{
    atomic_store(&are_ours_given, false);
    kp_forward_disarmed();
    if (!kp_client_is_there() || !kp_watchdog_call_begins()) return;
    kp_cupti.register_callbacks(kp_buffer_request, kp_buffer_complete);
    kp_watchdog_call_ends();
}

static const struct {
    const char *symbol;
    size_t member; /* offset of the real function in struct kp_cupti */
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

/* Leaves out functions that this CUPTI lacks. */
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
               "the program's use of CUPTI cannot be followed (%s): beside torch.profiler one of the two may "
               "miss GPU work",
               kp_log_error_text(err));
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
