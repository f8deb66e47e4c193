// SPDX-License-Identifier: Apache-2.0
/* spoolfile.h - a spool's file, for every command: opened once, copied where others may change it, locked while it is
 * recovered */
#ifndef KP_SPOOLFILE_H
#define KP_SPOOLFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "collector/read/kp_read.h"

struct kp_export_owner;

/*
 * As kp_reader_open (with what the file is, unless NULL) and kp_reader_open_fd. A file that another user may cut off or
 * change is copied first, to one without a name in TMPDIR: the reader maps what it reads.
 */
int kp_spoolfile_open(struct kp_reader **out, const char *path, struct stat *st, char *why, size_t why_bytes);
int kp_spoolfile_read(struct kp_reader **out, int fd, const char *path, char *why, size_t why_bytes);
/*
 * The next stretch of data of a file of so many bytes, from *end on (0 at first): false when only a hole is left. Moves
 * fd's offset. Where the file system tells of no holes all is data.
 */
bool kp_spoolfile_extent(int fd, off_t bytes, off_t *begin, off_t *end);
/* 0, or -EWOULDBLOCK: somebody else is at it, and `who` says which process. Ends with the descriptor. */
int kp_spoolfile_lock(int fd, char *who, size_t who_bytes);
/*
 * To whom files belong that are made of another user's spool, and who may read them: as the spool. Where it cannot be
 * given to him, to nobody but the caller. False: the spool is the caller's own.
 */
bool kp_spoolfile_owner(const struct stat *spool, struct kp_export_owner *out);

#endif
