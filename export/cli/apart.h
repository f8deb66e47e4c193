// SPDX-License-Identifier: Apache-2.0
/* apart.h - runs work on a file that may be damaged, or made to harm, in a process of its own */
#ifndef KP_APART_H
#define KP_APART_H

#include <stddef.h>
#include <stdint.h>

struct kp_apart_limits {
    uint64_t memory_bytes,
        cpu_s; /* of the process; 0: none. Memory of a sanitizer's would be counted, too: with one there is no limit */
};

/*
 * Runs fn in a child that stdout and stderr are shared with, and waits for it. 0: it returned; what it found out it
 * left in memory of kp_apart_memory. -1: it ended otherwise, and `why` says how.
 */
int kp_apart_run(void (*fn)(void *context), void *context, const struct kp_apart_limits *limits, char *why,
                 size_t why_bytes);
/* Zeroed memory that both see; NULL: none. */
void *kp_apart_memory(size_t bytes);
void kp_apart_forget(void *memory, size_t bytes);

#endif
