// SPDX-License-Identifier: Apache-2.0
/*
 * filecheck.c - checks owner and type of an open file before it is read or mapped
 *
 * Called by: preload/finish/children.c and spools.c, at exit and in workers; elffile.c and the CLI
 * On fail:   -errno, and no descriptor stays open
 */
#include "collector/base/sys/kp_filecheck.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { OTHERS = S_IRWXG | S_IRWXO };

bool kp_filecheck_is_own(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 && !(st->st_mode & OTHERS);
}

/* Checks through the descriptor, since a second look-up of the path may find another file. Closes a bad file. */
static int open_if(int fd, bool (*is_good)(const struct stat *))
{
    struct stat st;
    if (fd < 0) return fd;
    int rc = kp_io_fstat(fd, &st);
    if (rc == 0 && !is_good(&st)) rc = -EPERM;
    if (rc < 0) kp_io_close(fd);
    return rc < 0 ? rc : fd;
}

int kp_filecheck_open_own(int dir, const char *name, int flags)
{
    return open_if(kp_io_open_at(dir, name, flags | O_NOFOLLOW | O_NONBLOCK, 0600), kp_filecheck_is_own);
}

static bool is_safe_folder(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) && (!(st->st_mode & S_IWOTH) || (st->st_mode & S_ISVTX));
}

int kp_filecheck_open_folder(const char *path)
{
    return open_if(kp_io_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), is_safe_folder);
}

/* O_PATH finds a file without opening it, and /proc/self/fd then opens that file. Opens the path if there is no
 * /proc. */
int kp_filecheck_open_plain(const char *path)
{
    char again[64];
    struct stat st;
    const int found = kp_io_open(path, O_PATH, 0);
    if (found < 0) return found;
    int rc = kp_io_fstat(found, &st);
    if (rc == 0 && !S_ISREG(st.st_mode)) rc = -EINVAL;
    kp_fmt(again, sizeof again, "/proc/self/fd/%d", found);
    int fd = rc < 0 ? rc : kp_io_open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd == -ENOENT) fd = kp_io_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    kp_io_close(found);
    return fd;
}
