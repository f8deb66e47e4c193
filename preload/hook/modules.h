// SPDX-License-Identifier: Apache-2.0
/*
 * modules.h - the list of mapped modules and of their redirected slots
 */
#ifndef KP_MODULES_H
#define KP_MODULES_H

#include "preload/hook/got.h"

/* Whether modules came or went since the last kp_modules_apply. One short call into the loader. */
bool kp_modules_changed(void);
/*
 * A scan: taps the modules not seen before, for all sets. Adds `taps` as a set if it is not one. One thread at a time
 * and not re-entrant (dlfollow.c's turn). The host may load and unload modules at the same time. `with_self` also
 * taps the module that this code is in (unit tests).
 * 0; -EEXIST, -ENOSPC of kp_wanted_add: nothing done; -ENOMEM: the list of modules is not complete.
 */
int kp_modules_apply(const struct kp_tap *taps, uint32_t tap_count, bool with_self);
/* Taps one more set in all modules. Not a scan: kp_modules_changed still sees changes. Rules and errors as above. */
int kp_modules_add(const struct kp_tap *taps, uint32_t tap_count, bool with_self);

/* Shows all modules to the taker that kp_words_set_taker has set. Rules and errors as above. */
int kp_modules_take(bool with_self);

#endif
