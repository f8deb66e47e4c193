// SPDX-License-Identifier: Apache-2.0
/* merge.h - merges threads by time: the earliest of many cursors */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_merge { /* a heap. of[0] is the earliest; at equal times the lower number comes first */
    struct kp_merge_entry {
        uint64_t start;
        uint32_t which; /* the caller's number of a cursor */
    } * of;
    uint32_t n, most;
};

int kp_merge_init(struct kp_merge *m, uint32_t most); /* 0 or -ENOMEM */
void kp_merge_fini(struct kp_merge *m);
void kp_merge_add(struct kp_merge *m, uint64_t start, uint32_t which); /* at most `most` times, then kp_merge_begin */
void kp_merge_begin(struct kp_merge *m);
void kp_merge_moved(struct kp_merge *m, bool more, uint64_t start); /* the earliest moved to `start`, or has no more */
