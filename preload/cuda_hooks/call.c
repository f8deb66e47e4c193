// SPDX-License-Identifier: Apache-2.0
/*
 * call.c - begin and end of a tapped call, which make one API record in the lane of the calling thread
 *
 * Called by: the taps, on any host thread, before and after the real function (hot)
 * Owns:      per thread, its lane and the call it is in; the last correlation
 * Locks:     none. Memory: arena, a thread's first call while recording.
 * On fail:   the call is not recorded and counted
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * The real function runs outside the hook: it may take seconds, and the ticker waits for hooks when it closes a window.
 * The record is written when the call ends. A call that outlives its window is not recorded. Begin and end both
 * preserve errno.
 */
#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "preload/guard.h"
#include "collector/base/kp_poison.h"

struct state {
    uint32_t thread_no; /* number of the thread that uses it: a new thread may get a dead thread's */
    uint32_t depth, correlation;
    struct kp_thread *lane;
};

static _Atomic uint32_t correlation_last;
_Atomic bool kp_call_any, kp_call_off;

bool kp_call_seen(void) { return kp_load_relaxed(&kp_call_any); }

static __attribute__((noinline)) struct state *state_make(struct kp_thread *t)
{
    int saved = errno;
    struct state *s = t->source_state[KP_STATE_CUDART];
    if (!s) s = t->source_state[KP_STATE_CUDART] = kp_arena_alloc(sizeof *s);
    if (s && !s->lane) s->lane = kp_lane_open("cuda calls");
    if (s) {
        s->thread_no = t->thread_no;
        s->depth = 0;
    }
    errno = saved;
    return s && s->lane ? s : NULL;
}

static inline struct state *state_get(struct kp_thread *t)
{
    struct state *s = t->source_state[KP_STATE_CUDART];
    return s && s->lane && s->thread_no == t->thread_no ? s : state_make(t);
}

/* The calling thread's lane of KP_CHUNK_DEVICE chunks. Inside a hook. NULL: no memory. */
static struct kp_thread *lane_get(struct kp_thread *t)
{
    struct state *s = state_get(t);
    return s ? s->lane : NULL;
}

bool kp_call_begin(struct kp_hooked_call *call)
{
    struct kp_guard guard;
    if (!kp_load_relaxed(&kp_call_any)) kp_store_relaxed(&kp_call_any, true);
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return false;
    const bool is_recorded =
        (guard.gate & (KP_GATE_RECORD | KP_GATE_CHILD)) == KP_GATE_RECORD && !kp_load_relaxed(&kp_call_off);
    struct state *s = is_recorded ? state_get(guard.thread) : NULL;
    if (is_recorded && !s) kp_loss_count(KP_KIND_API, KP_LOSS_NO_SLOT);
    if (s) {
        call->thread = guard.thread;
        call->gate = guard.gate;
        call->item = NULL;
        call->is_capturing = false;
        call->is_inner = s->depth++ > 0;
        if (!call->is_inner) s->correlation = kp_add_relaxed(&correlation_last, 1) + 1;
        call->correlation = s->correlation;
    }
    KP_HOOK_LEAVE(&guard);
    if (s) call->start = kp_ticks();
    return s != NULL;
}

/* The name of a call's kind is a constant, so its address is the key of the cache. */
static inline uint32_t constant_name(struct kp_thread *t, const char *name)
{
    uint32_t id = kp_name_cached(t, name);
    if (id) return id;
    uint32_t len = 0;
    while (name[len]) len++;
    id = kp_name_intern(t, name, len);
    if (id) kp_name_cache(t, name, id);
    return id;
}

static void put_api(const struct kp_hooked_call *call, const struct kp_call_kind *kind, int result, uint64_t end)
{
    struct kp_thread *t = call->thread, *lane = lane_get(t);
    if (!lane) return;
    kp_store_relaxed(&lane->inside, 1);
    struct kp_rec_api *rec = kp_put_reserve(lane, call->gate, sizeof *rec, KP_KIND_API);
    if (rec) {
        uint32_t tid = kp_load_relaxed(&t->tid);
        *rec = (struct kp_rec_api){
            .head = {.kind = KP_KIND_API, .size = sizeof *rec, .name = constant_name(t, kind->name)},
            .start = call->start,
            .end = end > call->start ? end : call->start + 1,
            .correlation = call->correlation,
            .cbid = kind->cbid,
            .tid = tid,
            .thread_id = (uint32_t)t->pthread_id,
            .result = result,
            .stream = kp_stream_number(call->stream, tid),
        };
        rec->head.flags = (uint8_t)(KP_DEV_TICKS | (kind->is_driver ? KP_DEV_DRIVER : 0));
        kp_put_commit(lane, sizeof *rec);
        kp_ring_touch();
    }
    kp_store_release(&lane->inside, 0); /* pairs with: quiesce.c:is_quiet */
}

/* Id of a kernel's name; a made-up name is not cached, so the next launch asks again. */
static uint32_t kernel_name(struct kp_thread *t, const struct kp_hooked_call *call, const char *text, bool is_made_up)
{
    const void *key = call->work.function;
    uint32_t id = is_made_up ? 0 : kp_name_cached(t, key), len = 0;
    if (!id && !text && call->work.kind == KP_KIND_KERNEL) kp_loss_count(KP_KIND_KERNEL, KP_LOSS_NAME);
    if (id || !text) return id;
    while (text[len]) len++;
    id = kp_name_intern(t, text, len);
    if (id && !is_made_up) kp_name_cache(t, key, id);
    return id;
}

static void let_go(struct kp_hooked_call *call)
{
    if (call->item) kp_store_release(&call->item->state, KP_ITEM_FREE); /* pairs with: work.c:item_take */
}

/* Finds the kernel of the call's work and returns its name. */
static const char *kernel_get(struct kp_hooked_call *call, char *room, size_t room_bytes)
{
    struct kp_kernel *kernel = kp_kernel_find(call->work.function);
    if (!kernel) return NULL;
    call->work.kernel = kernel;
    if (kp_load_acquire(&kernel->is_known)) return kp_load_relaxed(&kernel->name); /* pairs with: kp_kernel_ask */
    return kp_kernel_ask(kernel, (enum kp_name_by)call->work.name_by, room, room_bytes);
}

void kp_call_end(struct kp_hooked_call *call, const struct kp_call_kind *kind, int result)
{
    uint64_t end = kp_ticks();
    int saved = errno;
    char room[512];
    const char *name = NULL;
    struct kp_guard guard;
    bool has_work = result == 0 && call->work.kind && !call->is_inner && !call->is_capturing;
    kp_work_end(call, result);
    if (has_work && call->work.kind == KP_KIND_KERNEL) name = kernel_get(call, room, sizeof room);
    struct state *s = call->thread->source_state[KP_STATE_CUDART];
    if (s && s->depth) s->depth--;
    if (KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) {
        if ((guard.gate & KP_GATE_RECORD) && kp_gate_cycle(guard.gate) == kp_gate_cycle(call->gate)) {
            put_api(call, kind, result, end);
            if (has_work) kp_work_put(call, s ? s->lane : NULL, kernel_name(guard.thread, call, name, name == room));
            has_work = false;
        }
        KP_HOOK_LEAVE(&guard);
    }
    if (has_work) let_go(call); /* the window is over: frees the item */
    errno = saved;
}
