// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_blocks.h - the CPU blocks that torch holds, in windows and between them: address and size of each
 *
 * With marks (KPROF_ON_OOM) those of devices, too. A mark is a word that comes with a block and is never 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/base/kp_hot.h"

bool kp_cpu_blocks_setup(bool has_marks); /* maps the table: false without memory, and then no block is kept */
KP_HOT void kp_cpu_blocks_put(uint64_t address, int64_t bytes, uint64_t mark);
KP_HOT int64_t kp_cpu_blocks_take(uint64_t address); /* removes a block and returns its size, or 0 for an unknown one */

/* Calls fn for each block, while other threads put and take. fn returns false to stop, which is the result then.
 * mark: 0 in a table without marks. */
typedef bool (*kp_cpu_block_fn)(void *context, uint64_t address, int64_t bytes, uint64_t mark);
bool kp_cpu_blocks_each(kp_cpu_block_fn fn, void *context);
uint64_t kp_cpu_blocks_unkept(void); /* blocks that found no room */
