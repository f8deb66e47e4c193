// SPDX-License-Identifier: Apache-2.0
/*
 * heap_put.c - writes the records of the host's allocator calls
 *
 * Called by: taps.c, on any host thread, around every call of the allocator while a window records (hot)
 * Owns:      per thread, the count record it adds to; LANES lanes for threads that cannot write
 * Locks:     none; a lane has a flag that is only tried. A thread that traces waits for room, at most WAIT_MS.
 * Memory:    arena, at a thread's first count
 * On fail:   a record that finds no room, or no lane, is counted as lost
 * Safe in:   signal handlers yes; after fork yes (the gate reads 0 in a child)
 *
 * A thread may free blocks where its thread state cannot be used: after our TLS destructor ran, while the state is
 * made, or in a signal handler that interrupted one of our hooks. A missed free looks like a leak, so these records go
 * through a lane.
 *
 * Counting costs a few additions: a thread adds to its last count record in place. It begins a new one after another
 * record, after the end of a range, and at a new step.
 */
#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "preload/guard.h"
#include "preload/python_bridge.h"
#include "preload/malloc/malloc.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { LANES = 4, LANE_TRIES = 64, WAIT_MS = 1000, WAIT_LONGER = 12 };
#define WAIT_NS (WAIT_MS * 1000000ul)

/* A thread's last count record, and the state that it is valid for. */
struct count {
    struct kp_rec_heapcount *rec;
    const uint8_t *at;
    uint64_t steps;
    uint32_t thread_no, cycle, ended;
};

/* The chunk that this call writes to: its thread's or a lane's. */
struct way {
    struct kp_guard guard;
    struct lane *lane; /* NULL: the thread's own chunk */
};

bool kp_heap_is_traced, kp_heap_has_python;
size_t (*kp_heap_size_of)(void *block);

static struct lane {
    struct kp_thread *thread;
    atomic_flag is_taken;
    _Atomic uintptr_t holder; /* thread_id() of the thread that took it; set after the lane's `inside` */
} lanes[LANES];

int kp_heap_put_setup(void)
{
    for (int i = 0; i < LANES; i++) {
        lanes[i].thread = kp_lane_open("heap");
        if (!lanes[i].thread) return -ENOMEM;
        lanes[i].thread->is_lane = false; /* is_lane marks chunks of devices, and these are a thread's */
    }
    return 0;
}

/* Opens lanes for the child: the parent's may write to the parent's chunks. If memory lacks it has none, and the blocks
 * that would go there are not recorded. */
void kp_heap_put_forget(void)
{
    const int err = kp_heap_put_setup();
    for (int i = 0; i < LANES; i++) {
        if (err) lanes[i].thread = NULL;
        kp_store_relaxed(&lanes[i].holder, 0);
        atomic_flag_clear_explicit(&lanes[i].is_taken, memory_order_relaxed);
    }
}

static uintptr_t thread_id(void) { return (uintptr_t)&kp_thread_self; }

/* A lane that this thread already holds may belong to an abandoned hook (collector/record/longjmp.c). */
static bool lane_take(struct lane *lane, const uintptr_t *frame)
{
    if (!lane->thread) return false;
    if (!atomic_flag_test_and_set_explicit(&lane->is_taken, memory_order_acquire))
        kp_store_relaxed(&lane->thread->inside, kp_inside_tag(frame));
    else if (kp_load_relaxed(&lane->holder) != thread_id() || !kp_inside_reclaim(lane->thread, frame)) return false;
    kp_signal_fence();
    kp_store_relaxed(&lane->holder, thread_id());
    kp_signal_fence();
    return true;
}

static void lane_give(struct lane *lane)
{
    kp_store_relaxed(&lane->holder, 0);
    kp_signal_fence();
    kp_store_release(&lane->thread->inside, 0); /* pairs with: kp_record_quiesce */
    atomic_flag_clear_explicit(&lane->is_taken, memory_order_release);
}

static bool enter_lane(struct way *way, const uintptr_t *frame)
{
    for (int tries = 0; tries < LANE_TRIES; tries++) {
        struct lane *lane = &lanes[tries % LANES];
        if (!lane_take(lane, frame)) continue;
        way->lane = lane;
        way->guard = (struct kp_guard){lane->thread, kp_gate_get()};
        return true;
    }
    kp_loss_count(kp_heap_is_traced ? KP_KIND_HEAP : KP_KIND_HEAPCOUNT, KP_LOSS_REENTRY);
    return false;
}

static __attribute__((noinline)) bool enter_slowly(struct way *way, const uintptr_t *frame)
{
    struct kp_thread *t = kp_thread_get();
    if (!t || !kp_inside_reclaim(t, frame)) return enter_lane(way, frame);
    way->guard = (struct kp_guard){t, kp_gate_get()};
    return true;
}

/* At a forked child's first allocation: begins its run. This allocation is recorded, too. */
static __attribute__((noinline)) void begin_run(void)
{
    const int saved = errno;
    kp_in_profiler = true; /* beginning a run makes libc allocate for our thread and files */
    kp_run_saw_activity();
    kp_in_profiler = false;
    errno = saved;
}

static inline __attribute__((always_inline)) bool enter(struct way *way)
{
    if (kp_in_profiler) return false;
    if (__builtin_expect((kp_gate_get() & KP_GATE_CHILD_PENDING) != 0, 0)) begin_run();
    way->lane = NULL;
    if (!(kp_gate_get() & (KP_GATE_RECORD | KP_GATE_WARM))) return false;
    struct kp_thread *t = kp_thread_self;
    if (__builtin_expect(!t || kp_load_relaxed(&t->inside), 0)) return enter_slowly(way, __builtin_frame_address(0));
    kp_store_relaxed(&t->inside, kp_inside_tag(__builtin_frame_address(0)));
    kp_signal_fence();
    way->guard.thread = t;
    way->guard.gate = kp_gate_get();
    return true;
}

static inline void leave(struct way *way)
{
    if (__builtin_expect(way->lane != NULL, 0)) lane_give(way->lane);
    else KP_HOOK_LEAVE(&way->guard);
}

/* --- counts --- */

static struct kp_rec_heapcount *count_begin(const struct kp_guard *g, struct count *c, uint64_t steps)
{
    struct kp_thread *t = g->thread;
    struct kp_rec_heapcount *rec = kp_put_reserve(t, g->gate, sizeof *rec, KP_KIND_HEAPCOUNT);
    if (!rec) return NULL;
    rec->head =
        (struct kp_rec){.kind = KP_KIND_HEAPCOUNT, .flags = kp_heap_size_of ? KP_HEAP_LIVE : 0, .size = sizeof *rec};
    rec->start = kp_ticks();
    kp_store_relaxed(&rec->taken, 0);
    kp_store_relaxed(&rec->given, 0);
    kp_store_relaxed(&rec->bytes, 0);
    kp_store_relaxed(&rec->live, 0);
    kp_put_commit(t, sizeof *rec);
    *c = (struct count){rec, t->at, steps, t->thread_no, kp_gate_cycle(g->gate), t->ended};
    return rec;
}

static inline struct kp_rec_heapcount *count_get(const struct kp_guard *g)
{
    struct kp_thread *t = g->thread;
    struct count *c = t->source_state[KP_STATE_HEAP];
    const uint64_t steps = kp_steps_seen();
    if (!c) c = t->source_state[KP_STATE_HEAP] = kp_arena_alloc(sizeof *c);
    if (!c) kp_loss_count(KP_KIND_HEAPCOUNT, KP_LOSS_NO_SLOT);
    if (!c) return NULL;
    bool is_same = c->at == t->at && c->ended == t->ended && c->cycle == kp_gate_cycle(g->gate) && c->steps == steps &&
                   c->thread_no == t->thread_no;
    return is_same ? c->rec : count_begin(g, c, steps);
}

#define ADD(word, v) kp_store_relaxed(&(word), kp_load_relaxed(&(word)) + (v)) /* only its thread writes it */

static void count(const struct kp_guard *g, uint32_t taken, uint32_t given, uint64_t bytes, int64_t live)
{
    struct kp_rec_heapcount *rec = count_get(g);
    if (!rec) return;
    ADD(rec->taken, taken);
    ADD(rec->given, given);
    ADD(rec->bytes, bytes);
    ADD(rec->live, live);
}

/* --- blocks --- */

static bool is_short(uint64_t address, uint64_t bytes, uint32_t flags)
{
    if (flags & KP_HEAP_MAPPED) return false;
    return (flags & KP_HEAP_FREE) ||
           (address % 8 == 0 && address < KP_HEAP_ADDRESS_END && bytes >> KP_HEAP_BYTES_BITS == 0);
}

/*
 * A lost free would look like a leak, so a thread that traces waits until the writer has made room (decisions/029).
 * It does so only for its own chunk, since a lane may be used in a signal handler. After a wait in vain (no writer, a
 * disk that hangs) no thread waits for a while, longer each time.
 */
static __attribute__((noinline)) void wait_for_room(const struct kp_guard *g, uint32_t size)
{
    static _Atomic uint64_t next_ns;
    static _Atomic uint32_t in_vain;
    const int saved = errno;
    const uint64_t began = kp_clock_ns(CLOCK_MONOTONIC);
    if (began >= kp_load_relaxed(&next_ns)) {
        const bool has = kp_put_wait(g->thread, g->gate, size, WAIT_MS);
        const uint64_t now = kp_clock_ns(CLOCK_MONOTONIC);
        if (has) kp_store_relaxed(&in_vain, 0);
        else if (now - began >= WAIT_NS)
            kp_store_relaxed(&next_ns, now + (WAIT_NS << (kp_add_relaxed(&in_vain, 1) % WAIT_LONGER)));
    }
    errno = saved;
}

static void put(const struct way *way, uint64_t address, uint64_t bytes, uint32_t flags, uint32_t stack)
{
    const struct kp_guard *g = &way->guard;
    const bool shrinks = is_short(address, bytes, flags);
    const uint32_t size = shrinks ? KP_HEAP_SHORT_BYTES : (uint32_t)sizeof(struct kp_rec_heap);
    if (__builtin_expect(!way->lane && !kp_put_has_room(g->thread, g->gate, size), 0)) wait_for_room(g, size);
    struct kp_rec_heap *rec = kp_put_reserve(g->thread, g->gate, size, KP_KIND_HEAP);
    if (!rec) return;
    if (!shrinks) flags |= KP_HEAP_LONG;
    rec->head = (struct kp_rec){.kind = KP_KIND_HEAP, .flags = (uint8_t)flags, .size = (uint16_t)size, .name = stack};
    rec->block = flags & (KP_HEAP_LONG | KP_HEAP_FREE) ? address : address / 8 << KP_HEAP_BYTES_BITS | bytes;
    if (!shrinks) rec->bytes = bytes;
    rec->start = kp_ticks();
    kp_put_commit(g->thread, size);
}

/* Python's frames are left out where a signal handler allocates, since the interpreter may be changing them. */
static uint32_t stack_of(const struct way *way)
{
    struct kp_thread *t = way->guard.thread;
    const uint32_t native = kp_unwind_stack(t);
    if (!kp_heap_has_python || way->lane || kp_unwind_was_interrupted(t)) return native;
    const uint32_t python = kp_caller_stack_anywhere(t);
    return python ? kp_unwind_stack_with(t, native, python) : native;
}

void kp_heap_put_taken(void *block, size_t bytes, int64_t live, uint32_t flags)
{
    struct way way;
    if (!enter(&way)) return;
    if (way.guard.gate & KP_GATE_RECORD) {
        if (kp_heap_is_traced) put(&way, (uintptr_t)block, bytes, flags, stack_of(&way));
        else if (!(flags & KP_HEAP_RESTORED)) count(&way.guard, 1, flags & KP_HEAP_REALLOC ? 1 : 0, bytes, live);
    } else if (way.guard.gate & KP_GATE_WARM && kp_heap_is_traced) {
        (void)stack_of(&way); /* learning the code for unwinding would cost the first recorded step much time */
    }
    leave(&way);
}

void kp_heap_put_given(void *block, size_t bytes, int64_t live, uint32_t flags)
{
    struct way way;
    if (!enter(&way)) return;
    if (way.guard.gate & KP_GATE_RECORD) {
        if (kp_heap_has_python && kp_caller_is_ending()) flags |= KP_HEAP_ENDING;
        if (kp_heap_is_traced) put(&way, (uintptr_t)block, bytes, flags | KP_HEAP_FREE, 0);
        else count(&way.guard, 0, 1, 0, live);
    }
    leave(&way);
}
