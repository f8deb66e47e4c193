// SPDX-License-Identifier: Apache-2.0
/* torch_memory.h - what torch's allocators took and gave back, as Kineto's [memory] events */
#ifndef KP_EXPORT_MEMORY_H
#define KP_EXPORT_MEMORY_H

#include "export/out/trace.h"

/*
 * The CPU's blocks that this window saw taken and not given back: for the sizes of those that are given back, and the
 * total. What an earlier window saw is not carried over: see docs/decisions/020.
 */
struct kp_blocks;
struct kp_blocks *kp_blocks_open(void); /* NULL: no memory */
void kp_blocks_close(struct kp_blocks *blocks);
/* 0 or -ENOMEM. *total: bytes taken and not given back. */
int kp_blocks_take(struct kp_blocks *blocks, uint64_t address, int64_t bytes, int64_t *total);
int64_t kp_blocks_total(const struct kp_blocks *blocks);
/* The size of a block given back; 0: it was taken when nobody looked. */
int64_t kp_blocks_give(struct kp_blocks *blocks, uint64_t address, int64_t *total);

/* Writes an event of kind MEMORY; nothing for a block that is not known. 0 or -ENOMEM. */
int kp_memory_write(struct kp_trace *t, const struct kp_event *e);

#endif
