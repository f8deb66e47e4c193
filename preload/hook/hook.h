// SPDX-License-Identifier: Apache-2.0
/*
 * hook.h - notices libraries that the host loads later, without becoming the caller of its dlopen
 */
#ifndef KP_HOOK_H
#define KP_HOOK_H

#include <stdbool.h>

/* First scan: taps dlopen, dlmopen, dlsym, dlvsym in every module mapped so far. Call once, from the constructor,
 * when the gate says KP_GATE_ON. 0, or -errno (then nothing is tapped and kp_hook_scan alone notices modules). */
int kp_hook_start(void);
/* When modules came or went since the last scan: taps the new ones, then calls kp_boot_modules_changed(). One short
 * call of dl_iterate_phdr when nothing changed. A thread of ours, not inside a hook. */
void kp_hook_scan(void);
/* The forking thread: no thread of ours is inside the loader until kp_hook_after_fork (in the parent, only after true). */
bool kp_hook_before_fork(void);
void kp_hook_after_fork(void);

#endif
