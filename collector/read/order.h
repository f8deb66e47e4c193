// SPDX-License-Identifier: Apache-2.0
/* order.h - the pieces of a cycle, by thread and in the order of writing */
#ifndef KP_READ_ORDER_H
#define KP_READ_ORDER_H

#include "collector/read/reader.h"

struct kp_piece { /* records of one thread, one behind another */
    const uint8_t *at, *end;
    uint64_t order;
    uint32_t thread_no, tid;
    const char *name; /* 16 bytes, perhaps no NUL */
};
struct kp_pieces {
    struct kp_piece *of;
    uint32_t n, cap;
    uint64_t torn; /* chunks that ended in something that is no record */
};

/* 0 or -ENOMEM. */
int kp_pieces_make(struct kp_pieces *p, const struct kp_reader *r, uint32_t cycle);
/*
 * DEVICE chunks that may hold records of a cycle, one piece each: its own and those of the cycles begun within some
 * minutes after it.
 */
int kp_pieces_of_device(struct kp_pieces *p, struct kp_reader *r, uint32_t cycle);
int kp_pieces_of_meta(struct kp_pieces *p, const struct kp_reader *r); /* META chunks, one piece each */
void kp_pieces_fini(struct kp_pieces *p);

#endif
