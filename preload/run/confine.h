// SPDX-License-Identifier: Apache-2.0
/*
 * confine.h - lets a program go before it forbids itself what we do in it: system calls, the processor's clock
 */
#ifndef KP_CONFINE_H
#define KP_CONFINE_H

#include "preload/hook/hook.h"

enum { KP_CONFINE_ROWS = 2 };
extern const struct kp_tap_row kp_confine_rows[KP_CONFINE_ROWS]; /* but the one for syscall, which is assembly */

/* Called by syscall_ARCH.S: prctl and seccomp alone. */
void kp_confine_look(long number, unsigned long a, unsigned long b, unsigned long c);

/* syscall_ARCH.S: jumps on to the real one, so that what returns twice, or on another stack, does so as it would
 * alone. */
void kp_confine_tap_syscall(void);
extern void *kp_confine_real_syscall;

#endif
