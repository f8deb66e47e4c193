// SPDX-License-Identifier: Apache-2.0
/*
 * kp_quiet.h - lets a write of ours fail without a signal to the host, and keeps handlers out of what must not be left half done
 *
 * A write may raise SIGPIPE (nobody reads), SIGXFSZ (over the file size limit) or SIGTTOU (not in the foreground), and
 * each of them ends or stops a host that does not expect it. Between begin and end they are blocked for this thread,
 * and one that our write raised is taken back; one that was pending before stays. Async-signal-safe, keeps errno.
 */
#ifndef KP_QUIET_H
#define KP_QUIET_H

#include <signal.h>
#include <stdbool.h>

struct kp_quiet {
    sigset_t old_mask, old_pending;
    bool is_blocked; /* else there is nothing to take back */
};
void kp_quiet_begin(struct kp_quiet *q);
void kp_quiet_end(struct kp_quiet *q);

/*
 * Between begin and end no signal handler runs on this thread that could leave what is half done by a jump. What an instruction of its own causes
 * is not kept from it. Any thread; keeps errno. Where the mask cannot be set things are as they are.
 */
struct kp_stay {
    sigset_t old_mask;
    bool is_blocked;
};
void kp_stay_begin(struct kp_stay *s);
void kp_stay_end(const struct kp_stay *s);

#endif
