// SPDX-License-Identifier: Apache-2.0
/*
 * wanted.h - the names whose calls are taken, and the taps of each
 */
#ifndef KP_WANTED_H
#define KP_WANTED_H

#include "preload/hook/hook.h"
#include "preload/hook/image.h"

enum { KP_WANTED_MAX = 1024 }; /* names, and taps */
#define KP_NOT_WANTED UINT32_MAX

/* Adds a set. The array is read until kp_wanted_remove. 0; -EEXIST: the same function of the same name has a tap (or
 * this array is in already); -ENOSPC: too many. Nothing is added then. */
int kp_wanted_add(const struct kp_tap *taps, uint32_t tap_count);
void kp_wanted_remove(const struct kp_tap *taps, uint32_t tap_count);
/* Before kp_wanted_add: the taps of this array are also for what the library that has the function calls itself. 0 or
 * -ENOSPC. */
int kp_wanted_take_own(const struct kp_tap *taps, uint32_t tap_count);
bool kp_wanted_has(const struct kp_tap *taps);

/* Names have numbers from 0 which are never given twice: also a removed set's names keep theirs. */
uint32_t kp_wanted_count(void);
const char *kp_wanted_name(uint32_t number);
uint32_t kp_wanted_find(const char *name);

bool kp_wanted_is_any(uint32_t number); /* has a tap at present */

/* Whether a tap of this name wants what the library that has the function at `address` calls itself. */
bool kp_wanted_is_own(uint32_t number, uintptr_t address);
/* Before kp_wanted_add: the taps are also for modules that define the name, but lead elsewhere by it. 0 or -ENOSPC. */
int kp_wanted_take_common(const struct kp_tap *taps, uint32_t tap_count);
bool kp_wanted_is_common(uint32_t number); /* whether one of its taps is of such a set */

/* The tap for a word of `image` that holds `holds`; NULL: none. `may_be_lazy`: the word may still lead to the module's
 * own binding stub, which is good enough as long as the name has only one tap. */
const struct kp_tap *kp_wanted_choose(const struct kp_image *image, uint32_t number, uintptr_t holds, bool may_be_lazy);
/* The tap that `holds` is the address of; NULL: it is none of this name's. */
const struct kp_tap *kp_wanted_held(uint32_t number, uintptr_t holds);

#endif
