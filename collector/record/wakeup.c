// SPDX-License-Identifier: Apache-2.0
/*
 * wakeup.c - the words that the writer, the ticker and kprof-disk sleep on
 *
 * Called by: any thread (wake), these three, each on its own word (wait)
 * Locks:     none; a futex
 * Safe in:   signal handlers: kp_writer_wake and kp_wakeup_wake, which keep errno. In a forked child
 *            kp_wakeup_forget comes first.
 */
#include "collector/record/record_internal.h"

#include <errno.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

static struct word {
    _Atomic uint32_t is_due __attribute__((aligned(KP_LINE)));
} words[KP_WAKEUPS];

void kp_wakeup_wake(enum kp_wakeup whose)
{
    _Atomic uint32_t *is_due = &words[whose].is_due;
    int saved = errno;
    /* pairs with: wakeup.c:kp_wakeup_wait */
    if (kp_load_relaxed(is_due) == 0 && kp_exchange_acq_rel(is_due, 1) == 0) kp_io_wake(is_due);
    errno = saved;
}

void kp_writer_wake(void) { kp_wakeup_wake(KP_WAKEUP_WRITER); }

void kp_wakeup_wait(enum kp_wakeup whose, uint64_t ns)
{
    _Atomic uint32_t *is_due = &words[whose].is_due;
    kp_io_wait(is_due, 0, ns);
    kp_exchange_acq_rel(is_due, 0); /* pairs with: wakeup.c:kp_wakeup_wake; a wake from here on ends the next wait */
}

void kp_wakeup_forget(void)
{
    for (int i = 0; i < KP_WAKEUPS; i++) kp_store_relaxed(&words[i].is_due, 0);
}
