// SPDX-License-Identifier: Apache-2.0
/* half.h - the two halves of a spool: in memory and on the disk (kp_format.h) */
#pragma once

#include "collector/format/kp_format.h"
#include "collector/format/kp_half.h"
#include "collector/read/reader.h"

enum { KP_HALF_TEXT = 8192 }; /* the lines that kp_half_line looks through */

/* Reads the header. False: it is no spool's. */
bool kp_half_head(int fd, struct kp_file_head *out);
/* Whether the file is a half of the spool that has this header. */
bool kp_half_is_of(int fd, const struct kp_file_head *head);
/* The value of the header's first line with this key. False: there is none among the first lines, or it is too long. */
bool kp_half_line(int fd, const struct kp_file_head *head, const char *key, char *out, size_t bytes);
/* Fills r->file from both halves, with the chunks of memory over those of the disk. 0 or -errno. */
int kp_half_map(struct kp_reader *r, const struct kp_reader_halves *halves);
