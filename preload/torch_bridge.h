// SPDX-License-Identifier: Apache-2.0
/* torch_bridge.h - what the run may ask about torch */
#pragma once

#include <stdbool.h>
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
