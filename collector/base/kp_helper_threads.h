// SPDX-License-Identifier: Apache-2.0
/*
 * kp_helper_threads.h - pauses our helper threads while the host makes a call that requires a single-threaded process
 *
 * unshare(CLONE_NEWUSER) and setns refuse a process with several threads. glibc runs setuid and the like on every
 * thread, and aborts if the results differ. A helper thread's result may differ, since capabilities and
 * PR_SET_KEEPCAPS belong to a thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Starts a helper thread as kp_io_thread_nice does. `body` must return soon once kp_helpers_pause_wanted is true.
 * After the pause a new thread calls it again. `wake` ends its sleep and may be NULL. At most KP_HELPERS_MAX bodies,
 * each once. 0 or -errno.
 */
enum { KP_HELPERS_MAX = 6 };
int kp_helpers_start(void *(*body)(void *), const char *name, int nice, void (*wake)(void))
    __attribute__((warn_unused_result));
bool kp_helpers_pause_wanted(void);
void kp_helpers_sleep(uint64_t ns); /* ends early when a pause begins */

/*
 * Ends the helper threads and waits until they are gone, at most timeout_ms. False: there is none, so call no
 * kp_helpers_resume.
 */
bool kp_helpers_pause(uint32_t timeout_ms);
void kp_helpers_resume(void); /* after kp_helpers_pause returned true */
void kp_helpers_forget(void);
