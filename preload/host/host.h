// SPDX-License-Identifier: Apache-2.0
/* host.h - keeps the host from noticing our threads and our memory, where it counts, locks, forks or confines itself */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "preload/hook/hook.h"

enum { KP_SOLO_MORE = 21 };
/* Installs the taps, those of confine.c and `count` rows more, at most KP_SOLO_MORE, before the first helper thread is
 * made. Rules as for kp_hook_add_taps. */
void kp_solo_install(const struct kp_tap_row *more, uint32_t count);

/* confine.c: ends recording before the program confines itself by seccomp or forbids itself the time stamp counter */
enum { KP_CONFINE_ROWS = 2 };
extern const struct kp_tap_row kp_confine_rows[KP_CONFINE_ROWS]; /* taps on all but syscall(), whose tap is assembly */

/* Called by syscall_ARCH.S, for the numbers of prctl and seccomp. */
void kp_confine_look(long number, unsigned long a, unsigned long b, unsigned long c);

/* syscall_ARCH.S: jumps to the real syscall(), so that calls that return twice or on another stack work unchanged. */
void kp_confine_tap_syscall(void);
extern void *kp_confine_real_syscall;

/* mlockall.c: Taps that kp_getenv_start installs. */
enum { KP_LOCKS_ROWS = 1 };
extern const struct kp_tap_row kp_locks_rows[KP_LOCKS_ROWS];

/* threadcount.c: Installs the tap when a run begins, in the constructor or where sources attach; also called in a
 * recording child. */
void kp_threadcount_install(void);

/*
 * Lowers the number of threads in `bytes` bytes of a /proc/PID/stat, and returns the new length. Another text, or a
 * number that is not above `by`, is left unchanged.
 */
size_t kp_threadcount_lower(char *text, size_t bytes, uint32_t by);
