// SPDX-License-Identifier: Apache-2.0
/*
 * bufferqueue.c - the buffers that CUPTI completed and kprof-cuda has not decoded yet, by their numbers in the pool
 *
 * Called by: buffer.c: put on any thread inside CUPTI's callback, take on the thread kprof-cuda, with control
 * Owns:      a stack that any thread pushes to, and the part of it that kprof-cuda took, in the order of completion
 * Locks:     none. Only one thread pops, and it takes the whole stack, so no tag is needed.
 * Memory:    none
 * Safe in:   signal handlers no; in a forked child nothing is put
 */
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

static _Atomic uint32_t top;       /* index + 1 of the last one put; 0: none */
static uint32_t under[KP_BUFFERS]; /* the one under each, as `top` */
static uint32_t taken;             /* the rest of what was taken, the oldest first; with control */
static _Atomic uint32_t waiting;   /* how many were put and not taken */

void kp_bufferqueue_put(uint32_t index)
{
    uint32_t seen = kp_load_relaxed(&top);
    kp_add_relaxed(&waiting, 1);
    do under[index] = seen;
    while (!kp_cas_acq_rel(&top, &seen, index + 1)); /* pairs with: kp_bufferqueue_take */
}

/* Turns the stack over, so that the oldest comes first. */
static void stack_take(void)
{
    uint32_t at = kp_exchange_acq_rel(&top, 0); /* pairs with: kp_bufferqueue_put */
    while (at) {
        const uint32_t next = under[at - 1];
        under[at - 1] = taken;
        taken = at;
        at = next;
    }
}

bool kp_bufferqueue_take(uint32_t *index)
{
    if (!taken) stack_take();
    if (!taken) return false;
    *index = taken - 1;
    taken = under[*index];
    kp_add_relaxed(&waiting, UINT32_MAX);
    return true;
}

bool kp_bufferqueue_is_empty(void) { return kp_load_relaxed(&waiting) == 0; }
