// SPDX-License-Identifier: Apache-2.0
/*
 * abandoned.c - a hook that never ends: a signal handler struck it and left by siglongjmp, an exception, another context
 *
 * Called by: any host thread whose hook finds the thread inside another (rare); whoever closes a window
 * Locks:     none. Memory: none.
 * On fail:   where memory cannot be looked at, the hook counts as there: what its thread does is not recorded, and counted
 * Safe in:   signal handlers yes; after fork yes
 *
 * `inside` says in which frame the hook is, and 16 bits of the return address in it. While the hook is there, be it struck by nested handlers, or
 * asleep on a stack that nobody runs on just now, they are what they were: it returns by them. So when they are others, or a hook has its own frame
 * in that very place, the hook is gone. Where the stack is now says nothing: on signal stacks and those of coroutines it is anywhere. (A program that
 * copies its stack away, and back again later, in a handler that struck a hook, is not told apart.)
 */
#include "collector/record/record_internal.h"

#include <errno.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

enum { NO_FRAME = 1 }; /* lanes, birth and death: not to be told */
enum { REACH = 2048 };  /* about what a stack has left wherever signals come */

static const uintptr_t *frame_of(uint64_t inside)
{
    return (const uintptr_t *)(uintptr_t)(inside & ((UINT64_C(1) << KP_INSIDE_TAG_AT) - 1));
}

bool kp_inside_is_abandoned(const struct kp_thread *t)
{
    const uint64_t inside = kp_load_relaxed(&t->inside);
    uintptr_t word;
    if (inside <= NO_FRAME) return false;
    const int saved = errno;
    const int rc = kp_io_peek(frame_of(inside) + 1, &word, sizeof word);
    errno = saved;
    return rc == -EFAULT || (rc == 0 && (uint64_t)word << KP_INSIDE_TAG_AT != inside - (uintptr_t)frame_of(inside));
}

/* A record that was begun is not there; one whose commit was under way is, when it was published. */
static void forget_half_done(struct kp_thread *t)
{
    if (t->chunk_cycle) t->at = (uint8_t *)t->chunk + kp_load_relaxed(&t->chunk->used);
    else t->at = t->end = NULL;
}

/*
 * What lies below the stack's end is nobody's: an old frame a little below is overwritten here, which else the next deeper call would do. Not on a
 * stack of signals: it may be an array in a frame that called the hook, which is there then, below its end. No further than needed: of a small
 * stack there may be no more.
 */
static __attribute__((noinline)) void run_over(size_t bytes)
{
    volatile uint64_t *word = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes / 8; i++) word[i] = 0;
}

static bool is_gone(const struct kp_thread *t, uint64_t inside, const uintptr_t *frame)
{
    const uintptr_t was = (uintptr_t)frame_of(inside), is = (uintptr_t)frame;
    if (was == is) return true;
    if (was < is && is - was < REACH && !kp_io_is_on_signal_stack()) run_over(is - was);
    return kp_inside_is_abandoned(t);
}

bool kp_inside_reclaim(struct kp_thread *t, const uintptr_t *frame)
{
    const uint64_t inside = kp_load_relaxed(&t->inside);
    if (inside == NO_FRAME || (inside && !is_gone(t, inside, frame))) return false;
    kp_store_relaxed(&t->inside, kp_inside_tag(frame));
    kp_signal_fence();
    if (inside) forget_half_done(t);
    return true;
}

void kp_inside_refused(const struct kp_thread *t)
{
    if (kp_load_relaxed(&t->inside) > NO_FRAME) kp_loss_count(0, KP_LOSS_REENTRY);
}
