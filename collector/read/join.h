// SPDX-License-Identifier: Apache-2.0
/* join.h - inputs seen on a thread that wait for the end of their op */
#ifndef KP_READ_JOIN_H
#define KP_READ_JOIN_H

#include <stdint.h>

#include "collector/format/kp_format.h"

struct kp_join {
    const struct kp_rec_inputs **open; /* innermost last; NULL until the first */
    uint32_t n;
};

int kp_join_push(struct kp_join *j, const struct kp_rec_inputs *inputs); /* 0 or -ENOMEM */
/* Takes out the inputs of the op that began at `start`, or NULL. */
const struct kp_rec_inputs *kp_join_take(struct kp_join *j, uint64_t start);
void kp_join_fini(struct kp_join *j);

#endif
