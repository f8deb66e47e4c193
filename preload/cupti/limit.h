// SPDX-License-Identifier: Apache-2.0
/*
 * limit.h - decides when CUPTI is disabled before its window ends
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum kp_limit { KP_LIMIT_NONE, KP_LIMIT_RECORDS, KP_LIMIT_MINUTES, KP_LIMIT_TIMES, KP_LIMIT_SPOOL };

struct kp_limit_seen {
    uint64_t records, ms;       /* since its window began */
    uint64_t kernels, timeless; /* the last few hundred kernels, and how many of them have no times */
    uint64_t full_ms;           /* how long the spool has been full */
};
/* Which limit is reached? Pure. `rules` are those of kp_cuptirule.h. */
enum kp_limit kp_limit_of(const struct kp_limit_seen *now, uint32_t rules, bool has_schedule);
uint64_t kp_limit_minutes(uint32_t rules);
uint64_t kp_limit_millions(uint32_t rules);

void kp_limit_begin(void); /* call when armed; in the same window as last time it keeps counting */
enum kp_limit kp_limit_reached(void);
void kp_limit_tell(enum kp_limit limit); /* writes a log line and a note */
