// SPDX-License-Identifier: Apache-2.0
/*
 * modules.h - which modules are mapped, and which of their words are tapped
 */
#ifndef KP_MODULES_H
#define KP_MODULES_H

#include "preload/hook/got.h"

/* Whether modules came or went since the last kp_modules_apply. One short call into the loader. */
bool kp_modules_changed(void);
/*
 * A scan: taps the modules not seen before, for all sets. `taps` becomes a set when it is none yet. Not re-entrant and
 *         not
 * for two threads at once (dlfollow.c sees to that), but the host may load and unload meanwhile. `with_self` taps the
 * module this code is in as well (unit tests).
 * 0; -EEXIST, -ENOSPC of kp_wanted_add: nothing done; -ENOMEM when the list of modules could not be kept in full.
 */
int kp_modules_apply(const struct kp_tap *taps, uint32_t tap_count, bool with_self);
/* One more set, in all modules. Not a scan: kp_modules_changed answers as it would have. Same rules and answers. */
int kp_modules_add(const struct kp_tap *taps, uint32_t tap_count, bool with_self);
/* Puts back every word that still holds a tap of the set, and forgets the set. Same rules. */
void kp_modules_undo(const struct kp_tap *taps, uint32_t tap_count);

/* The same for words.h's taker, which there is by now: in all modules. */
int kp_modules_take(bool with_self);

struct kp_modules_stats {
    uint32_t modules, free_entries; /* in the list; entries waiting to be used again */
    uint32_t words, free_blocks;    /* found; blocks of words waiting to be used again */
    uint32_t tapped_modules, tapped_words;
    uint32_t refused; /* words of a wanted name that lead elsewhere or could not be written */
    uint64_t scans;
};
void kp_modules_stats_get(struct kp_modules_stats *out);

#endif
