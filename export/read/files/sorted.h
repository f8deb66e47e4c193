// SPDX-License-Identifier: Apache-2.0
/* sorted.h - sorts any number of lines by time, in bounded memory */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_sorted;
/*
 * `piece` is the number of bytes kept in memory, or 0 for 8 MB. More go to an unnamed file in TMPDIR of at most `most`
 * bytes (0: any number). Beyond it, calls return -EDQUOT. Ends the program without memory.
 */
struct kp_sorted *kp_sorted_open(size_t piece, uint64_t most);
void kp_sorted_close(struct kp_sorted *s);
/* 0, or -errno, also from later calls: not all lines are kept. */
int kp_sorted_add(struct kp_sorted *s, int64_t start_ns, int64_t dur_ns, const char *line, size_t bytes);
/*
 * Gives every line, by start. At equal starts the longer comes first, and equal lines come as they were added. 0, or
 * -errno: not all were kept. Call it once.
 */
typedef void (*kp_sorted_fn)(void *context, int64_t start_ns, const char *line, size_t bytes);
int kp_sorted_each(struct kp_sorted *s, kp_sorted_fn fn, void *context);
