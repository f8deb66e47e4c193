// SPDX-License-Identifier: Apache-2.0
/* memory_write.h - allocations and frees of torch's allocators, as Kineto's [memory] events */
#pragma once

#include "export/write/out/trace.h"

/* Writes an event of kind MEMORY, or nothing for a block that the window did not allocate. 0 or -ENOMEM. */
int kp_memory_write(struct kp_trace *t, const struct kp_event *e);
