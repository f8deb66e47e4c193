// SPDX-License-Identifier: Apache-2.0
/*
 * control.c - arms, flushes and disarms: our calls that change something in CUPTI
 *
 * Called by: cuda_thread.c on the thread kprof-cuda
 * Owns:      the values to restore; enabled.c has what is enabled
 * Locks:     none held in a CUPTI call, which may call us back
 * On fail:   leaves out a kind that CUPTI refuses. If there are no calls or kernels it refuses GPU recording, with a
 * log line.
 * Safe in:   signal handlers no; not called after fork
 *
 * Sets attributes before callbacks, and callbacks before kinds. EnableAndDump gives records of the devices and contexts
 * that exist already. Never calls cuptiFinalize or cuptiSubscribe: a process has one subscriber, and torch.profiler may
 * be it. (From 13.0 on other_tool.c tries cuptiSubscribe_v2 after a refusal.)
 */
#include <errno.h>

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/client.h"
#include "preload/cupti/limit.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum {
    VERSION_12_3 = 21,
    VERSION_13 = 130000,
    THREAD_IDS_SYSTEM = 1,
    NOT_CALLED = -1,
    WORK_MS = 1000,
    V2_IN_USE = 14,
    MULTIPLE_SUBSCRIBERS = 39
};

static const struct {
    uint8_t kind;
    enum { NOT, WANT, NEED, DUMP } enable;
} kinds[] = {
#define KP_CUPTI_KIND(name, number, decode, least, enable) {KP_CUPTI_##name, enable},
#include "preload/cupti/cuptikind.def"
#undef KP_CUPTI_KIND
};
static int64_t zeroed_before; /* value of KP_CUPTI_ATTR_ZEROED before arming */
static uint64_t owed;         /* bits: kinds of the client that our Disable may have disabled */

/* CALL makes a CUPTI call between the marks of watchdog.c. */
static int ended(int code)
{
    kp_watchdog_call_ends();
    return code;
}
#define CALL(expression) (kp_watchdog_call_begins() ? ended(expression) : NOT_CALLED)

/* ---- refusals ---- */

static int refuse(const char *what, int code)
{
    char why[512], tool[256];
    const char *text = NULL;
    if (kp_cupti.get_result_string) (void)CALL(kp_cupti.get_result_string(code, &text));
    if (code == V2_IN_USE || code == MULTIPLE_SUBSCRIBERS) {
        kp_other_tool(tool, sizeof tool);
        kp_fmt(why, sizeof why, "CUPTI is taken by %s (%s: error %d)", tool, what, code);
        kp_cupti_leave(why);
    } else {
        kp_fmt(why, sizeof why, "%s failed: %s (error %d)", what, text ? text : "?", code);
        kp_cupti_refuse(why);
    }
    return -EPERM;
}

/* ---- once a process ---- */

static void note_number(const char *key, uint64_t value)
{
    char text[24];
    kp_fmt(text, sizeof text, "%lu", (unsigned long)value);
    kp_cupti_note(key, text);
}

static void note_versions(void)
{
    int driver = 0;
    note_number("cupti_version", kp_cupti.version);
    kp_cupti_note("gpu_cupti_path", kp_cupti.path);
    if (kp_driver.version && kp_driver.version(&driver) == 0) note_number("cuda_driver_version", (uint64_t)driver);
    int runtime = kp_runtime_version();
    if (runtime) note_number("cuda_runtime_version", (uint64_t)runtime);
}

/* Uses the attribute's size as CUPTI reports it. Returns the old value; -1: this CUPTI cannot set it. */
static int64_t attribute_set(int attribute, uint64_t value)
{
    uint64_t before = 0;
    size_t bytes = sizeof before;
    if (!kp_cupti.get_attribute || !kp_cupti.set_attribute) return -1;
    if (CALL(kp_cupti.get_attribute(attribute, &bytes, &before)) != 0 || bytes == 0 || bytes > sizeof before) return -1;
    if (before != value && CALL(kp_cupti.set_attribute(attribute, &bytes, &value)) != 0) return -1;
    return (int64_t)before;
}

/* These last as long as the process, so sets them only where no client is to be expected. Buffers per thread are the
 * default from 13.0 on. */
static void attributes_set(void)
{
    if (kp_client_is_there() || kp_cupti_has_torch()) return;
    if (kp_cupti.version >= VERSION_12_3 && kp_cupti.version < VERSION_13)
        (void)attribute_set(KP_CUPTI_ATTR_PER_THREAD, 1);
    if (kp_cupti.set_thread_id_type && CALL(kp_cupti.set_thread_id_type(THREAD_IDS_SYSTEM)) == 0)
        kp_store_relaxed(&kp_lane_ids_are_tids, true); /* torch.profiler needs the default ids */
}

/* Reads CUPTI's version, its rules and its record sizes. 0 or -errno: it cannot be used. */
static int learn(void)
{
    char text[1200];
    int code = CALL(kp_cupti.get_version(&kp_cupti.version));
    if (code != 0) return code == NOT_CALLED ? -ETIMEDOUT : refuse("cuptiGetVersion", code);
    kp_log(1, "CUPTI %u in %s", (unsigned)kp_cupti.version, kp_cupti.path);
    note_versions();
    kp_rules_set(kp_cupti.version);
    if (kp_rules_forbid_arming()) return -EPERM;
    if (!kp_watchdog_call_begins()) return -ETIMEDOUT;
    const char *why = kp_probe_sizes();
    kp_calls_fill();
    kp_watchdog_call_ends();
    if (!why) return 0;
    kp_fmt(text, sizeof text, "%s (version %u) is of no known layout: %s", kp_cupti.path, (unsigned)kp_cupti.version,
           why);
    kp_cupti_refuse(text);
    return -EPROTO;
}

static int prepare(void)
{
    static bool is_prepared;
    if (is_prepared) return kp_rules_forbid_arming() ? -EPERM : 0;
    int err = learn();
    if (err) return err;
    if (kp_buffer_setup() != 0 || kp_lane_setup() != 0) {
        kp_cupti_refuse("no memory for its buffers");
        return -ENOMEM;
    }
    attributes_set();
    is_prepared = true;
    return 0;
}

/* ---- kinds and filters ---- */

static void kind_disable(uint32_t kind);

/* Changes our word before the Enable, so that the program's Disable on another thread sees it. */
static int kind_enable(uint32_t kind, bool is_dumped)
{
    int code = NOT_CALLED;
    kp_kinds_add(kind);
    if (is_dumped && kp_cupti.enable_and_dump) code = CALL(kp_cupti.enable_and_dump((int)kind));
    else code = CALL(kp_cupti.enable((int)kind));
    if (code != 0) kind_disable(kind); /* tee.c may have held back the program's Disable */
    return code;
}

static bool has_single_calls(void) { return kp_cupti.enable_driver_api && kp_cupti.enable_runtime_api; }

static int single_set(bool is_driver, uint32_t cbid, bool enabled)
{
    return is_driver ? CALL(kp_cupti.enable_driver_api(cbid, enabled))
                     : CALL(kp_cupti.enable_runtime_api(cbid, enabled));
}

/* Sets single calls again after `now` was done to their kind, which overrode them. */
static void calls_follow(uint32_t kind, enum kp_filter_now now)
{
    if (has_single_calls() && (kind == KP_CUPTI_RUNTIME || kind == KP_CUPTI_DRIVER))
        (void)kp_filter_apply(kind == KP_CUPTI_DRIVER, now, single_set);
}

/* Changes our word, reads the client's, and reads it again after the Disable. tee.c does the same for the client. A
 * call that could not be made stays marked for kp_control_recover. */
static void kind_disable(uint32_t kind)
{
    enum kp_filter_now now = KP_FILTER_AS_SET;
    if (!kp_kinds_remove(kind)) return;
    if (!kp_client_has(kind)) {
        if (CALL(kp_cupti.disable((int)kind)) == NOT_CALLED) {
            kp_kinds_add(kind);
            return;
        }
        now = KP_FILTER_ALL_OFF;
        if (kp_client_has(kind)) {
            if (CALL(kp_cupti.enable((int)kind)) == NOT_CALLED) owed |= UINT64_C(1) << kind;
            now = KP_FILTER_ALL_ON;
        }
    }
    calls_follow(kind, now);
}

/* From 12.8 on CUPTI also records queries that were not ready; allocators and NCCL make thousands. Turns those off. */
static void queries_off(void)
{
    if (!kp_cupti_wants_waits() || !kp_cupti.enable_all_sync_records || kp_client_is_there()) return;
    kp_kinds_set_queries_off(CALL(kp_cupti.enable_all_sync_records(0)) == 0);
}

static int kinds_enable(void)
{
    queries_off();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].enable == NOT) continue;
        if (kinds[i].kind == KP_CUPTI_SYNCHRONIZATION && !kp_cupti_wants_waits()) continue;
        int code = kind_enable(kinds[i].kind, kinds[i].enable == DUMP);
        if (code != 0 && kinds[i].enable == NEED) return code;
        if (code != 0)
            kp_log(1, "CUPTI refuses records of kind %d (error %d): the trace lacks them", kinds[i].kind, code);
    }
    calls_follow(KP_CUPTI_RUNTIME, KP_FILTER_ALL_ON); /* disables noise; lane.c drops what CUPTI cannot leave out */
    calls_follow(KP_CUPTI_DRIVER, KP_FILTER_ALL_ON);
    return 0;
}

static void kinds_disable(void)
{
    for (uint32_t kind = 1; kind < KP_CUPTI_KINDS; kind++) kind_disable(kind);
    kp_store_release(&kp_cupti_helper.off_due_ms, 0); /* pairs with: cupti_source.c:step_ended */
    if (!kp_kinds_are_queries_off() || !kp_watchdog_call_begins()) return;
    kp_cupti_queries_again();
    kp_watchdog_call_ends();
}

/* ---- arm, flush, disarm ---- */

/* Undoes what else arming changed. Only while we can call CUPTI: it must get zeroed buffers until the attribute is
 * back. */
static void leave(void)
{
    if (zeroed_before == 0) (void)attribute_set(KP_CUPTI_ATTR_ZEROED, 0);
    kp_tee_disarmed();
    kp_buffer_quiet(true);
    kp_buffer_write_notes();
}

/* Undoes a failed arming. After a stalled call kp_control_recover does it, and the next window arms again. */
static int arm_failed(const char *what, int code)
{
    if (code == NOT_CALLED || !kp_cupti_may_call()) return -ETIMEDOUT;
    kinds_disable();
    if (!kp_cupti_may_call()) return -ETIMEDOUT;
    leave();
    return refuse(what, code);
}

int kp_control_arm(void)
{
    int err = kp_cupti_find(true);
    if (err == -EAGAIN) return err;
    if (err) {
        kp_cupti_refuse(err == -ENOSYS ? "a function of it is missing"
                                       : "no libcupti that belongs to this program's CUDA was found");
        return err;
    }
    const struct kp_config *config = kp_cupti_config();
    /* The taps must see the program's calls before ours change anything. */
    if (config && kp_tee_start_once(config->cupti) == -EBUSY) return -EAGAIN;
    if (!kp_cupti_helper_register_exit(false)) {
        kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
        return -ESHUTDOWN;
    }
    err = prepare();
    if (err) return err;
    kp_cupti_set_state(KP_CUPTI_STATE_FOUND);
    kp_buffer_warm();
    kp_buffer_sweep();
    kp_tee_arming();
    zeroed_before = attribute_set(KP_CUPTI_ATTR_ZEROED, 1); /* our buffers are zeroed; the client's may not be */
    int code = CALL(kp_cupti.register_callbacks(kp_buffer_request, kp_buffer_complete));
    if (code != 0) return arm_failed("cuptiActivityRegisterCallbacks", code);
    kp_device_write_all();
    kp_lane_forget_work();
    kp_buffer_quiet(false);
    kp_domain_prepare();
    kp_rules_session();
    code = kinds_enable();
    if (code != 0) return arm_failed("cuptiActivityEnable", code);
    kp_domain_sample();
    if (!kp_cupti_may_call()) return -ETIMEDOUT;
    kp_cupti_set_state(KP_CUPTI_STATE_ARMED);
    kp_limit_begin();
    (void)kp_cupti_helper_register_exit(true);
    return 0;
}

void kp_control_flush(bool is_forced)
{
    static uint64_t said;
    size_t lost = 0;
    if (!kp_buffer_any_asked()) return; /* nothing was recorded yet; after a fork such a flush hangs */
    (void)CALL(kp_cupti.flush_all(is_forced));
    kp_buffer_work(WORK_MS);
    kp_domain_sample();
    if (kp_cupti.get_num_dropped && CALL(kp_cupti.get_num_dropped(NULL, 0, &lost)) == 0 && lost)
        kp_kinds_add_dropped(lost);
    if (kp_cupti_dropped() != said) {
        for (; said < kp_cupti_dropped(); said++)
            kp_loss_count(0, KP_LOSS_NO_CHUNK); /* kind 0, since CUPTI does not tell the kind */
        note_number("gpu_dropped", said);
        KP_LOG_ONCE(0, "CUPTI dropped records of GPU work: the trace lacks them");
    }
    kp_lane_write_notes();
    kp_buffer_write_notes();
}

void kp_control_stop(void) { kinds_disable(); }

void kp_control_disarm(bool is_forced)
{
    kp_control_flush(false);
    kinds_disable();
    kp_control_flush(is_forced);
    if (!kp_cupti_may_call()) return;
    leave();
    if (kp_cupti_state() == KP_CUPTI_STATE_ARMED) kp_cupti_set_state(KP_CUPTI_STATE_FOUND);
}

/* First disables what slows the program down. Then enables again the kinds that the program enabled while our Disable
 * was under way. */
void kp_control_recover(void)
{
    kinds_disable();
    for (uint32_t kind = 1; kind < KP_CUPTI_KINDS; kind++) {
        if (!(owed >> kind & 1) || !kp_client_has(kind)) continue;
        (void)CALL(kp_cupti.enable((int)kind));
        calls_follow(kind, KP_FILTER_ALL_ON);
    }
    owed = 0;
    kp_control_flush(false);
    leave();
}
