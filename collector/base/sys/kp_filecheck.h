// SPDX-License-Identifier: Apache-2.0
/*
 * kp_filecheck.h - checks owner and type of an open file before it is read or mapped
 *
 * A path may lead elsewhere a moment after a check. So the file is opened once, and the check uses the descriptor.
 */
#pragma once

#include <stdbool.h>

struct stat;

/*
 * True when only this user and root can truncate or write the file while it is mapped. It is a plain file of this
 * user with one name, and its mode shuts other users out.
 */
bool kp_filecheck_is_own(const struct stat *st);
/* Opens a file in a folder. -EPERM: kp_filecheck_is_own refuses it. Follows no link, waits for no pipe. */
int kp_filecheck_open_own(int dir, const char *name, int flags);
/*
 * Opens a folder in which other users cannot replace this user's files. It belongs to this user or root, and is sticky
 * where all users may write. -EPERM: another folder.
 */
int kp_filecheck_open_folder(const char *path);
/*
 * Opens a plain file to read, and follows links. -EINVAL: it is no plain file, and was not opened. Opening a pipe may
 * block, and opening a device may have effects.
 */
int kp_filecheck_open_plain(const char *path);
