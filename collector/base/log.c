// SPDX-License-Identifier: Apache-2.0
/*
 * log.c - the only road to stderr
 *
 * Called by: anybody, anywhere (also signal handlers)
 * Memory:    512 bytes of stack
 * On fail:   a line that cannot be written is lost; the host never notices
 */
#include "collector/base/kp_log.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_LOG_BYTES 512
#define KP_LOG_HEAD "kprof: "

/* Lines a process may write, by level: a fault that repeats must not fill the host's stderr. */
static const unsigned level_cap[] = {64, 500, 2000};
static _Atomic unsigned level_lines[3];
static _Atomic int verbose_level;

void kp_log_set_level(int verbose)
{
    kp_store_relaxed(&verbose_level, verbose);
}

static bool is_held, was_open;
static dev_t held_device;
static ino_t held_file;
static bool has_reader; /* a pipe or a socket: who reads waits until every copy is closed */
static _Atomic int kept = -1;

void kp_log_hold_stderr(void)
{
    struct stat s;
    was_open = kp_io_fstat(STDERR_FILENO, &s) == 0;
    if (was_open) held_device = s.st_dev, held_file = s.st_ino;
    has_reader = was_open && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode));
    is_held = true;
}

/* A host that closed descriptor 2 may have got it again for a file or a socket of its own: not ours to write to. */
static bool is_still_stderr(int fd)
{
    struct stat s;
    return was_open && fd >= 0 && kp_io_fstat(fd, &s) == 0 && s.st_dev == held_device && s.st_ino == held_file;
}

static int stderr_get(void)
{
    if (!is_held || is_still_stderr(STDERR_FILENO)) return STDERR_FILENO;
    int fd = kp_load_relaxed(&kept);
    return is_still_stderr(fd) ? fd : -1;
}

void kp_log_keep_stderr(void)
{
    int saved = errno;
    if (kp_load_relaxed(&kept) < 0 && is_held && is_still_stderr(STDERR_FILENO))
        kp_store_relaxed(&kept, kp_io_dup_high(STDERR_FILENO));
    errno = saved;
}

void kp_log_leave_stderr(void)
{
    int saved = errno, fd = kp_exchange_acq_rel(&kept, -1);
    if (is_still_stderr(fd)) kp_io_close(fd);
    errno = saved;
}

void kp_log_follow_stderr(void)
{
    struct stat now, null;
    if (!has_reader || kp_load_relaxed(&kept) < 0 || is_still_stderr(STDERR_FILENO)) return;
    int saved = errno;
    if (kp_io_fstat(STDERR_FILENO, &now) != 0 || (kp_io_stat("/dev/null", &null) == 0 && now.st_rdev == null.st_rdev && S_ISCHR(now.st_mode)))
        kp_log_leave_stderr();
    errno = saved;
}

void kp_log(int level, const char *format, ...)
{
    char line[KP_LOG_BYTES];
    int saved = errno;
    level = level < 0 ? 0 : level > 2 ? 2 : level;
    if (level > kp_load_relaxed(&verbose_level)) return;
    unsigned before = kp_add_relaxed(&level_lines[level], 1);
    if (before > level_cap[level]) return;
    if (before == level_cap[level]) format = "further lines like this are not shown";

    size_t head = sizeof KP_LOG_HEAD - 1, room = sizeof line - head - 1; /* one byte for the newline */
    memcpy(line, KP_LOG_HEAD, head);
    va_list args;
    va_start(args, format);
    size_t n = kp_vfmt(line + head, room, format, args);
    va_end(args);
    if (n >= room) {
        n = room - 1;
        memcpy(line + head + n - 3, "...", 3);
    }
    for (size_t i = head; i < head + n; i++)
        if (line[i] == '\n') line[i] = ' ';
    line[head + n] = '\n';
    int fd = stderr_get();
    if (fd >= 0) (void)kp_io_write_all(fd, line, head + n + 1);
    errno = saved;
}
