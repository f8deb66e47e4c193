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
 * Taps the modules not seen before. Not re-entrant and not for two threads at once (dlfollow.c sees to that), but the
 * host may load and unload meanwhile. `with_self` taps the module this code is in as well (unit tests).
 * 0, or -ENOMEM when the list of modules could not be kept in full.
 */
int kp_modules_apply(const struct kp_tap *taps, uint32_t tap_count, bool with_self);
/* Puts back every word that still holds a tap. Same rules. */
void kp_modules_undo(const struct kp_tap *taps, uint32_t tap_count);

struct kp_modules_stats {
    uint32_t modules, free_entries; /* in the list; entries waiting to be used again */
    uint32_t tapped_modules, tapped_words;
    uint32_t refused;               /* words that held something else, could not be written, or were too many */
    uint64_t scans;
};
void kp_modules_stats_get(struct kp_modules_stats *out);

#endif
