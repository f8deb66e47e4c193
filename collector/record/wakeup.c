// SPDX-License-Identifier: Apache-2.0
/*
 * wakeup.c - the word that the writer thread sleeps on
 *
 * Called by: any thread (wake), the writer thread (wait)
 * Locks:     none; a futex
 * Safe in:   signal handlers: kp_writer_wake, which keeps errno. In a forked child kp_wakeup_after_fork comes first.
 */
#include "collector/record/record_internal.h"

#include <errno.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

static _Atomic uint32_t is_due __attribute__((aligned(KP_LINE)));

void kp_writer_wake(void)
{
    int saved = errno;
    /* pairs with: wakeup.c:kp_wakeup_wait */
    if (kp_load_relaxed(&is_due) == 0 && kp_exchange_acq_rel(&is_due, 1) == 0) kp_io_wake(&is_due);
    errno = saved;
}

void kp_wakeup_wait(uint64_t ns)
{
    kp_io_wait(&is_due, 0, ns);
    kp_exchange_acq_rel(&is_due, 0); /* pairs with: wakeup.c:kp_writer_wake; a wake from here on ends the next wait */
}

void kp_wakeup_after_fork(void) { kp_store_relaxed(&is_due, 0); }
