// SPDX-License-Identifier: Apache-2.0
/* rank.h - a process's rank in its job, as the launcher's variables in the spool say it */
#ifndef KP_RANK_H
#define KP_RANK_H

#include <stdint.h>

struct kp_reader;

struct kp_rank {
    uint32_t rank, size; /* 0 of 1 without a launcher */
};
struct kp_rank kp_rank_read(const struct kp_reader *reader);

#endif
