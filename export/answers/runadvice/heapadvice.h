// SPDX-License-Identifier: Apache-2.0
/* heapadvice.h - what steps leave on the host's heap, as findings of a trace */
#pragma once

#include "export/answers/runadvice/advised.h"

/* Adds findings of the heap's profile beside the trace at `path`, before all others. Without one it does nothing. */
void kp_heapadvice_add(struct kp_advised *advised, const char *path);
