// SPDX-License-Identifier: Apache-2.0
/* rankmatch.h - which collectives of several ranks are one */
#pragma once

#include "export/answers/ranks/rankwaits.h"

/* Sorts the collectives so that those of one set lie together, and fills `sets` and the counts of what is in none. The
 * ranks are sorted. */
void kp_rankmatch_sets(struct kp_rankwaits *waits);
/* Is a rank's collective in the set? */
bool kp_rankset_has(const struct kp_rankwaits *waits, const struct kp_rankset *set, uint32_t row);
/* A rank's row, or NULL. The ranks are sorted. */
const struct kp_rankwait *kp_rankmatch_row(const struct kp_rankwaits *waits, long rank);
