// SPDX-License-Identifier: Apache-2.0
/*
 * log.c - the only way to stderr, or to the file of KPROF_LOG
 *
 * Called by: any thread, anywhere, also in signal handlers
 * Owns:      the duplicate of stderr, or the log file's descriptor. Each use first checks that it is still the same
 *            file.
 * Locks:     none
 * Memory:    512 bytes of stack; twice that, once, where the log file cannot be opened
 * On fail:   a line that cannot be written is lost; the host does not notice
 */
#include "collector/base/kp_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_LOG_BYTES 512

/* Lines a process may write, by level: a fault that repeats must not fill the host's stderr. */
static const unsigned level_cap[] = {64, 500, 2000};
static _Atomic unsigned level_lines[3];
static _Atomic int verbose_level;

void kp_log_set_level(int verbose) { kp_store_relaxed(&verbose_level, verbose); }

enum { TO_STDERR, TO_NONE, TO_FILE };
static _Atomic uint32_t where;

/* ---- stderr ---- */

static bool is_held, was_open;
static dev_t held_device;
static ino_t held_file;
static bool has_reader; /* a pipe or a socket: its reader waits until every copy is closed */
static _Atomic int kept = -1;

void kp_log_hold_stderr(void)
{
    struct stat s;
    was_open = kp_io_fstat(STDERR_FILENO, &s) == 0;
    if (was_open) held_device = s.st_dev, held_file = s.st_ino;
    has_reader = was_open && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode));
    is_held = true;
}

/* False: the host closed descriptor 2, and may have reused the number for its own file or socket. */
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

static void stderr_keep(void)
{
    if (kp_load_relaxed(&kept) < 0 && is_held && is_still_stderr(STDERR_FILENO))
        kp_store_relaxed(&kept, kp_io_dup_high(STDERR_FILENO));
}

static void stderr_leave(void)
{
    int fd = kp_exchange_acq_rel(&kept, -1);
    if (is_still_stderr(fd)) kp_io_close(fd);
}

void kp_log_follow_stderr(void)
{
    struct stat now, null;
    if (!has_reader || kp_load_relaxed(&kept) < 0 || is_still_stderr(STDERR_FILENO)) return;
    int saved = errno;
    if (kp_io_fstat(STDERR_FILENO, &now) != 0 ||
        (kp_io_stat("/dev/null", &null) == 0 && now.st_rdev == null.st_rdev && S_ISCHR(now.st_mode)))
        stderr_leave();
    errno = saved;
}

/* ---- a file ----
 * Opened at the first line, or when a run begins, and kept. So the closing line gets there even after a chroot, a
 * change of user, or without a free descriptor. A low number is not kept, since the host may rely on it.
 */

static const char *file_path;
static char file_folder[4096]; /* "" if too long, or if the path has no folder */
static _Atomic uint64_t file_device, file_inode;
static _Atomic int file_fd = -1;
static _Atomic bool was_file_open;

const char *kp_log_refuse_file(const struct stat *file)
{
    if (!S_ISREG(file->st_mode)) return "is no regular file";
    if (file->st_uid != geteuid()) return "is another user's file";
    return file->st_nlink == 1 ? NULL : "also has other names (links)";
}

/* Checks the file before it is opened, since opening a device may have effects. 0: it is good, or does not exist. */
static int file_look(const char **why)
{
    struct stat s;
    int fd = kp_io_open(file_path, O_PATH | O_NOFOLLOW, 0);
    if (fd == -ENOENT) return 0;
    if (fd < 0) return fd;
    int rc = kp_io_fstat(fd, &s);
    kp_io_close(fd);
    if (rc == 0) *why = kp_log_refuse_file(&s);
    return *why ? -EPERM : rc;
}

static int file_open(const char **why)
{
    enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };
    struct stat s;
    int rc = file_look(why);
    if (rc < 0) return rc;
    int fd = kp_io_open(file_path, FLAGS, 0600);
    if (fd == -ENOENT && kp_io_mkdirs(file_folder, KP_IO_FOLDER_MODE) == 0) fd = kp_io_open(file_path, FLAGS, 0600);
    if (fd < 0) return fd;
    rc = kp_io_fstat(fd, &s);
    if (rc == 0) *why = kp_log_refuse_file(&s);
    if (rc < 0 || *why) return kp_io_close(fd), rc < 0 ? rc : -EPERM;
    kp_store_relaxed(&file_device, s.st_dev);
    kp_store_relaxed(&file_inode, s.st_ino);
    kp_store_relaxed(&was_file_open, true);
    return fd;
}

static bool is_still_file(int fd)
{
    struct stat s;
    return fd >= 0 && kp_io_fstat(fd, &s) == 0 && s.st_dev == kp_load_relaxed(&file_device) &&
           s.st_ino == kp_load_relaxed(&file_inode);
}

static const struct {
    int err;
    const char *text;
} error_texts[] = {
    {EPERM, "Operation not permitted"},
    {ENOENT, "No such file or directory"},
    {EINTR, "Interrupted system call"},
    {EIO, "Input/output error"},
    {ENXIO, "No such device or address"},
    {E2BIG, "Argument list too long"},
    {EBADF, "Bad file descriptor"},
    {EAGAIN, "Resource temporarily unavailable"},
    {ENOMEM, "Cannot allocate memory"},
    {EACCES, "Permission denied"},
    {EFAULT, "Bad address"},
    {EBUSY, "Device or resource busy"},
    {EEXIST, "File exists"},
    {EXDEV, "Invalid cross-device link"},
    {ENODEV, "No such device"},
    {ENOTDIR, "Not a directory"},
    {EISDIR, "Is a directory"},
    {EINVAL, "Invalid argument"},
    {ENFILE, "Too many open files in system"},
    {EMFILE, "Too many open files"},
    {EFBIG, "File too large"},
    {ENOSPC, "No space left on device"},
    {ESPIPE, "Illegal seek"},
    {EROFS, "Read-only file system"},
    {EPIPE, "Broken pipe"},
    {ENAMETOOLONG, "File name too long"},
    {ENOSYS, "Function not implemented"},
    {ELOOP, "Too many levels of symbolic links"},
    {ENODATA, "No data available"},
    {ETIMEDOUT, "Connection timed out"},
    {ESTALE, "Stale file handle"},
    {EDQUOT, "Disk quota exceeded"},
    {ECANCELED, "Operation canceled"},
    {EOVERFLOW, "Value too large for defined data type"},
    {EOPNOTSUPP, "Operation not supported"},
    {ESHUTDOWN, "Cannot send after transport endpoint shutdown"},
};

/* As strerror, which may allocate and translates; strerrordesc_np came with glibc 2.32. */
const char *kp_log_error_text(int err)
{
    for (size_t i = 0; i < sizeof error_texts / sizeof error_texts[0]; i++)
        if (error_texts[i].err == (err < 0 ? -err : err)) return error_texts[i].text;
    return "unknown error";
}

/*
 * Says once, on stderr, that the log file cannot be used. If the file was in use before, lines are lost instead: the
 * host's stderr stays clean.
 */
static void file_miss(int rc, const char *why)
{
    char text[96];
    /* pairs with: itself */
    if (kp_load_relaxed(&was_file_open) || kp_exchange_acq_rel(&where, TO_STDERR) != TO_FILE) return;
    if (!why) kp_fmt(text, sizeof text, "cannot be opened (%s)", kp_log_error_text(rc));
    kp_log(0, "KPROF_LOG=%s %s, using stderr", file_path, why ? why : text);
}

/* A descriptor for a line, kept or not, or -errno. A number that now names another file is not closed. */
static int file_get(void)
{
    const char *why = NULL;
    int old = kp_load_relaxed(&file_fd);
    if (is_still_file(old)) return old;
    int fd = file_open(&why);
    if (fd < 0) return file_miss(fd, why), fd;
    if (fd >= KP_IO_FD_HIGH)
        (void)kp_cas_acq_rel(&file_fd, &old, fd); /* pairs with: itself. If it fails, fd serves this line only */
    return fd;
}

static void file_give(int fd)
{
    if (fd >= 0 && fd != kp_load_relaxed(&file_fd)) kp_io_close(fd);
}

static void file_leave(void)
{
    int fd = kp_exchange_acq_rel(&file_fd, -1); /* pairs with: file_get */
    if (is_still_file(fd)) kp_io_close(fd);
}

/* ---- which of them ---- */

void kp_log_set_target(const char *target)
{
    const char *slash = strrchr(target, '/');
    file_leave();
    kp_store_relaxed(&was_file_open, false);
    file_path = target;
    if (slash && (size_t)(slash - target) < sizeof file_folder) memcpy(file_folder, target, (size_t)(slash - target));
    if (strcmp(target, "stderr") == 0) kp_store_relaxed(&where, TO_STDERR);
    else kp_store_relaxed(&where, strcmp(target, "none") == 0 ? TO_NONE : TO_FILE);
}

void kp_log_keep(void)
{
    int saved = errno;
    if (kp_load_relaxed(&where) == TO_FILE) file_give(file_get());
    if (kp_load_relaxed(&where) == TO_STDERR) stderr_keep();
    errno = saved;
}

void kp_log_release(void)
{
    int saved = errno;
    stderr_leave();
    file_leave();
    errno = saved;
}

bool kp_log_is_on_terminal(void) { return kp_load_relaxed(&where) == TO_STDERR && kp_io_is_terminal(STDERR_FILENO); }

/* A descriptor for a line, and the line's beginning. In a file it has the pid, since several processes may write. */
static int line_begin(char *line, size_t bytes, size_t *head)
{
    const int fd = kp_load_relaxed(&where) == TO_FILE ? file_get() : -1;
    const bool is_on_stderr = kp_load_relaxed(&where) == TO_STDERR; /* file_get may have changed it */
    *head = is_on_stderr ? kp_fmt(line, bytes, "kprof: ") : kp_fmt(line, bytes, "kprof[%d]: ", (int)getpid());
    return is_on_stderr ? stderr_get() : fd;
}

void kp_log(int level, const char *format, ...)
{
    char line[KP_LOG_BYTES];
    int saved = errno;
    level = level < 0 ? 0 : level > 2 ? 2 : level;
    if (level > kp_load_relaxed(&verbose_level) || kp_load_relaxed(&where) == TO_NONE) return;
    unsigned before = kp_add_relaxed(&level_lines[level], 1);
    if (before > level_cap[level]) return;
    if (before == level_cap[level]) format = "further lines like this are not shown";

    size_t head;
    const int fd = line_begin(line, sizeof line, &head);
    size_t room = sizeof line - head - 1; /* a byte stays for the newline */
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
    if (fd >= 0) (void)kp_io_write_all(fd, line, head + n + 1);
    if (kp_load_relaxed(&where) == TO_FILE) file_give(fd);
    errno = saved;
}
