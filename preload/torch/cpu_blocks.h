// SPDX-License-Identifier: Apache-2.0
/* cpu_blocks.h - the CPU blocks that torch holds, in windows and between them: address and size of each */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool kp_cpu_blocks_setup(void); /* maps the table: false without memory, and then no block is kept */
void kp_cpu_blocks_put(uint64_t address, int64_t bytes);
int64_t kp_cpu_blocks_take(uint64_t address); /* removes a block and returns its size, or 0 for an unknown one */

/* Calls fn for each block, while other threads put and take. fn returns false to stop, which is the result then. */
typedef bool (*kp_cpu_block_fn)(void *context, uint64_t address, int64_t bytes);
bool kp_cpu_blocks_each(kp_cpu_block_fn fn, void *context);
uint64_t kp_cpu_blocks_unkept(void); /* blocks that found no room */
