// SPDX-License-Identifier: Apache-2.0
/*
 * kp_quiet.h - lets a write of ours fail without a signal to the host
 *
 * A write may raise SIGPIPE (nobody reads), SIGXFSZ (over the file size limit) or SIGTTOU (not in the foreground), and
 * each of them ends or stops a host that does not expect it. Between begin and end they are blocked for this thread,
 * and one that our write raised is taken back; one that was pending before stays. Async-signal-safe, keeps errno.
 */
#ifndef KP_QUIET_H
#define KP_QUIET_H

#include <signal.h>

struct kp_quiet {
    sigset_t old_mask, old_pending;
};
void kp_quiet_begin(struct kp_quiet *q);
void kp_quiet_end(struct kp_quiet *q);

#endif
