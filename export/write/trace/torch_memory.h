// SPDX-License-Identifier: Apache-2.0
/* torch_memory.h - a table of torch's blocks by address */
#pragma once

#include <stdint.h>

/*
 * The CPU blocks that this window allocated and did not free yet. They give the sizes of freed blocks, and the total.
 * A window does not know the blocks of earlier windows: see docs/decisions/020.
 */
struct kp_blocks;
struct kp_blocks *kp_blocks_open(void); /* NULL: no memory */
void kp_blocks_close(struct kp_blocks *blocks);
/* Takes an allocation. 0 or -ENOMEM. *total becomes the bytes allocated and not freed. */
int kp_blocks_take(struct kp_blocks *blocks, uint64_t address, int64_t bytes, int64_t *total);
int64_t kp_blocks_total(const struct kp_blocks *blocks);
/* Takes a free. Returns the block's size, or 0 when the window did not see its allocation. */
int64_t kp_blocks_give(struct kp_blocks *blocks, uint64_t address, int64_t *total);

/* Calls fn for each block, in no order. A result other than 0 ends the walk and becomes its result. */
int kp_blocks_each(const struct kp_blocks *blocks, int (*fn)(void *context, uint64_t address, int64_t bytes),
                   void *context);
