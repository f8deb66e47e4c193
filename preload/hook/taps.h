// SPDX-License-Identifier: Apache-2.0
/*
 * taps.h - the assembly stubs that stand in the host's words for dlopen, dlmopen, dlsym and dlvsym
 *
 * A tap jumps to the real function with every register as it came, so the return address stays the host's: dlopen
 * searches the caller's RUNPATH, and dlsym(RTLD_NEXT) starts behind the caller. Before that it calls
 * kp_hook_note() when kp_hook_credit is not 0, and the dlopen ones set kp_hook_credit to KP_HOOK_CREDIT.
 */
#ifndef KP_TAPS_H
#define KP_TAPS_H

/* So many dl calls after a dlopen ask the loader whether its list changed. One would do, were it not for another
 * thread's dlsym that comes between a dlopen's beginning and its end. */
#define KP_HOOK_CREDIT 256

#ifndef __ASSEMBLER__
extern _Atomic int kp_hook_credit;
extern void *kp_hook_real_dlopen, *kp_hook_real_dlmopen, *kp_hook_real_dlsym, *kp_hook_real_dlvsym;
void kp_hook_tap_dlopen(void);
void kp_hook_tap_dlmopen(void);
void kp_hook_tap_dlsym(void);
void kp_hook_tap_dlvsym(void);
void kp_hook_note(void); /* dlfollow.c */
enum { KP_HOOK_DL_TAPS = 4 };
struct kp_tap;
/* dlfollow.c: puts the KP_HOOK_DL_TAPS taps in now, and into each module that comes later. 0 or -errno */
int kp_hook_follow(const struct kp_tap *dl_taps);
/* Calls function(a, b, c) so that it finds itself called from `ret`, where there is a return instruction and nothing
 * else is run. Only x86-64. */
void *kp_hook_call_from(const void *ret, void *function, void *a, const void *b, const void *c);
#endif

#endif
