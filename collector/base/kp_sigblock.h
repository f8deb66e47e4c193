// SPDX-License-Identifier: Apache-2.0
/*
 * kp_sigblock.h - lets a write of ours fail without a signal to the host, and keeps handlers out of what must not be left half done
 *
 * A write may raise SIGPIPE (nobody reads), SIGXFSZ (over the file size limit) or SIGTTOU (not in the foreground), and
 * each of them ends or stops a host that does not expect it. Between begin and end they are blocked for this thread,
 * and one that our write raised is taken back; one that was pending before stays. Async-signal-safe, keeps errno.
 */
#ifndef KP_SIGBLOCK_H
#define KP_SIGBLOCK_H

#include <signal.h>
#include <stdbool.h>

struct kp_sigblock_write {
    sigset_t old_mask, old_pending;
    bool is_blocked; /* else there is nothing to take back */
};
void kp_sigblock_write_begin(struct kp_sigblock_write *q);
void kp_sigblock_write_end(struct kp_sigblock_write *q);

/*
 * Between begin and end no signal handler runs on this thread that could leave what is half done by a jump. What an instruction of its own causes
 * is not kept from it. Any thread; keeps errno. Where the mask cannot be set things are as they are.
 */
struct kp_sigblock_all {
    sigset_t old_mask;
    bool is_blocked;
};
void kp_sigblock_all_begin(struct kp_sigblock_all *s);
void kp_sigblock_all_end(const struct kp_sigblock_all *s);

#endif
