// SPDX-License-Identifier: Apache-2.0
/*
 * resolve.c - the thread kprof-gpu: finds finished work, and writes its record with the times of its events
 *
 * Called by: itself; kprof-tick (is_drained, close); a host thread that destroys contexts (kp_contexts_forget)
 * Owns:      READY items, the lane "cuda events"
 * Locks:     kp_resolve_busy: held while CUDA is called, so that a host that resets its device can keep us out
 * On fail:   a record without times (KP_DEV_NO_TIME)
 * Safe in:   after fork: the child has no such thread, and its gate is shut
 *
 * The thread looks every few milliseconds while a window is open, else five times a second. It never waits for work:
 * it looks at unfinished work again later. A wait for the end of a window is given up after GIVE_UP_MS.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { NAP_MS = 4, BUSY_MS = 1, IDLE_MS = 200, UNDONE_MAX = 64, CLOSE_WAIT_MS = 400, LINGER = 100 };
enum { NOT_READY = 600, RELAXED = 2, FORGET_WAIT_MS = 50 };
#define GIVE_UP_NS UINT64_C(2000000000)

_Atomic uint32_t kp_resolve_busy;
static _Atomic uint32_t closed_cycle; /* no record is written for cycles up to this one */
static _Atomic uint64_t hurry_ticks;  /* work that began before is written now, finished or not */
static struct kp_thread *lane;
static _Atomic uint32_t is_woken;

static bool turn_take(void)
{
    uint32_t idle = 0;
    return kp_cas_acq_rel(&kp_resolve_busy, &idle, 1); /* pairs with: kp_contexts_forget */
}

static void turn_give(void)
{
    uint32_t held = 1;
    (void)kp_cas_acq_rel(&kp_resolve_busy, &held, 0);
}

/* ---- metadata of devices ---- */

static int attribute(int number, int device)
{
    int value = 0;
    if (!kp_cudrv.cuDeviceGetAttribute || kp_cudrv.cuDeviceGetAttribute(&value, number, device) != 0) return 0;
    return value;
}

/* The numbers are the driver's CUdevice_attribute. */
static void tell_device(struct kp_context *c)
{
    const int d = c->device;
    size_t total = 0;
    char name[128] = "";
    if (c->is_told) return;
    c->is_told = true;
    if (kp_cudrv.cuDeviceTotalMem_v2) kp_cudrv.cuDeviceTotalMem_v2(&total, d);
    if (kp_cudrv.cuDeviceGetName) kp_cudrv.cuDeviceGetName(name, sizeof name, d);
    struct kp_rec_device rec = {
        .head = {.kind = KP_KIND_DEVICE,
                 .size = sizeof rec,
                 .name = kp_name_intern(lane, name, (uint32_t)strnlen(name, sizeof name))},
        .id = (uint32_t)d,
        .major = (uint32_t)attribute(75, d),
        .minor = (uint32_t)attribute(76, d),
        .warp_size = (uint32_t)attribute(10, d),
        .total_memory = total,
        .max_threads_per_block = (uint32_t)attribute(1, d),
        .max_threads_per_sm = (uint32_t)attribute(39, d),
        .regs_per_block = (uint32_t)attribute(12, d),
        .regs_per_sm = (uint32_t)attribute(82, d),
        .smem_per_block = (uint32_t)attribute(8, d),
        .smem_per_block_optin = (uint32_t)attribute(97, d),
        .smem_per_sm = (uint32_t)attribute(81, d),
        .sms = (uint32_t)attribute(16, d),
        .max_blocks_per_sm = (uint32_t)attribute(106, d),
        .core_clock_khz = (uint32_t)attribute(13, d),
    };
    if (rec.warp_size) rec.max_warps_per_sm = rec.max_threads_per_sm / rec.warp_size;
    struct kp_rec_context context = {
        .head = {.kind = KP_KIND_CONTEXT, .size = sizeof context},
        .context = c->number,
        .device = (uint32_t)d,
        .null_stream = 7,
        .sms = rec.sms,
    };
    (void)kp_record_meta(&rec, sizeof rec); /* if it fails, the trace lacks the device's properties */
    (void)kp_record_meta(&context, sizeof context);
}

/* ---- items ---- */

static void set_times(struct kp_item *item, bool is_done)
{
    struct {
        struct kp_rec head;
        uint64_t start, end;
    } *rec = (void *)&item->rec;
    uint64_t start, end;
    bool known = is_done && kp_event_clock_ticks(item->context, item->start, item->ticks, &start) &&
                 kp_event_clock_ticks(item->context, item->end, item->ticks, &end) && end >= start;
    if (!known) {
        rec->head.flags |= KP_DEV_NO_TIME;
        return;
    }
    /* In an idle stream the first event happens at once, before the call that starts the work. */
    rec->start = start < item->ticks ? item->ticks : start;
    rec->end = end > rec->start ? end : rec->start + 1;
    rec->head.flags |= KP_DEV_EVENTS;
}

static void put_record(const struct kp_item *item)
{
    kp_store_relaxed(&lane->inside, 1);
    kp_signal_fence();
    if (item->cycle > kp_load_acquire(&closed_cycle)) { /* pairs with: kp_resolve_close */
        void *rec = kp_put_reserve(lane, kp_gate_make(item->cycle, KP_GATE_ON | KP_GATE_RECORD), item->bytes,
                                   (enum kp_kind)item->rec.head.kind);
        if (rec) {
            memcpy(rec, &item->rec, item->bytes);
            kp_put_commit(lane, item->bytes);
        }
    } else {
        kp_loss_count((enum kp_kind)item->rec.head.kind, KP_LOSS_REENTRY); /* done after its window was closed */
    }
    kp_store_release(&lane->inside, 0); /* pairs with: quiesce.c:is_quiet */
}

/* Writes and frees the item if its work is done or given up. true: the item is free. */
static bool look_at(struct kp_item *item, struct kp_context **current)
{
    struct kp_context *c = item->context;
    int state = -1;
    if (!kp_load_acquire(&c->is_gone)) { /* pairs with: kp_contexts_forget */
        if (*current != c) {
            void *popped;
            if (*current) kp_cudrv.cuCtxPopCurrent_v2(&popped);
            *current = kp_cudrv.cuCtxPushCurrent_v2(kp_load_relaxed(&c->handle)) == 0 ? c : NULL;
            if (*current) {
                tell_device(c);
                kp_event_clock_make(c);
            }
        }
        if (*current) state = kp_cudrv.cuEventQuery(item->end);
        if (state == NOT_READY && item->ticks > kp_load_relaxed(&hurry_ticks)) return false;
    }
    set_times(item, state == 0);
    put_record(item);
    kp_store_release(&item->state, KP_ITEM_FREE); /* pairs with: work.c:item_take */
    return true;
}

/* Returns how many items were freed. */
static int look_at_all(void)
{
    struct kp_context *current = NULL;
    void *popped;
    int undone = 0, done = 0;
    static uint32_t first; /* the last round stopped here, so that a hanging stream does not keep back the others */
    for (uint32_t i = 0; i < KP_ITEMS && undone < UNDONE_MAX; i++) {
        struct kp_item *item = &kp_items[(first + i) % KP_ITEMS];
        if (kp_load_acquire(&item->state) != KP_ITEM_READY) continue; /* pairs with: work.c:kp_work_put */
        if (look_at(item, &current)) done++;
        else if (++undone == UNDONE_MAX) first += i;
    }
    if (current) kp_cudrv.cuCtxPopCurrent_v2(&popped);
    return done;
}

/* Takes reference events before any work is in flight, so that the first work has one near. */
static void refresh_bases(void)
{
    void *popped;
    for (uint32_t i = 0; i < KP_CONTEXTS; i++) {
        struct kp_context *c = &kp_contexts[i];
        void *handle = kp_load_acquire(&c->handle); /* pairs with: ids.c:context_make */
        if (!handle || kp_load_acquire(&c->is_gone) || kp_cudrv.cuCtxPushCurrent_v2(handle) != 0) continue;
        kp_event_clock_make(c);
        kp_cudrv.cuCtxPopCurrent_v2(&popped);
    }
}

static void nap(long ms)
{
    uint32_t seen = kp_exchange_acq_rel(&is_woken, 0);
    if (!seen) kp_io_wait(&is_woken, 0, (uint64_t)ms * 1000000);
}

void kp_resolve_wake(void)
{
    int saved = errno;
    if (lane && !kp_exchange_acq_rel(&is_woken, 1)) kp_io_wake(&is_woken);
    errno = saved;
}

/*
 * Sets this thread's capture mode to relaxed: else our driver calls would break a graph that another thread captures.
 * false: the driver refuses, as before the program's cuInit; then it is not called yet.
 */
static bool relax(void)
{
    int mode = RELAXED;
    if (!kp_cudrv.cuThreadExchangeStreamCaptureMode) return true; /* a driver without modes */
    return kp_cudrv.cuThreadExchangeStreamCaptureMode(&mode) == 0;
}

static void *resolver(void *unused)
{
    bool is_relaxed = false;
    int linger = 0, done = 0;
    (void)unused;
    while ((kp_gate_get() & KP_GATE_ON) && !kp_io_helpers_alone()) {
        bool is_open = (kp_gate_get() & KP_GATE_RECORD) != 0;
        linger = is_open ? LINGER : linger - (linger > 0); /* a window that has just closed waits for work in flight */
        nap(done ? BUSY_MS : linger ? NAP_MS : IDLE_MS);
        if (!kp_load_relaxed(&kp_cudrv.has_events) || !turn_take()) continue;
        if (!is_relaxed) is_relaxed = relax();
        if (is_relaxed) {
            kp_event_clock_sample();
            if (is_open) refresh_bases();
            done = look_at_all();
        }
        turn_give();
    }
    return NULL;
}

int kp_resolve_start(void)
{
    int err = kp_items_open();
    if (err) return err;
    if (!lane) lane = kp_lane_open("cuda events");
    if (!lane) return -ENOMEM;
    kp_event_clock_sample();
    return kp_io_thread(resolver, NULL, "kprof-gpu");
}

/* ---- the end of a window ---- */

bool kp_resolve_is_drained(uint64_t end_ticks)
{
    static uint64_t asked_ticks, since_ns;
    if (!kp_items) return true;
    if (asked_ticks != end_ticks) {
        asked_ticks = end_ticks;
        since_ns = kp_clock_ns(CLOCK_MONOTONIC);
    }
    uint64_t waited_ns = kp_clock_ns(CLOCK_MONOTONIC) - since_ns;
    for (uint32_t i = 0; i < KP_ITEMS; i++) {
        struct kp_item *item = &kp_items[i];
        if (kp_load_acquire(&item->state) != KP_ITEM_READY || item->ticks > end_ticks)
            continue; /* pairs with: work.c:kp_work_put */
        if (waited_ns < GIVE_UP_NS) return false;
        KP_LOG_ONCE(1, "GPU work was still not done %d s after its window: the trace has it without times",
                    (int)(GIVE_UP_NS / 1000000000));
        kp_store_relaxed(&hurry_ticks, end_ticks);
        return waited_ns > GIVE_UP_NS + GIVE_UP_NS / 8; /* the resolver hangs */
    }
    return true;
}

static bool has_ready(uint32_t cycle)
{
    for (uint32_t i = 0; i < KP_ITEMS; i++)
        if (kp_load_acquire(&kp_items[i].state) == KP_ITEM_READY && kp_items[i].cycle <= cycle)
            return true; /* pairs with: kp_work_put */
    return false;
}

/* Waits until no work is in flight, at most `timeout_ms`; work that is done has its times then. */
static void flush(uint32_t timeout_ms)
{
    if (!lane) return;
    for (uint32_t waited = 0; waited < timeout_ms && has_ready(UINT32_MAX); waited++) {
        kp_resolve_wake();
        kp_io_nap(1000000);
    }
}

/* At exit is_drained was not waited for, so this waits, bounded. */
void kp_resolve_close(uint32_t cycle)
{
    static bool is_noted;
    if (!lane) return;
    for (int i = 0; i < CLOSE_WAIT_MS / NAP_MS && has_ready(cycle); i++) {
        if (i == CLOSE_WAIT_MS / NAP_MS / 2) kp_store_relaxed(&hurry_ticks, UINT64_MAX);
        kp_io_nap(NAP_MS * 1000000u);
    }
    kp_store_relaxed(&hurry_ticks, 0);
    if (kp_load_relaxed(&closed_cycle) < cycle) kp_store_release(&closed_cycle, cycle); /* pairs with: put_record */
    if (!is_noted) is_noted = kp_record_note("gpu_source", "interception") == 0;
}

void kp_contexts_forget(void)
{
    int saved = errno;
    flush(FORGET_WAIT_MS);
    for (int i = 0; i < FORGET_WAIT_MS * 10; i++) {
        uint32_t idle = 0;
        if (kp_cas_acq_rel(&kp_resolve_busy, &idle, 2)) break; /* pairs with: turn_take */
        kp_io_nap(100000);
    }
    for (uint32_t i = 0; i < KP_CONTEXTS; i++)
        if (kp_load_relaxed(&kp_contexts[i].handle))
            kp_store_release(&kp_contexts[i].is_gone, true); /* pairs with: work.c, look_at */
    uint32_t held = 2;
    (void)kp_cas_acq_rel(&kp_resolve_busy, &held, 0);
    errno = saved;
}
