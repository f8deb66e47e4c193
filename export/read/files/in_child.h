// SPDX-License-Identifier: Apache-2.0
/* in_child.h - runs work on a file that may be damaged or hostile in a child process */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_apart_limits {
    uint64_t memory_bytes,
        cpu_s; /* of the child, or 0. With a sanitizer there is no memory limit, since its memory would count */
};

/*
 * Runs fn in a child that shares stdout and stderr, and waits for it. 0: fn returned, and its results are in memory of
 * kp_apart_memory. Or -1 with the child's end in `why`.
 */
int kp_apart_run(void (*fn)(void *context), void *context, const struct kp_apart_limits *limits, char *why,
                 size_t why_bytes);
/* Zeroed memory that parent and child share, or NULL. */
void *kp_apart_memory(size_t bytes);
void kp_apart_free(void *memory, size_t bytes);
