// SPDX-License-Identifier: Apache-2.0
/* sorted.h - any number of lines in order of time, in a bounded part of memory */
#ifndef KP_SORTED_H
#define KP_SORTED_H

#include <stddef.h>
#include <stdint.h>

struct kp_sorted;
/* piece: bytes of lines that are kept in memory; 0: 8 MB. More go to a file without a name in TMPDIR, at most `most`
 * bytes (0: any number; beyond it -EDQUOT). Ends the program without memory. */
struct kp_sorted *kp_sorted_open(size_t piece, uint64_t most);
void kp_sorted_close(struct kp_sorted *s);
/* 0, or -errno from then on: not all can be kept. */
int kp_sorted_add(struct kp_sorted *s, int64_t start_ns, int64_t dur_ns, const char *line, size_t bytes);
/* Every line: by start, of one start the longer first, of one length too as they were added. 0, or -errno: not all
 * could be kept. Once. */
typedef void (*kp_sorted_fn)(void *context, int64_t start_ns, const char *line, size_t bytes);
int kp_sorted_each(struct kp_sorted *s, kp_sorted_fn fn, void *context);

#endif
