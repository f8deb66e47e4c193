// SPDX-License-Identifier: Apache-2.0
/*
 * dltaps.c - installs the assembly taps (tap_ARCH.S) on the dl functions
 *
 * Called by: boot.c, once
 * Owns:      nothing; dlfollow.c keeps the set, and installs it in modules that are loaded later
 * Locks:     none
 * On fail:   as kp_modules_apply: slots already written stay so
 *
 * This is not in dlfollow.c because the taps call dlfollow.c: else the two would form a circle.
 */
#include <dlfcn.h>

#include "preload/hook/hook.h"
#include "preload/hook/taps.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/base/kp_poison.h"

int kp_hook_start(void)
{
    kp_hook_real_dlopen = (void *)(uintptr_t)dlopen;
    kp_hook_real_dlmopen = (void *)(uintptr_t)dlmopen;
    kp_hook_real_dlsym = (void *)(uintptr_t)dlsym;
    kp_hook_real_dlvsym = (void *)(uintptr_t)dlvsym;
    const struct kp_tap taps[KP_HOOK_DL_TAPS] = {
        {"dlopen", kp_hook_real_dlopen, (void *)(uintptr_t)kp_hook_tap_dlopen},
        {"dlmopen", kp_hook_real_dlmopen, (void *)(uintptr_t)kp_hook_tap_dlmopen},
        {"dlsym", kp_hook_real_dlsym, (void *)(uintptr_t)kp_hook_tap_dlsym},
        {"dlvsym", kp_hook_real_dlvsym, (void *)(uintptr_t)kp_hook_tap_dlvsym},
    };
    return kp_hook_follow(taps);
}
