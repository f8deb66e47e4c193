// SPDX-License-Identifier: Apache-2.0
/*
 * confine.h - ends recording before the program confines itself by seccomp or forbids itself the time stamp counter
 */
#pragma once

#include "preload/hook/hook.h"

enum { KP_CONFINE_ROWS = 2 };
extern const struct kp_tap_row kp_confine_rows[KP_CONFINE_ROWS]; /* taps on all but syscall(), whose tap is assembly */

/* Called by syscall_ARCH.S, for the numbers of prctl and seccomp. */
void kp_confine_look(long number, unsigned long a, unsigned long b, unsigned long c);

/* syscall_ARCH.S: jumps to the real syscall(), so that calls that return twice or on another stack work unchanged. */
void kp_confine_tap_syscall(void);
extern void *kp_confine_real_syscall;
