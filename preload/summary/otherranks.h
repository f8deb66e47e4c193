// SPDX-License-Identifier: Apache-2.0
/* otherranks.h - how long the ranks of a job are in collectives, by their files of KPROF_SUMMARY */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_stepline.h"

enum { KP_OTHERRANKS_MOST = 8 };
/*
 * Of the last steps of a rank that were not recorded: the share in which a collective was open, in thousandths. 0, or
 * -errno: -ENODATA where there are too few. One thread at a time, as all here.
 */
int kp_otherranks_share(const char *path, struct kp_stephead *head, uint64_t *milli);
/* The same of other ranks of the job, KP_OTHERRANKS_MOST at most, that lived within a minute. Returns how many. */
size_t kp_otherranks_shares(const char *folder, const struct kp_stephead *own, uint64_t now_ns,
                            uint64_t out[KP_OTHERRANKS_MOST]);
