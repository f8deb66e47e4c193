// SPDX-License-Identifier: Apache-2.0
/*
 * kp_helper_pause.h - threads of ours that go away for a moment, and come again
 *
 * Some calls of the host look at how many threads the process has: unshare(CLONE_NEWUSER) and setns refuse more than one, and the libc
 * carries setuid and its kin to every thread and ends the program when one of them answers otherwise (ours has not the host's PR_SET_KEEPCAPS
 * or capabilities, which belong to a thread). Around such a call our threads are not there.
 */
#ifndef KP_HELPER_PAUSE_H
#define KP_HELPER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A helper thread as kp_io_thread_nice makes it. `body` returns soon when kp_helpers_pause_wanted says so, and is called anew, on a new thread,
 * when the rest is over. `wake`, which may be NULL, ends its sleep. At most KP_HELPERS_MAX bodies, each once. 0 or -errno.
 */
enum { KP_HELPERS_MAX = 4 };
int kp_helpers_start(void *(*body)(void *), const char *name, int nice, void (*wake)(void)) __attribute__((warn_unused_result));
bool kp_helpers_pause_wanted(void);
void kp_helpers_sleep(uint64_t ns); /* ends early when a rest begins */

/* Sends them away, and waits until they are gone, at most so long. false: none is here (or it was forked away): nothing to end. */
bool kp_helpers_pause(uint32_t timeout_ms);
void kp_helpers_resume(void); /* after true only */
void kp_helpers_after_fork(void);

#endif
