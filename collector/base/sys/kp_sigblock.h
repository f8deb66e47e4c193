// SPDX-License-Identifier: Apache-2.0
/*
 * kp_sigblock.h - blocks signals around our writes, and around critical sections
 *
 * A write may raise SIGPIPE (no reader), SIGXFSZ (file size limit) or SIGTTOU (background process). Each of them ends
 * or stops a host that does not expect it. The write section blocks them for this thread, and consumes a signal that
 * the write raised. A signal that was pending before stays pending. Async-signal-safe, keeps errno.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct kp_sigblock_write {
    sigset_t old_mask, old_pending;
    bool is_blocked; /* false: kp_sigblock_write_end has nothing to undo */
};
void kp_sigblock_write_begin(struct kp_sigblock_write *q);
void kp_sigblock_write_end(struct kp_sigblock_write *q);

/*
 * Blocks all asynchronous signals on this thread, so that no handler can longjmp out of a critical section.
 * Synchronous faults (SIGSEGV and the like) are still delivered. Any thread; keeps errno. No signal is blocked if the
 * mask cannot be set.
 */
struct kp_sigblock_all {
    sigset_t old_mask;
    bool is_blocked;
};
void kp_sigblock_all_begin(struct kp_sigblock_all *s);
void kp_sigblock_all_end(const struct kp_sigblock_all *s);
