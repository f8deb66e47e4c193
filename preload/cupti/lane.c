// SPDX-License-Identifier: Apache-2.0
/*
 * lane.c - writes the records of a buffer that CUPTI completed into the spool
 *
 * Called by: buffer.c on kprof-cuda; with the program's buffers on CUPTI's worker or on the thread that flushes
 * Owns:      the lanes (kp_record.h), the counts of records, the balance of launches and kernels
 * Locks:     a flag for each lane, tried for a bounded time
 * Memory:    none after kp_lane_setup
 * On fail:   drops a record without room and counts it by kind; before that kprof-cuda may wait for the writer
 * Safe in:   after fork no (the gate is shut, nothing is decoded)
 *
 * Cycles: `collecting` is the cycle whose chunks take the records that arrive. For a buffer a lane sets `inside`, then
 * reads `collecting` before each record. kp_lane_close stores 0, and kp_record_quiesce waits for `inside`. After that
 * no lane writes to a chunk of the cycle. Records that arrive while `collecting` is 0 are late, and are counted.
 *
 * Balance: each kernel launch among the calls announces one kernel. A hash of the correlation id is added for a launch
 * and subtracted for a kernel. The sum is 0 when all have run, in any order. Launches into a captured graph and kernels
 * of graphs do not count. A lost record, or a capture whose end is not recorded, upsets the balance until
 * kp_lane_forget_work, which each arming calls.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum {
    LANES = 8,
    TURNS_MAX = 2000,
    WAIT_MS = 50,
    NO_WAIT_MS = 1000,
    RECENT = 16,
    NAME_MOST = 8000,
    LOOK_BYTES = 1024,
    CHECKED_KERNELS = 32,
    ODD_ENOUGH = 4,
    KERNELS_GRID_MOST = 0x7fffffff
};

struct cupti_lane {
    struct kp_thread *thread;
    _Atomic uint32_t is_taken;
    /* correlations of the last launches, since a driver call inside a runtime call is no second launch */
    uint32_t recent[RECENT];
    uint32_t recent_at;
    uint32_t unknown_thread;  /* no struct kp_thread has this id; not searched again in this buffer */
    bool may_wait;            /* for the writer, in this buffer */
    bool may_block;           /* this is kprof-cuda: it may take a mutex */
    char text[NAME_MOST + 1]; /* copy of a name, made by the kernel */
    uint8_t pad[64];
};

static struct cupti_lane lanes[LANES];
static _Atomic uint32_t lane_count;
static _Atomic uint32_t collecting, recorded_last, closed_last;
_Atomic bool kp_lane_ids_are_tids, kp_lane_looks;
static _Atomic uint64_t no_wait_until_ms; /* the writer had no room: no thread waits for it before */

static struct {
    _Atomic uint64_t records, kernels, late, holes, lost_bytes, invalid[KP_KIND_N];
    _Atomic uint64_t launched, ran; /* their sums of hashed correlations follow */
    _Atomic uint64_t launched_sum, ran_sum;
    _Atomic uint64_t base, base_sum; /* differences that were given up */
    _Atomic int32_t captures;        /* streams being captured */
    _Atomic bool is_least;           /* more may be lost than is counted */
    _Atomic uint64_t sound, odd;     /* of the first kernels, how many passed the check and failed it */
} count;

/* ---- set-up and switching ---- */

int kp_lane_setup(void)
{
    while (kp_load_relaxed(&lane_count) < LANES) {
        struct cupti_lane *l = &lanes[kp_load_relaxed(&lane_count)];
        l->thread = kp_lane_open("cuda");
        if (!l->thread) break;
        kp_name_cache(l->thread, NULL, 1);                               /* makes the cache, which each buffer clears */
        kp_store_release(&lane_count, kp_load_relaxed(&lane_count) + 1); /* pairs with: lane_take */
    }
    return kp_load_relaxed(&lane_count) ? 0 : -ENOMEM;
}

void kp_lane_collect(uint32_t cycle)
{
    if (kp_gate_get() & KP_GATE_RECORD) kp_store_relaxed(&recorded_last, cycle);
    kp_store_release(&collecting, cycle); /* pairs with: keep */
}

void kp_lane_close(uint32_t cycle)
{
    uint32_t seen = cycle;
    (void)kp_cas_acq_rel(&collecting, &seen, 0); /* pairs with: keep; kp_record_quiesce waits for its readers */
    if (kp_load_relaxed(&closed_last) < cycle) kp_store_relaxed(&closed_last, cycle);
}

uint32_t kp_lane_recorded(void) { return kp_load_relaxed(&recorded_last); }

/* Is this the warm-up, with no older window that still drains? Records then began before the window. */
static bool is_only_warming(void)
{
    return (kp_gate_get() & (KP_GATE_WARM | KP_GATE_RECORD)) == KP_GATE_WARM &&
           kp_load_relaxed(&recorded_last) <= kp_load_relaxed(&closed_last);
}

static struct cupti_lane *lane_take(bool may_wait)
{
    uint32_t lanes_now = kp_load_acquire(&lane_count); /* pairs with: kp_lane_setup */
    for (int turn = 0; turn < (may_wait ? TURNS_MAX : 1) && lanes_now; turn++) {
        for (uint32_t i = 0; i < lanes_now; i++)
            if (!kp_load_relaxed(&lanes[i].is_taken) && !kp_exchange_acquire(&lanes[i].is_taken, 1)) return &lanes[i];
        sched_yield();
    }
    return NULL;
}

/* ---- launches and kernels ---- */

static bool was_recent(const struct cupti_lane *l, uint32_t correlation)
{
    for (int i = 0; i < RECENT; i++)
        if (l->recent[i] == correlation) return true;
    return false;
}

static uint64_t spread(uint32_t correlation) { return ((uint64_t)correlation + 1) * UINT64_C(0x9e3779b97f4a7c15); }

static void balance_call(struct cupti_lane *l, const struct kp_rec_api *api, uint32_t what)
{
    if (what & KP_CALL_CAPTURE_BEGINS) kp_graphs_see();
    if (what & KP_CALL_CAPTURE_BEGINS && api->result == 0) kp_add_relaxed(&count.captures, 1);
    if (what & KP_CALL_CAPTURE_ENDS && kp_load_relaxed(&count.captures) > 0) kp_add_relaxed(&count.captures, -1);
    if (!(what & KP_CALL_LAUNCH) || api->result != 0 || kp_load_relaxed(&count.captures) > 0) return;
    if (was_recent(l, api->correlation)) return;
    l->recent[l->recent_at++ % RECENT] = api->correlation;
    kp_add_relaxed(&count.launched, 1);
    kp_add_relaxed(&count.launched_sum, spread(api->correlation));
}

static void balance_kernel(const struct kp_rec_kernel *kernel)
{
    kp_add_relaxed(&count.kernels, 1);
    if (kernel->graph) {
        kp_graphs_see();
        return; /* the graph's launch is not counted either */
    }
    kp_add_relaxed(&count.ran, 1);
    kp_add_relaxed(&count.ran_sum, spread(kernel->correlation));
}

static uint64_t difference(uint64_t *sum)
{
    *sum = kp_load_relaxed(&count.launched_sum) - kp_load_relaxed(&count.ran_sum);
    return kp_load_relaxed(&count.launched) - kp_load_relaxed(&count.ran);
}

/* Also forgets captures that are under way, since CUPTI may never record their end. */
void kp_lane_forget_work(void)
{
    uint64_t sum, n = difference(&sum);
    kp_store_relaxed(&count.captures, 0);
    kp_store_relaxed(&count.base, n);
    kp_store_relaxed(&count.base_sum, sum);
}

uint64_t kp_lane_launched(void) { return kp_load_relaxed(&count.launched) - kp_load_relaxed(&count.base); }

/* The answer is approximate if the balance is not exact, since kernels of parallel streams end in any order. */
bool kp_lane_has_run(uint64_t launched)
{
    uint64_t sum, n = difference(&sum);
    if (n == kp_load_relaxed(&count.base) && sum == kp_load_relaxed(&count.base_sum)) return true;
    return (int64_t)(kp_load_relaxed(&count.ran) - launched) >= 0;
}

uint64_t kp_lane_records(void) { return kp_load_relaxed(&count.records); }

uint64_t kp_lane_kernels(void) { return kp_load_relaxed(&count.kernels); }

uint64_t kp_lane_timeless(void) { return kp_load_relaxed(&count.invalid[KP_KIND_KERNEL]); }

/* ---- is the layout right ---- */

enum check { PASSES, FAILS, IS_NOT_KNOWN, IS_ODD };

/* If kp_io_peek cannot look (no descriptor for a pipe, a sandbox), the check is inconclusive. */
static enum check kernel_look(const struct kp_decoded *d)
{
    const struct kp_rec_kernel *k = &d->kernel;
    char first;
    const int rc = d->name ? kp_io_peek(d->name, &first, 1) : -EFAULT;
    if (rc != 0) return rc == -EFAULT ? FAILS : IS_NOT_KNOWN;
    return k->grid[0] - 1 < KERNELS_GRID_MOST && k->block[0] - 1 < 4096 && k->device < 4096 ? PASSES : FAILS;
}

static bool is_wrong(uint64_t sound, uint64_t odd)
{
    return odd > CHECKED_KERNELS / 2 || (odd >= ODD_ENOUGH && sound == 0);
}

/* Checks the first kernels only, since a layout is right or wrong for the whole process. A single odd kernel proves
 * nothing: a graph node that the device updated has no grid. It is kept if more kernels passed. */
static enum check kernel_check(const struct kp_decoded *d)
{
    const uint64_t sound = kp_load_relaxed(&count.sound), odd = kp_load_relaxed(&count.odd);
    if (is_wrong(sound, odd)) return FAILS;
    if (sound + odd >= CHECKED_KERNELS) return PASSES;
    const enum check is = kernel_look(d);
    if (is == PASSES) kp_add_relaxed(&count.sound, 1);
    if (is == FAILS) kp_add_relaxed(&count.odd, 1);
    return is == FAILS && sound > odd ? IS_ODD : is;
}

bool kp_lane_is_doubtful(bool at_end)
{
    const uint64_t sound = kp_load_relaxed(&count.sound), odd = kp_load_relaxed(&count.odd);
    return is_wrong(sound, odd) || (at_end && odd > sound);
}

/* ---- names and threads ---- */

/* Copies text that may be unmapped with its module. NULL: it is unmapped. */
static const char *looked_at(struct cupti_lane *l, const char *text)
{
    for (size_t n = 0, step; n < NAME_MOST; n += step) {
        step = LOOK_BYTES - ((uintptr_t)(text + n) & (LOOK_BYTES - 1)); /* the next page may not be mapped */
        if (step > NAME_MOST - n) step = NAME_MOST - n;
        if (kp_io_peek(text + n, l->text + n, step) != 0) return NULL;
        if (memchr(l->text + n, 0, step)) break;
    }
    l->text[NAME_MOST] = 0;
    return l->text;
}

/* The cache of names serves one buffer: a name may be unmapped once its buffer was read. */
static uint32_t kernel_name(struct cupti_lane *l, const char *text, bool looks)
{
    if (!text) return 0;
    uint32_t id = kp_name_cached(l->thread, text);
    if (id) return id;
    const char *read = looks ? looked_at(l, text) : text;
    if (read) id = kp_name_intern(l->thread, read, (uint32_t)strnlen(read, NAME_MOST));
    else kp_loss_count(KP_KIND_KERNEL, KP_LOSS_NAME);
    if (id) kp_name_cache(l->thread, text, id);
    return id;
}

static uint32_t call_name(struct cupti_lane *l, struct kp_cupti_call *call)
{
    uint32_t id = kp_load_relaxed(&call->id);
    if (id || !call->name) return id;
    id = kp_name_intern(l->thread, call->name, call->len);
    kp_store_relaxed(&call->id, id);
    return id;
}

static bool is_named(const struct kp_thread *t, uint32_t thread_id)
{
    uint64_t id = kp_load_acquire(&t->pthread_id); /* pairs with: thread.c:kp_thread_create */
    return id != 0 && (uint32_t)id == thread_id;
}

/* Returns the tid; 0: the struct serves another thread by now. */
static uint32_t tid_of(const struct kp_thread *t, uint32_t thread_id)
{
    const uint32_t tid = kp_load_acquire(&t->tid); /* pairs with: thread.c:kp_thread_create */
    return is_named(t, thread_id) ? tid : 0;
}

/* Returns the tid, 0 if no struct kp_thread fits. CUPTI's id is the low half of pthread_self(), or the tid if CUPTI was
 * told so. */
static uint32_t thread_tid(struct cupti_lane *l, uint32_t thread_id)
{
    static _Atomic(struct kp_thread *) guess;
    if (kp_load_relaxed(&kp_lane_ids_are_tids)) return thread_id;
    struct kp_thread *t = kp_load_acquire(&guess); /* pairs with: the store of guess */
    if (t && is_named(t, thread_id) && kp_load_relaxed(&t->life) == KP_THREAD_ALIVE) return tid_of(t, thread_id);
    if (thread_id == l->unknown_thread) return 0;
    /* The live thread, else the youngest that ended: libc reuses stacks, and with them pthread_self(). */
    struct kp_thread *found = NULL;
    for (t = kp_thread_first(); t; t = t->next) {
        if (!is_named(t, thread_id) || (found && found->thread_no > t->thread_no)) continue;
        found = t;
        if (kp_load_relaxed(&t->life) == KP_THREAD_ALIVE) break;
    }
    if (!found) l->unknown_thread = thread_id;
    else kp_store_release(&guess, found); /* pairs with: the load of guess */
    return found ? tid_of(found, thread_id) : 0;
}

/* ---- one record ---- */

static void put(struct cupti_lane *l, const struct kp_decoded *d, uint32_t cycle)
{
    uint64_t gate = kp_gate_make(cycle, 0);
    uint32_t bytes = d->head.size;
    struct kp_thread *t = l->thread;
    bool is_full = !kp_put_has_room(t, gate, bytes);
    if (is_full && l->may_wait && !kp_put_wait(t, gate, bytes, WAIT_MS)) {
        l->may_wait = false;
        kp_store_relaxed(&no_wait_until_ms, kp_clock_ms() + NO_WAIT_MS);
    }
    void *room = kp_put_reserve(t, gate, bytes, (enum kp_kind)d->head.kind);
    if (!room) return;
    memcpy(room, d, bytes);
    kp_put_commit(t, bytes);
}

/* As settle_call. If the check could not look at the record, its name is not read. */
static bool settle_kernel(struct cupti_lane *l, struct kp_decoded *d)
{
    const enum check is = kernel_check(d);
    if (is == FAILS) return false;
    balance_kernel(&d->kernel);
    if (is != IS_NOT_KNOWN) d->head.name = kernel_name(l, d->name, is == IS_ODD || kp_load_relaxed(&kp_lane_looks));
    else kp_loss_count(KP_KIND_KERNEL, KP_LOSS_NAME);
    return true;
}

/* Fills in the name and the tid. false: drop the record. */
static bool settle_call(struct cupti_lane *l, struct kp_decoded *d)
{
    bool is_driver = d->head.flags & KP_DEV_DRIVER;
    if (d->api.cbid >= KP_CALLS) return !is_driver;
    struct kp_cupti_call *call = &kp_calls[is_driver][d->api.cbid];
    if (call->what & (KP_CALL_LAUNCH | KP_CALL_CAPTURE_BEGINS | KP_CALL_CAPTURE_ENDS))
        balance_call(l, &d->api, call->what);
    if (call->what & KP_CALL_NOISE) return false;
    if (!(call->what & KP_CALL_ASKS)) kp_ring_touch();
    d->head.name = call_name(l, call);
    d->api.tid = thread_tid(l, d->api.thread_id);
    return true;
}

static bool settle(struct cupti_lane *l, struct kp_decoded *d)
{
    switch (d->head.kind) {
    case KP_KIND_SYNC: /* these also come when only the program enabled them */
    case KP_KIND_CUDAEVENT: return kp_cupti_wants_waits();
    case KP_KIND_API: return settle_call(l, d);
    case KP_KIND_KERNEL: return settle_kernel(l, d);
    case KP_KIND_CONTEXT: /* these two take the mutex of META records */
        if (l->may_block) kp_context_write(&d->context);
        return false;
    case KP_KIND_DEVICE:
        if (l->may_block) kp_device_write(d);
        return false;
    default: return true;
    }
}

/* Every kind with times has its start at the same offset. */
static uint64_t stamp_of(const struct kp_decoded *d) { return d->head.kind == KP_KIND_CUDAEVENT ? 0 : d->api.start; }

static void keep(struct cupti_lane *l, struct kp_decoded *d)
{
    if (d->is_invalid) kp_add_relaxed(&count.invalid[d->head.kind], 1);
    if (d->head.kind == 0 || (d->is_invalid && !(d->head.flags & KP_DEV_NO_TIME)) || !settle(l, d)) return;
    uint32_t cycle = kp_load_acquire(&collecting); /* pairs with: kp_lane_collect, kp_lane_close */
    if (cycle == 0) {                              /* late, or enabled before the first window (KP_CUPTI_EARLY) */
        kp_add_relaxed(&count.late, kp_load_relaxed(&closed_last) != 0);
        return;
    }
    if (d->head.kind != KP_KIND_CUDAEVENT && is_only_warming()) return;
    if (kp_domain_of(stamp_of(d)) & 1) d->head.flags |= KP_DEV_DOMAIN;
    put(l, d, cycle);
}

_Static_assert(offsetof(struct kp_rec_kernel, start) == 8 && offsetof(struct kp_rec_copy, start) == 8 &&
                   offsetof(struct kp_rec_sync, start) == 8 && offsetof(struct kp_rec_overhead, start) == 8 &&
                   offsetof(struct kp_rec_graphrun, start) == 8 && offsetof(struct kp_rec_api, start) == 8,
               "stamp_of");

static void decode_all(struct cupti_lane *l, const uint8_t *buffer, size_t valid_bytes)
{
    struct kp_walk walk = {.at = buffer, .end = buffer + valid_bytes, .sizes = kp_sizes};
    struct kp_decoded d;
    const uint8_t *record;
    uint32_t bytes;
    uint64_t records = 0;
    for (; (record = kp_walk_next(&walk, &bytes)); records++) {
        kp_decode_record(record, bytes, &d);
        keep(l, &d);
    }
    kp_add_relaxed(&count.records, records);
    if (walk.holes) kp_add_relaxed(&count.holes, walk.holes);
    if (walk.lost) kp_add_relaxed(&count.lost_bytes, walk.lost);
    if (walk.lost) kp_lane_count_least(walk.lost);
}

/* false: the client's own buffer comes between windows, or this is a forked child. */
bool kp_lane_is_open(void)
{
    if (!(kp_gate_get() & KP_GATE_ON)) return false;
    return kp_cupti_state() == KP_CUPTI_STATE_ARMED || kp_load_relaxed(&collecting) != 0;
}

void kp_lane_decode(const uint8_t *buffer, size_t valid_bytes, bool may_wait)
{
    if (!valid_bytes || !kp_lane_is_open()) return;
    int saved = errno;
    struct cupti_lane *l = lane_take(may_wait);
    if (!l) {
        (void)kp_lane_count_lost(buffer, valid_bytes);
        errno = saved;
        return;
    }
    l->may_block = may_wait;
    l->may_wait = may_wait && kp_clock_ms() >= kp_load_relaxed(&no_wait_until_ms);
    l->unknown_thread = 0;
    if (l->thread->names) memset(l->thread->names, 0, sizeof *l->thread->names);
    kp_store_relaxed(&l->thread->inside, 1);
    kp_signal_fence();
    decode_all(l, buffer, valid_bytes);
    kp_signal_fence();
    kp_store_release(&l->thread->inside, 0); /* pairs with: quiesce.c:is_quiet */
    kp_store_release(&l->is_taken, 0);       /* pairs with: lane_take */
    errno = saved;
}

uint64_t kp_lane_count_lost(const uint8_t *buffer, size_t valid_bytes)
{
    uint64_t lost = 0;
    struct kp_walk walk = {.at = buffer, .end = buffer + valid_bytes, .sizes = kp_sizes};
    struct kp_decoded d;
    const uint8_t *record;
    uint32_t bytes;
    while ((record = kp_walk_next(&walk, &bytes))) {
        kp_decode_record(record, bytes, &d);
        if (d.head.kind) kp_loss_count((enum kp_kind)d.head.kind, KP_LOSS_NO_SLOT);
        lost += d.head.kind != 0;
    }
    return lost;
}

static uint32_t bytes_most(void)
{
    uint32_t most = 8;
    for (int kind = 0; kind < KP_CUPTI_KINDS; kind++)
        if (kp_sizes[kind] > most) most = kp_sizes[kind];
    return most;
}

/* Its kind is 0, since it is not known which. */
void kp_lane_count_least(size_t bytes)
{
    const size_t most = bytes_most();
    for (size_t n = (bytes + most - 1) / most; n > 0; n--) kp_loss_count(0, KP_LOSS_NO_SLOT);
    kp_store_relaxed(&count.is_least, true);
}

bool kp_lane_is_least(void) { return kp_load_relaxed(&count.is_least); }

/* ---- notes on losses ---- */

static void note_count(const char *key, _Atomic uint64_t *value, uint64_t *said)
{
    char text[24];
    uint64_t now = kp_load_relaxed(value);
    if (now == *said) return;
    *said = now;
    kp_fmt(text, sizeof text, "%lu", (unsigned long)now);
    kp_cupti_note(key, text);
}

void kp_lane_write_notes(void)
{
    static const char *const keys[KP_KIND_N] = {
        [KP_KIND_API] = "gpu_invalid_api",        [KP_KIND_KERNEL] = "gpu_invalid_kernel",
        [KP_KIND_MEMCPY] = "gpu_invalid_memcpy",  [KP_KIND_MEMSET] = "gpu_invalid_memset",
        [KP_KIND_SYNC] = "gpu_invalid_sync",      [KP_KIND_OVERHEAD] = "gpu_invalid_overhead",
        [KP_KIND_GRAPHRUN] = "gpu_invalid_graph",
    };
    static uint64_t said[KP_KIND_N], said_late, said_holes, said_lost, said_odd;
    for (int kind = 0; kind < KP_KIND_N; kind++)
        if (keys[kind]) note_count(keys[kind], &count.invalid[kind], &said[kind]);
    note_count("gpu_late", &count.late, &said_late);
    note_count("gpu_odd_kernels", &count.odd, &said_odd);
    note_count("gpu_hole_bytes", &count.holes, &said_holes);
    note_count("gpu_lost_bytes", &count.lost_bytes, &said_lost);
}
