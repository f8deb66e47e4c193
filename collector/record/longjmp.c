// SPDX-License-Identifier: Apache-2.0
/*
 * longjmp.c - detects a hook that a signal handler abandoned by siglongjmp, an exception or setcontext
 *
 * Called by: a host thread that enters a hook while its state says inside (rare); the thread that closes a window
 * Locks:     none
 * Memory:    none
 * On fail:   where memory cannot be read, the hook counts as running. All that its thread does is dropped and counted.
 * Safe in:   signal handlers yes; after fork yes
 *
 * `inside` holds the address of the hook's frame and 16 bits of the return address in it. As long as the hook is on
 * some stack, its return address is unchanged in memory. That holds under nested handlers and on a suspended
 * coroutine stack, too. So the hook is gone once the return address differs, or once another hook has its frame
 * there. The stack pointer tells nothing, since signal handlers and coroutines have stacks anywhere. A handler that
 * interrupts a hook, copies the stack away and later copies it back is not detected.
 */
#include "collector/record/record_internal.h"

#include <errno.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

enum { NO_FRAME = 1 }; /* a lane, or a thread state that is created or ended: no frame to compare */
enum { REACH = 2048 }; /* bytes: about what any stack that takes a signal still has free */

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

/* Drops a record that was begun. A published record stays. */
static void forget_half_done(struct kp_thread *t)
{
    if (t->chunk_cycle) t->at = (uint8_t *)t->chunk + kp_load_relaxed(&t->chunk->used);
    else t->at = t->end = NULL;
}

/*
 * Memory below the stack pointer is free. If the old frame lies close below, overwrite it now instead of waiting for
 * a deeper call to do so. Not on a signal stack: that may be an array in a frame of the hook's own caller. No further
 * than needed, since a small stack may have no more room.
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
