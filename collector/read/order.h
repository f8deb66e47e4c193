// SPDX-License-Identifier: Apache-2.0
/* order.h - the pieces of a cycle, by thread and in the order of writing */
#pragma once

#include "collector/read/reader.h"

struct kp_piece { /* adjacent records of one thread */
    const uint8_t *at, *end;
    uint64_t order;
    uint32_t thread_no, tid;
    const char *name; /* 16 bytes, perhaps no NUL */
};
struct kp_pieces {
    struct kp_piece *of;
    uint32_t n, cap;
    uint64_t torn; /* chunks that end in bytes that are no record */
};

/* 0 or -ENOMEM. */
int kp_pieces_make(struct kp_pieces *p, const struct kp_reader *r, uint32_t cycle);
/*
 * A piece for each DEVICE chunk that may hold records of a cycle. The chunks are its own, and those of cycles that
 * began within 10 minutes after its end.
 */
int kp_pieces_of_device(struct kp_pieces *p, struct kp_reader *r, uint32_t cycle);
int kp_pieces_of_meta(struct kp_pieces *p, const struct kp_reader *r); /* a piece for each META chunk */
void kp_pieces_fini(struct kp_pieces *p);
