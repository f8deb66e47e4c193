// SPDX-License-Identifier: Apache-2.0
/* spoolfile.h - opens a spool's file once, copies it if others may change it, and locks it during a recovery */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "collector/read/kp_read.h"

struct kp_export_owner;

/*
 * Opens a reader on a path (filling in st, unless NULL), and on an open file, as kp_reader_open_fd does. The reader
 * maps the file. So a file that another user may cut off or change is copied first, to an unnamed file in TMPDIR.
 */
int kp_spoolfile_open(struct kp_reader **out, const char *path, struct stat *st, char *why, size_t why_bytes);
int kp_spoolfile_read(struct kp_reader **out, int fd, const char *path, char *why, size_t why_bytes);
void kp_cli_join_dead(const char *folder); /* kp_join_dead of a folder that is there */
/*
 * The next data of a file of so many bytes, from *end on (0 at first). False: only a hole is left. Moves fd's offset.
 * If the file system does not tell holes, all is data.
 */
bool kp_spoolfile_extent(int fd, off_t bytes, off_t *begin, off_t *end);
/* 0, or -EWOULDBLOCK: another process has the lock, and `who` names it. The lock ends with the descriptor. */
int kp_spoolfile_lock(int fd, char *who, size_t who_bytes);
/*
 * Owner and mode of files made from another user's spool: as the spool. If the caller cannot give files away, only the
 * caller can read them. False: the spool is the caller's own.
 */
bool kp_spoolfile_owner(const struct stat *spool, struct kp_export_owner *out);
