// SPDX-License-Identifier: Apache-2.0
/*
 * wanted.h - the table of tapped names, and the taps of each
 */
#pragma once

#include "preload/hook/hook.h"
#include "preload/hook/image.h"

enum { KP_WANTED_MAX = 1024 }; /* names, and taps */
#define KP_NOT_WANTED UINT32_MAX

/* Adds a set, which stays: the array is read from then on. 0; -EEXIST: one of the functions already has a tap (or this
 * array was added); -ENOSPC: too many. On an error nothing is added. */
int kp_wanted_add(const struct kp_tap *taps, uint32_t tap_count);
/* Before kp_wanted_add: the array's taps also take the calls of the library that defines the function. 0 or -ENOSPC. */
int kp_wanted_take_own(const struct kp_tap *taps, uint32_t tap_count);
bool kp_wanted_has(const struct kp_tap *taps);

/* Names have numbers from 0. */
uint32_t kp_wanted_count(void);
const char *kp_wanted_name(uint32_t number);
uint32_t kp_wanted_find(const char *name);

/* Does a tap of this name also take the calls of the library that defines the function at `address`? */
bool kp_wanted_is_own(uint32_t number, uintptr_t address);
/* Before kp_wanted_add: the taps also take calls of modules that define the name but call another module's function.
 * 0 or -ENOSPC. */
int kp_wanted_take_common(const struct kp_tap *taps, uint32_t tap_count);
bool kp_wanted_is_common(uint32_t number); /* one of its taps is of such a set */

/* The tap for a slot of `image` with the value `holds`; NULL: none. `may_be_lazy`: `holds` may be the module's binding
 * stub; then the tap is known only if the name has a single tap. */
const struct kp_tap *kp_wanted_choose(const struct kp_image *image, uint32_t number, uintptr_t holds, bool may_be_lazy);
/* The tap of this name whose address is `holds`; NULL: none. */
const struct kp_tap *kp_wanted_held(uint32_t number, uintptr_t holds);
