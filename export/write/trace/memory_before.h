// SPDX-License-Identifier: Apache-2.0
/* memory_before.h - the CPU blocks that were allocated before a window, as two keys of its trace */
#pragma once

#include "export/write/out/trace.h"

struct kp_before;
struct kp_before *kp_before_open(void); /* NULL: no memory */
void kp_before_close(struct kp_before *before);
/* Takes a record with KP_MEMORY_BEFORE. 0 or -ENOMEM. */
int kp_before_take(struct kp_before *before, const struct kp_event *e);
/* The window allocates at this address: so no block of before is there. */
void kp_before_reused(struct kp_before *before, uint64_t address);
/* Takes a free of a block that the window did not allocate. 0 or -ENOMEM. */
int kp_before_freed(struct kp_before *before, const struct kp_event *e);
/* Writes the keys if the window's list is whole. 0 or -ENOMEM. */
int kp_before_write(struct kp_before *before, struct kp_trace *t);
