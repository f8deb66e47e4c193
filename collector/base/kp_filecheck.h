// SPDX-License-Identifier: Apache-2.0
/*
 * kp_filecheck.h - whose a file is and of which kind, asked of a descriptor before the file is read or mapped
 *
 * A path may lead elsewhere a moment after it was looked at. So a file is opened once, and what was opened is looked at.
 */
#ifndef KP_FILECHECK_H
#define KP_FILECHECK_H

#include <stdbool.h>

struct stat;

/*
 * Nobody but this user (and root) can cut it off or write to it while it is mapped: a plain file of his, under one name, whose mode lets
 * no other user in.
 */
bool kp_filecheck_is_own(const struct stat *st);
/* Opens such a file in a folder, without following a link or waiting for a pipe. -EPERM: it is another kind of file. */
int kp_filecheck_open_own(int dir, const char *name, int flags);
/*
 * Opens a folder in which others may add files, but cannot exchange those of this user: it is his or root's, and where everybody may write
 * to it, it is sticky. -EPERM: it is none.
 */
int kp_filecheck_open_folder(const char *path);
/*
 * Opens a plain file to read. What is no plain file is never opened, since that alone may wait for ever (a pipe) or do something (a device):
 * -EINVAL. Links are followed.
 */
int kp_filecheck_open_plain(const char *path);

#endif
