// SPDX-License-Identifier: Apache-2.0
/*
 * kp_rest.h - threads of ours that go away for a moment, and come again
 *
 * Some calls of the host look at how many threads the process has: unshare(CLONE_NEWUSER) and setns refuse more than one, and the libc
 * carries setuid and its kin to every thread and ends the program when one of them answers otherwise (ours has not the host's PR_SET_KEEPCAPS
 * or capabilities, which belong to a thread). Around such a call our threads are not there.
 */
#ifndef KP_REST_H
#define KP_REST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A helper thread as kp_io_thread_nice makes it. `body` returns soon when kp_rest_is_wanted says so, and is called anew, on a new thread,
 * when the rest is over. `wake`, which may be NULL, ends its sleep. At most KP_REST_THREADS bodies, each once. 0 or -errno.
 */
enum { KP_REST_THREADS = 4 };
int kp_rest_thread(void *(*body)(void *), const char *name, int nice, void (*wake)(void)) __attribute__((warn_unused_result));
bool kp_rest_is_wanted(void);
void kp_rest_nap(uint64_t ns); /* ends early when a rest begins */

/* Sends them away, and waits until they are gone, at most so long. false: none is here (or it was forked away): nothing to end. */
bool kp_rest_begin(uint32_t timeout_ms);
void kp_rest_end(void); /* after true only */
void kp_rest_after_fork(void);

#endif
