// SPDX-License-Identifier: Apache-2.0
/* torch_bridge.h - what the run may ask about torch */
#pragma once

#include <stdint.h>

enum { KP_COLLECTIVE_NAME = 48 };
struct kp_collective_count {
    char name[KP_COLLECTIVE_NAME]; /* "gloo:all_reduce" */
    uint64_t begun, ended;         /* how many, since the process began */
    uint64_t since_ms;             /* kp_clock_ms() when the last one began */
};
/* From now on collectives are counted, recorded or not. Once, before torch is attached. */
void kp_torch_collectives_watch(void);
/* The collectives that this process has begun, by name. Any thread; the counts go on meanwhile. Returns how many. */
uint32_t kp_torch_collectives(struct kp_collective_count *out, uint32_t most);

uint64_t kp_torch_collectives_ns(void); /* for so long one at least was open, ever. Any thread */

/* A block that torch holds, with KPROF_ON_OOM. site: python_bridge.h; device: its type, and its number << 8. */
struct kp_torch_block {
    uint64_t bytes;
    uint32_t step; /* that it was allocated in */
    uint16_t site, device;
};
typedef void (*kp_torch_block_fn)(void *context, const struct kp_torch_block *block);
/* Calls fn for each, while others come and go. Returns how many ever found no room. */
uint64_t kp_torch_blocks(kp_torch_block_fn fn, void *context);
