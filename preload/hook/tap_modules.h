// SPDX-License-Identifier: Apache-2.0
/*
 * tap_modules.h - the list of mapped modules and of their redirected slots
 */
#pragma once

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

/*
 * A look before constructors, on a thread that holds the loader's load lock while no module is half relocated. Taps new
 * modules without a reference, as none can go. Not a scan: kp_modules_changed still sees changes. It leaves out `taps`:
 * a call of dlsym in a constructor would scan, and sources would open libraries whose constructors did not run.
 * `is_begin` false: the look is over. kp_modules_add behaves so, too, in between.
 */
void kp_modules_early(const struct kp_tap *taps, uint32_t tap_count, bool is_begin);
bool kp_modules_arrived(void); /* whether modules came or went since the last such look */
/* True: the thread that scans waits for the load lock, which the caller holds, so the caller may use the list of
 * modules until kp_modules_return. */
bool kp_modules_borrow(void);
void kp_modules_return(void);
void kp_modules_forget(void); /* in a child: no thread waits or borrows */

/* Shows all modules to the taker that kp_words_set_taker has set. Rules and errors as above. */
int kp_modules_take(bool with_self);
