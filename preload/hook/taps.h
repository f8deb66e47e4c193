// SPDX-License-Identifier: Apache-2.0
/*
 * taps.h - the taps on dlopen, dlmopen, dlsym and dlvsym, in assembly
 *
 * A tap jumps to the real function with every register unchanged, so the return address stays the host's: dlopen
 * searches the caller's RUNPATH, and dlsym(RTLD_NEXT) starts behind the caller. Before that it calls
 * kp_hook_note() if kp_hook_credit is not 0. The taps on dlopen and dlmopen set kp_hook_credit to KP_HOOK_CREDIT.
 */
#pragma once

/* Number of dl calls after a dlopen that ask the loader whether its list changed. One is not enough: another thread's
 * dlsym may come while the dlopen lasts. */
#define KP_HOOK_CREDIT 256

#ifndef __ASSEMBLER__
extern _Atomic int kp_hook_credit;
extern void *kp_hook_real_dlopen, *kp_hook_real_dlmopen, *kp_hook_real_dlsym, *kp_hook_real_dlvsym;
void kp_hook_tap_dlopen(void);
void kp_hook_tap_dlmopen(void);
void kp_hook_tap_dlsym(void);
void kp_hook_tap_dlvsym(void);
void kp_hook_note(void); /* dlfollow.c */
/* dlfollow.c: new modules are relocated, and the constructors of the one with the address `inside` begin. The calling
 * thread holds the loader's load lock. */
void kp_hook_before_init(const void *inside);
enum { KP_HOOK_DL_TAPS = 4 };
struct kp_tap;
/* dlfollow.c: installs the KP_HOOK_DL_TAPS taps now, and in each module that is loaded later. 0 or -errno */
int kp_hook_follow(const struct kp_tap *dl_taps);
/* Calls function(a, b, c) with the return address `ret`, the address of a return instruction. Only x86-64. */
void *kp_hook_call_from(const void *ret, void *function, void *a, const void *b, const void *c);
#endif
