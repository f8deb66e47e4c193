// SPDX-License-Identifier: Apache-2.0
/*
 * thread.c - the write state of each host thread: not created, alive, dead
 *
 * Called by: any host thread at its first hook (creation) and by libc when the thread exits
 * Owns:      the list of all thread structs. They are reused, never freed.
 * Locks:     none. The list only grows at its head. A compare-and-swap of `life` claims a dead entry.
 * Memory:    arena. pthread_setspecific may make libc allocate once for each thread; hooks pass through meanwhile.
 * On fail:   NULL: this thread's hooks pass through, counted as "no slot"
 * Safe in:   signal handlers yes (a handler that interrupts a creation gets NULL)
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/sys/kp_sigblock.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

#define KP_ORPHAN_ROOM 1024 /* a dead thread's chunk with so many free bytes becomes an orphan */

enum { NOT_CREATED, CREATING, CREATED, EXITED };

_Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));
static _Thread_local uint8_t stage __attribute__((tls_model("initial-exec")));

void (*kp_thread_on_exit)(struct kp_thread *thread);
static struct kp_thread *_Atomic list_head;
static _Atomic uint32_t number_last, alive_count, dead_count;
static _Atomic uint32_t key_made; /* 0, or key + 1 */

struct kp_thread *kp_thread_first(void) { return kp_load_acquire(&list_head); /* pairs with: thread.c:thread_new */ }

uint32_t kp_thread_count(void) { return kp_load_relaxed(&alive_count); }

/* ---- exit ---- */

static void thread_exit(void *arg)
{
    struct kp_thread *t = arg;
    if (t != kp_thread_self) return; /* the state of a thread of the parent, before a fork */
    kp_store_relaxed(&t->inside, 1); /* from here on, hooks of signal handlers pass through */
    kp_signal_fence();
    if (kp_thread_on_exit) kp_thread_on_exit(t);
    stage = EXITED;
    kp_thread_self = NULL;
    if (t->chunk && t->end - t->at >= KP_ORPHAN_ROOM) kp_chunk_orphan(t->chunk, t->chunk_cycle);
    else if (t->chunk) kp_chunk_quit(t->chunk, t->chunk_cycle);
    t->chunk = NULL;
    t->chunk_cycle = 0;
    t->at = t->end = NULL;
    kp_add_relaxed(&alive_count, (uint32_t)-1);
    kp_add_relaxed(&dead_count, 1);
    kp_store_release(&t->inside, 0); /* pairs with: quiesce.c:is_quiet */
    /* pairs with: thread.c:thread_reuse */
    kp_store_release(&t->life, KP_THREAD_DEAD);
}

/* The key exists for its destructor. If two threads create keys at once, the loser deletes its own. */
static void key_bind(struct kp_thread *t)
{
    uint32_t made = kp_load_acquire(&key_made); /* pairs with: itself below */
    if (made == 0) {
        pthread_key_t key;
        if (kp_fail_point("key") != 0 || pthread_key_create(&key, thread_exit) != 0) return;
        if (kp_cas_acq_rel(&key_made, &made, (uint32_t)key + 1)) made = (uint32_t)key + 1;
        else pthread_key_delete(key);
    }
    pthread_setspecific((pthread_key_t)(made - 1), t);
}

/* ---- creation ---- */

static struct kp_thread *thread_reuse(void)
{
    if (kp_load_relaxed(&dead_count) == 0) return NULL;
    for (struct kp_thread *t = kp_thread_first(); t; t = t->next) {
        uint32_t dead = KP_THREAD_DEAD;
        if (kp_load_relaxed(&t->life) != dead) continue;
        if (!kp_cas_acq_rel(&t->life, &dead, KP_THREAD_ALIVE)) continue; /* pairs with: thread.c:thread_exit */
        kp_add_relaxed(&dead_count, (uint32_t)-1);
        return t;
    }
    return NULL;
}

static void thread_link(struct kp_thread *t)
{
    struct kp_thread *head = kp_load_relaxed(&list_head);
    do t->next = head;
    while (!kp_cas_acq_rel(&list_head, &head, t)); /* pairs with: thread.c:kp_thread_first */
}

static struct kp_thread *thread_new(void)
{
    struct kp_thread *t = kp_arena_alloc_line(sizeof *t);
    if (t == NULL) return NULL;
    kp_store_relaxed(&t->life, KP_THREAD_ALIVE);
    thread_link(t);
    return t;
}

static struct kp_thread *state_create(void)
{
    stage = CREATING;
    kp_signal_fence();
    struct kp_thread *t = thread_reuse();
    if (t == NULL) t = thread_new();
    if (t == NULL) {
        kp_loss_count(0, KP_LOSS_NO_SLOT);
        stage = NOT_CREATED;
        return NULL;
    }
    kp_store_relaxed(&t->inside, 1);     /* libc may allocate below: the malloc hook passes through */
    kp_store_release(&t->pthread_id, 0); /* pairs with: preload/cupti/lane.c:thread_tid; of the dead thread it served */
    kp_store_release(&t->tid, kp_io_tid()); /* pairs with: lane.c:tid_of, which then sees the 0 */
    t->thread_no = kp_add_relaxed(&number_last, 1) + 1;
    kp_store_release(&t->pthread_id,
                     (uint64_t)(uintptr_t)pthread_self()); /* pairs with: preload/cupti/lane.c:thread_tid */
    memset(t->name, 0, sizeof t->name);
    kp_io_thread_name(t->name);
    key_bind(t);
    kp_add_relaxed(&alive_count, 1);
    kp_store_release(&t->inside, 0); /* pairs with: quiesce.c:is_quiet */
    kp_signal_fence();
    kp_thread_self = t;
    stage = CREATED;
    return t;
}

/* Signals are blocked: a handler that jumped out would leave this thread without a state for ever. */
struct kp_thread *kp_thread_create(void)
{
    struct kp_sigblock_all stay;
    if (stage != NOT_CREATED) return NULL;
    const int saved = errno;
    kp_sigblock_all_begin(&stay);
    struct kp_thread *t =
        stage == NOT_CREATED ? state_create() : kp_thread_self; /* a handler's hook may have come first */
    kp_sigblock_all_end(&stay);
    errno = saved;
    return t;
}

struct kp_thread *kp_lane_open(const char *name)
{
    struct kp_thread *t = kp_arena_alloc_line(sizeof *t);
    if (t == NULL) return NULL;
    t->is_lane = true;
    t->thread_no = kp_add_relaxed(&number_last, 1) + 1;
    kp_fmt(t->name, sizeof t->name, "%s", name);
    kp_store_relaxed(&t->life, KP_THREAD_ALIVE);
    thread_link(t);
    return t;
}

bool kp_thread_is_gone(const struct kp_thread *t)
{
    if (kp_load_relaxed(&t->life) == KP_THREAD_DEAD) return true;
    if (t->is_lane) return false;
    int saved = errno;
    bool gone = kp_io_is_thread_gone(kp_load_relaxed(&t->tid));
    errno = saved;
    return gone;
}

void kp_thread_forget(void)
{
    uint32_t made = kp_load_relaxed(&key_made);
    if (made) pthread_setspecific((pthread_key_t)(made - 1), NULL);
    kp_thread_self = NULL;
    stage = NOT_CREATED;
    kp_store_relaxed(&list_head, NULL);
    kp_store_relaxed(&alive_count, 0);
    kp_store_relaxed(&dead_count, 0);
    kp_store_relaxed(&number_last, 0);
}
