// SPDX-License-Identifier: Apache-2.0
/*
 * recover_spool.c - writes the traces of a dead process's spool in a child process, and then removes the spool
 *
 * A folder may have many spools, some of them damaged or hostile. A child with limits reads each, so that the next
 * spool is recovered in any case. The caller may be root, in the folder of a hostile user, set up to read or destroy
 * other users' files. So no link that a listing gave is followed, and traces belong to the spool's owner. A spool is
 * removed only when its traces are on the disk. Called by cmd_recover.c, and by latest_recover.c before a command reads
 * a folder.
 */
#include "export/answers/jobs/recover_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/read/files/in_child.h"
#include "export/read/files/budget.h"
#include "export/show/say.h"
#include "export/read/files/spoolfile.h"
#include "export/kp_export.h"

struct spool {
    const struct kp_recover *r;
    const struct kp_recover_folder *folder;
    const char *name;
    char path[4400];
    int fd;
    bool listed;
    struct stat st;
    struct kp_export_owner owner;
};

/* The child's results. */
struct outcome {
    enum { BAD, LEFT, DONE } state;
    unsigned traces;
    bool is_untold;                 /* its last trace is of a window that was over: it does not tell the end */
    bool is_empty;                  /* no event, and no trace of it */
    struct kp_export_result result; /* of the current trace */
};

struct recover_work {
    const struct spool *s;
    struct outcome *o;
};

/* Says what is no error. */
static void told(const struct kp_recover *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void told(const struct kp_recover *r, const char *format, ...)
{
    char line[9000];
    va_list args;
    if (r->wish.quiet) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    kp_cli_say(r->wish.json ? stderr : stdout, "%s", line);
}

/* ---- names in a folder ---- */

void kp_recover_names_remove(int dir, const char *begin, const char *end,
                             bool (*wanted)(const void *context, const char *rest), const void *context)
{
    const int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const names = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    while (names && (entry = readdir(names)) != NULL) {
        const size_t bytes = strlen(entry->d_name), first = strlen(begin), last = strlen(end);
        if (bytes < first + last || strncmp(entry->d_name, begin, first) != 0 ||
            strcmp(entry->d_name + bytes - last, end) != 0)
            continue;
        if (!wanted || wanted(context, entry->d_name + first)) unlinkat(dir, entry->d_name, 0);
    }
    if (names) closedir(names);
}

/* RANK_PID.* of a file .HOST_rRANK_PID.*.part: whether the pid is that of the context. */
static bool is_of_pid(const void *pid, const char *rest)
{
    const size_t digits = strspn(rest, "0123456789"), bytes = strlen(pid);
    return digits && rest[digits] == '_' && strncmp(rest + digits + 1, pid, bytes) == 0 &&
           rest[digits + 1 + bytes] == '.';
}

/*
 * Removes files that the killed process left half written: FOLDER/.HOST_PID.*.part of
 * FOLDER/HOST_PID.NANOSECONDS.kprof, or .HOST_rRANK_PID.*.part.
 */
static void parts_remove(const struct spool *s)
{
    char begin[300], pid[32];
    const char *end = strrchr(s->name, '.'), *last;
    while (end && end > s->name && *--end != '.') continue;
    if (!end || end == s->name) return;
    snprintf(begin, sizeof begin, ".%.*s.", (int)(end - s->name), s->name);
    kp_recover_names_remove(s->folder->dir, begin, ".part", NULL, NULL);
    for (last = end; last > s->name && last[-1] != '_';) last--;
    if (last == s->name) return;
    snprintf(begin, sizeof begin, ".%.*sr", (int)(last - s->name), s->name);
    snprintf(pid, sizeof pid, "%.*s", (int)(end - last), last);
    kp_recover_names_remove(s->folder->dir, begin, ".part", is_of_pid, pid);
}

/* Removes the file that the child left half written. */
static void left_remove(const struct spool *s, const struct outcome *o)
{
    char begin[sizeof o->result.path + 1];
    const char *const slash = strrchr(o->result.path, '/'), *const json =
                                                                slash ? strstr(slash, ".pt.trace.json") : NULL;
    const char *const where = s->r->wish.dir;
    if (!json) return;
    snprintf(begin, sizeof begin, ".%.*s.", (int)(json - slash - 1), slash + 1);
    const int dir = where ? open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : s->folder->dir;
    if (dir >= 0) kp_recover_names_remove(dir, begin, ".part", NULL, NULL);
    if (dir >= 0 && where) close(dir);
}

/* ---- in the child ---- */

/* True: no process uses the spool. */
static bool is_free(const struct spool *s, const struct kp_file_head *head)
{
    const enum kp_spool_state state = kp_spool_state(head, s->path);
    if (state == KP_SPOOL_RUNNING) told(s->r, "kprof: %s: process %u is still running, left alone", s->path, head->pid);
    if (state == KP_SPOOL_FOREIGN_HOST && !s->r->force)
        told(s->r, "kprof: %s: written on %.64s, left alone; --force when that process is gone", s->path, head->host);
    return state == KP_SPOOL_GONE || (state == KP_SPOOL_FOREIGN_HOST && s->r->force);
}

/*
 * The caller's own spool gives traces by the caller's umask, but not in another user's folder. That user might have
 * moved it there, to make it visible. Another user's spool gives traces of that user, with the spool's mode.
 */
static const struct kp_export_owner *owner_of(const struct spool *s, struct kp_export_owner *owner)
{
    const bool others = kp_spoolfile_owner(&s->st, owner);
    const uid_t where = s->folder->st.st_uid;
    return others || (!s->r->wish.dir && where != geteuid() && where != 0) ? owner : NULL;
}

static int folder_sync(const char *path)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = dir < 0 || (fsync(dir) != 0 && errno != EINVAL && errno != EROFS) ? -errno : 0;
    if (dir >= 0) close(dir);
    return rc;
}

static bool has_exported(const struct kp_reader *reader)
{
    struct kp_cycle cycle;
    for (size_t i = 0; i < kp_reader_cycles(reader); i++)
        if (kp_reader_cycle(reader, i, &cycle) == 0 && cycle.exported) return true;
    return false;
}

static bool is_end_untold(const struct kp_reader *reader)
{
    const size_t count = kp_reader_cycles(reader);
    struct kp_cycle last;
    return count && kp_reader_cycle(reader, count - 1, &last) == 0 && last.complete && !last.cut_short;
}

static void traces_write(const struct spool *s, struct kp_reader *reader, struct outcome *o)
{
    struct kp_spool_export_options wish = s->r->wish;
    struct kp_export_owner owner;
    wish.owner = owner_of(s, &owner);
    wish.result = &o->result;
    const uint64_t sampled_ns = kp_reader_last_ns(reader); /* a store into memory does not change a file's time */
    wish.written_ns = (uint64_t)s->st.st_mtim.tv_sec * 1000000000u + (uint64_t)s->st.st_mtim.tv_nsec;
    if (wish.written_ns < sampled_ns) wish.written_ns = sampled_ns;
    wish.skips_exported = true;
    if (!wish.dir) { /* the opened folder: its path may lead elsewhere by now */
        if (fchdir(s->folder->dir) != 0) {
            kp_cli_fail("recover", "%s: %s", s->folder->path, strerror(errno));
            return;
        }
        wish.dir = ".";
        wish.dir_shown = s->folder->path;
    }
    int rc = kp_spool_export_write(reader, s->path, &wish);
    if (rc < 0) return;
    if (!wish.quiet) kp_spool_export_losses(reader, s->r->wish.json ? stderr : stdout);
    o->is_empty = rc == 0 && !has_exported(reader);
    if (rc == 0)
        told(s->r, "kprof: %s: %s", s->path,
             o->is_empty ? "holds no event, nothing to recover" : "there is a trace of all it holds");
    const int synced = rc > 0 ? folder_sync(wish.dir) : 0;
    o->traces = (unsigned)rc;
    o->is_untold = is_end_untold(reader);
    if (synced == 0) o->state = DONE;
    else kp_cli_fail("recover", "%s: its traces may not be on the disk yet: %s", s->path, strerror(-synced));
}

static void recover(void *context)
{
    const struct recover_work *const work = context;
    struct kp_reader *reader;
    char why[512] = "";
    kp_budget_begin("recover", work->s->path);
    if (kp_spoolfile_read(&reader, work->s->fd, work->s->path, why, sizeof why) < 0) {
        kp_cli_fail("recover", "%s", why);
        return;
    }
    if (is_free(work->s, kp_reader_head(reader))) traces_write(work->s, reader, work->o);
    else work->o->state = LEFT;
    kp_reader_close(reader);
}

/* ---- in this process ---- */

static void spool_remove(struct kp_recover *r, const struct spool *s)
{
    struct stat now;
    if (r->keep) return;
    kp_half_remove(s->fd);
    if (fstatat(s->folder->dir, s->name, &now, s->listed ? AT_SYMLINK_NOFOLLOW : 0) != 0) return; /* its owner did */
    if (now.st_dev != s->st.st_dev || now.st_ino != s->st.st_ino)
        kp_cli_fail("recover", "%s: is another file by now, left alone", s->path);
    else if (unlinkat(s->folder->dir, s->name, 0) == 0) r->removed++;
    else kp_cli_fail("recover", "%s: cannot be removed: %s", s->path, strerror(errno));
}

static void opened_recover(struct kp_recover *r, const struct spool *s)
{
    struct recover_work work = {s, kp_apart_memory(sizeof *work.o)};
    struct kp_budget budget;
    char why[256] = "no memory";
    kp_budget_make(&budget, kp_budget_data(s->fd, (uint64_t)s->st.st_size), getenv("KPROF_READ_LIMIT"));
    /* The budget ends the child with a message. If the child cannot do that any more, the kernel ends it. */
    const struct kp_apart_limits limits = {.memory_bytes = 2 * budget.memory, .cpu_s = 2 * budget.seconds};
    if (!work.o || kp_apart_run(recover, &work, &limits, why, sizeof why) != 0) {
        r->bad++;
        kp_cli_fail("recover", "%s: %s; it stays where it is", s->path, why);
        if (work.o) left_remove(s, work.o);
    } else {
        r->bad += work.o->state == BAD;
        r->left += work.o->state == LEFT;
        r->traces += work.o->traces;
        r->empty += work.o->is_empty;
        r->untold += work.o->is_untold;
        if (work.o->state == DONE && !r->keep) parts_remove(s);
        if (work.o->state == DONE) spool_remove(r, s);
    }
    kp_apart_free(work.o, sizeof *work.o);
}

/* Whether the folder's owner or the caller wrote the file that a listing named. */
static bool is_trusted(struct kp_recover *r, const struct spool *s)
{
    const char *why = NULL;
    if (!s->listed || !S_ISREG(s->st.st_mode)) return true; /* the reader refuses what is no file */
    if (s->st.st_uid != geteuid() && s->st.st_uid != s->folder->st.st_uid)
        why = "belongs to another user than the folder";
    else if (s->st.st_nlink > 1) why = "has a second name (a hard link)";
    if (!why) return true;
    r->left++;
    told(r, "kprof: %s: %s, left alone; name the file itself to recover it", s->path, why);
    return false;
}

/* Says that a spool could not be opened, unless another process has recovered it. */
static void refusal_tell(struct kp_recover *r, const struct spool *s, int error)
{
    struct stat st;
    const bool there = fstatat(s->folder->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0,
               others = there && st.st_uid != geteuid();
    if (s->listed && !there) return;
    if (s->listed && (error == ELOOP || (error == EACCES && others))) {
        r->left++;
        told(r, "kprof: %s: %s", s->path,
             error == ELOOP ? "is a link, left alone; name the file itself to recover it"
                            : "belongs to another user, left alone");
        return;
    }
    r->bad++;
    kp_cli_fail("recover", "%s: %s", s->path, kp_cli_read_why(error));
}

static bool is_ours_alone(struct kp_recover *r, const struct spool *s)
{
    char who[64];
    struct stat st;
    if (kp_spoolfile_lock(s->fd, who, sizeof who) != 0) {
        r->left++;
        told(r, "kprof: %s: %s is recovering it, left alone", s->path, who);
        return false;
    }
    return fstat(s->fd, &st) != 0 || st.st_nlink != 0; /* 0 links: another process recovered it */
}

void kp_recover_spool(struct kp_recover *r, const struct kp_recover_folder *folder, const char *name, bool listed)
{
    struct spool s = {.r = r, .folder = folder, .name = name, .listed = listed};
    const char *const slash = folder->path[strlen(folder->path) - 1] == '/' ? "" : "/";
    if (!listed && strcmp(folder->path, ".") == 0) snprintf(s.path, sizeof s.path, "%s", name);
    else snprintf(s.path, sizeof s.path, "%s%s%s", folder->path, slash, name);
    s.fd =
        openat(folder->dir, name,
               O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (listed ? O_NOFOLLOW : 0)); /* do not wait for a pipe */
    if (s.fd < 0 || fstat(s.fd, &s.st) != 0) refusal_tell(r, &s, errno);
    else if (is_trusted(r, &s) && is_ours_alone(r, &s)) opened_recover(r, &s);
    if (s.fd >= 0) close(s.fd);
}
