// SPDX-License-Identifier: Apache-2.0
/*
 * run_folder.c - lists the traces and spools of a folder by their names
 *
 * A file is WORKER.NANOSECONDS.pt.trace.json[.gz], or WORKER.NANOSECONDS.kprof of a run without a trace yet. A worker
 * is a process: HOST_PID, or HOST_rRANK_PID in a job of several ranks. A spool's name has no rank: its head has the
 * launcher's variables. If no file has such a name, others count that end in .json[.gz] and begin as a trace does.
 */
#include "export/read/folder/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_rank.h"
#include "collector/format/kp_format.h"
#include "export/read/folder/trace_source.h"
#include "export/read/folder/tracehead.h"

#define MILLISECONDS_MOST INT64_C(9000000000000) /* in the year 2255; as nanoseconds it is 1970 */

static bool end_cut(char *name, const char *end)
{
    if (!kp_input_has_end(name, end)) return false;
    name[strlen(name) - strlen(end)] = 0;
    return true;
}

/* HOST_PID_PHASE: a process has a trace for each phase. Takes the phase, which follows the last number, out of the
 * name. */
static void phase_cut(char *worker)
{
    char *end = NULL;
    for (char *at = worker; *at; at += *at == '_') {
        const size_t part = strcspn(at, "_");
        if (part && strspn(at, "0123456789") == part) end = at + part;
        at += part;
    }
    if (end) *end = 0;
}

/* HOST_rRANK_PID: the rank, or -1. Takes it out of the name, since a spool's name has none. */
static long rank_cut(char *worker)
{
    char *const pid = strrchr(worker, '_'), *at = pid, *end;
    while (at && at > worker && at[-1] != '_') at--;
    if (!at || at == worker || *at != 'r') return -1;
    const long rank = strtol(at + 1, &end, 10);
    if (end != pid || end == at + 1) return -1;
    memmove(at, pid + 1, strlen(pid + 1) + 1);
    return rank;
}

/* False: no spool, and no name with the end of a trace's. One without a time has the time of its last change. */
static bool name_read(const char *name, const char *trace_end, const struct stat *st, struct kp_found *out)
{
    const int64_t changed_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
    snprintf(out->worker, sizeof out->worker, "%s", name);
    out->is_spool = end_cut(out->worker, ".kprof");
    (void)end_cut(out->worker, ".gz");
    if (!out->is_spool && !end_cut(out->worker, trace_end)) return false;
    out->since_ns = out->until_ns = changed_ns;
    char *const dot = strrchr(out->worker, '.'), *end = dot;
    int64_t named_ns = dot ? strtoll(dot + 1, &end, 10) : 0;
    if (named_ns > 0 && named_ns < MILLISECONDS_MOST) named_ns *= 1000000; /* as older torch writes it */
    if (dot && end > dot + 1 && !*end) {
        *dot = 0;
        out->since_ns = named_ns;
        out->until_ns = out->is_spool ? changed_ns : named_ns;
    }
    phase_cut(out->worker);
    out->rank = rank_cut(out->worker);
    return true;
}

/* The value behind `key` in the "key=value" lines of a spool's head, valid until the next call. */
static const char *head_value(const char *line, const char *key)
{
    static char value[64];
    const size_t bytes = strlen(key);
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, bytes) != 0) continue;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line + bytes, "\n"), line + bytes);
        return value;
    }
    return NULL;
}

static const char *head_variable(const void *text, const char *variable)
{
    char key[64];
    snprintf(key, sizeof key, "env.%s=", variable);
    return head_value(text, key);
}

/* A spool's head has what a trace has in its name and its own head. */
static void spool_head_note(struct kp_found *f)
{
    static char text[KP_FILE_TEXT_MAX + 1];
    struct kp_file_head head;
    const int fd = open(f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_spool = fd >= 0 && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                          memcmp(head.magic, KP_FORMAT_MAGIC, sizeof head.magic) == 0;
    const size_t said = is_spool ? head.text_bytes : 0, most = sizeof text - 1;
    const ssize_t got = said ? pread(fd, text, said < most ? said : most, head.head_bytes) : 0;
    if (fd >= 0) close(fd);
    f->is_noted = true;
    f->begin_ns = f->since_ns;
    if (!is_spool) return;
    text[got > 0 ? got : 0] = 0;
    const struct kp_rank place = kp_rank_find(head_variable, text);
    f->parent_pid = head.ppid;
    if (place.size > 1) f->rank = place.rank;
    const char *const job = head_value(text, "job=");
    snprintf(f->job, sizeof f->job, "%.*s", (int)sizeof f->job - 1, job ? job : "");
}

static void file_consider(struct kp_run_folder *folder, const char *name, bool of_others)
{
    struct kp_found found = {.path = kp_kineto_print("%s/%s", folder->path, name)};
    struct stat st;
    /* The user did not name the file: only a plain one is opened. */
    if (stat(found.path, &st) != 0 || !S_ISREG(st.st_mode) ||
        !name_read(name, of_others ? ".json" : ".pt.trace.json", &st, &found) ||
        (of_others && !kp_tracehead_is_trace(found.path))) {
        free(found.path);
        return;
    }
    if (found.is_spool) spool_head_note(&found);
    *KP_KINETO_NEXT(folder->of, folder->count, folder->capacity) = found;
}

bool kp_found_is_same_worker(const struct kp_found *a, const struct kp_found *b)
{
    return strcmp(a->worker, b->worker) == 0;
}

bool kp_found_is_same_job(const struct kp_found *a, const struct kp_found *b)
{
    return !*a->job || !*b->job || strcmp(a->job, b->job) == 0;
}

static bool has_trace(const struct kp_run_folder *folder, const struct kp_found *f)
{
    for (size_t i = 0; i < folder->count; i++)
        if (!folder->of[i].is_spool && kp_found_is_same_worker(&folder->of[i], f)) return true;
    return false;
}

/* Ours have their ranks in their names: of those one head of each process is enough. */
static void ranks_note(struct kp_run_folder *folder)
{
    for (size_t i = 0; i < folder->count && folder->count > 1; i++) {
        struct kp_found *const f = &folder->of[i];
        const bool is_known = i && f[-1].is_ours && kp_found_is_same_worker(f, f - 1);
        f->is_ours |= is_known;
        if (f->rank < 0 && !is_known) kp_found_note(f);
    }
}

static int found_compare(const void *a, const void *b)
{
    const struct kp_found *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->since_ns != y->since_ns ? (x->since_ns < y->since_ns ? -1 : 1) : strcmp(x->path, y->path);
}

static void names_consider(struct kp_run_folder *folder, DIR *names, bool of_others)
{
    const struct dirent *entry;
    rewinddir(names);
    while ((entry = readdir(names)) != NULL)
        if (!of_others || kp_tracehead_may_be(entry->d_name)) file_consider(folder, entry->d_name, of_others);
}

int kp_run_folder_read(struct kp_run_folder *folder)
{
    DIR *const names = opendir(folder->path);
    if (!names) return -errno;
    names_consider(folder, names, false);
    if (!folder->count) names_consider(folder, names, true);
    closedir(names);
    if (folder->count) qsort(folder->of, folder->count, sizeof *folder->of, found_compare);
    ranks_note(folder);
    if (folder->count) qsort(folder->of, folder->count, sizeof *folder->of, found_compare);
    return 0;
}

void kp_run_folder_thin(struct kp_run_folder *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->count; i++) {
        if (folder->of[i].is_spool && has_trace(folder, &folder->of[i])) free(folder->of[i].path);
        else folder->of[kept++] = folder->of[i];
    }
    folder->count = kept;
}

void kp_run_folder_free(struct kp_run_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) free(folder->of[i].path);
    free(folder->of);
    *folder = (struct kp_run_folder){.path = folder->path};
}

const struct kp_found *kp_run_folder_newest(const struct kp_run_folder *folder, bool any_rank, long rank)
{
    const struct kp_found *newest = NULL;
    for (size_t i = 0; i < folder->count; i++)
        if ((any_rank || folder->of[i].rank == rank) && (!newest || folder->of[i].since_ns > newest->since_ns))
            newest = &folder->of[i];
    return newest;
}
