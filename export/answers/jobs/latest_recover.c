// SPDX-License-Identifier: Apache-2.0
/*
 * latest_recover.c - recovers spools of killed programs before a command reads their folder
 *
 * The user did not ask for it. So a spool counts only where nothing is open: it is the caller's own, no other user may
 * write to it, its program was killed here, and no process has it open for writing. Every other spool is left for
 * `kprof recover`, without a word.
 */
#include "export/answers/jobs/latest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/format/kp_ends.h"
#include "export/read/folder/jobends.h"
#include "export/show/say.h"
#include "export/show/units.h"
#include "export/read/symbols/lines.h"
#include "export/answers/jobs/recover_spool.h"

/* The kernel refuses a read lease on a file that any process, in any container, has open or mapped for writing. */
static bool is_open_for_writing(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static bool is_own(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_killed(const struct kp_recover_folder *folder, const char *name, long *pid)
{
    char path[4400];
    struct kp_file_head head = {.pid = 0};
    struct stat st;
    const int fd = openat(folder->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return false;
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    const bool is = fstat(fd, &st) == 0 && is_own(&st) && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                    memcmp(head.magic, KP_FORMAT_MAGIC, sizeof head.magic) == 0 && !head.closed &&
                    kp_spool_state(&head, path) == KP_SPOOL_GONE && !is_open_for_writing(fd);
    *pid = (long)head.pid;
    close(fd);
    return is;
}

unsigned kp_latest_recover(const char *command, const char *path, const char *const *names, size_t count)
{
    struct kp_recover r = {.wish = {.command = command, .gzip = -1, .quiet = true}};
    struct kp_recover_folder folder = {.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .path = path};
    struct kp_lines *lines = NULL;
    const bool may_write =
        folder.dir >= 0 && fstat(folder.dir, &folder.st) == 0 && faccessat(folder.dir, ".", W_OK, AT_EACCESS) == 0;
    for (size_t i = 0; i < count && may_write; i++) {
        long pid;
        if (!is_killed(&folder, names[i], &pid)) continue;
        const unsigned before = r.traces, empty = r.empty, untold = r.untold;
        if (!lines) lines = kp_lines_open(command, &(struct kp_lines_options){0});
        r.wish.places = kp_lines_places(lines);
        kp_recover_spool(&r, &folder, names[i], true);
        if (r.untold > untold) kp_jobends_add(path, pid, KP_ENDS_PENDING, kp_clock_ns(CLOCK_REALTIME));
        if (r.traces > before)
            kp_cli_say(stderr, "kprof %s: %s/%s: its program ended without a trace; recovered %u trace%s", command,
                       path, names[i], r.traces - before, kp_units_s(r.traces - before));
        else if (r.empty > empty)
            kp_cli_say(stderr, "kprof %s: %s/%s: its program was killed before it did anything to record; removed it",
                       command, path, names[i]);
    }
    if (lines) kp_lines_close(lines);
    if (folder.dir >= 0) close(folder.dir);
    return r.removed;
}
