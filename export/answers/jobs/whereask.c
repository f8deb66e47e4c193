// SPDX-License-Identifier: Apache-2.0
/* whereask.c - asks running processes of this machine where their threads stand, and which ranks are gone or stopped */
#include "export/answers/jobs/whereask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_rank.h"
#include "export/answers/jobs/ctlsocket.h"
#include "export/read/kineto/kineto.h"
#include "export/read/files/procstate.h"
#include "export/read/folder/trace_source.h"
#include "schedule/job/job.h"

enum { ANSWER_BYTES = 4 << 20, ENVIRON_BYTES = 256 << 10 };
enum { ONE_HANG_MS = 1800000 }; /* ranks notice that they stand at different times */

static char *answer; /* ANSWER_BYTES */

const char *kp_where_text(void) { return answer; }

/* A stopped process is not asked: it would answer when it goes on. */
static enum kp_hang_state state_guess(long pid)
{
    const char state = kp_procstate(pid);
    if (state == 'T' || state == 't') return KP_HANG_STOPPED;
    return state && state != 'Z' && state != 'X' ? KP_HANG_SILENT : KP_HANG_GONE;
}

/* ---- the rank of a process that does not answer ---- */

struct variables {
    const char *at; /* texts NAME=VALUE, each with its NUL */
    size_t bytes;
};

static const char *variable_find(const void *from, const char *name)
{
    const struct variables *const all = from;
    const size_t n = strlen(name);
    for (const char *at = all->at; at < all->at + all->bytes; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=') return at + n + 1;
    return NULL;
}

/* It may not have written its file yet, so its launcher's variables tell. */
static void quiet_add(struct kp_hang *hang, enum kp_hang_state state, long pid)
{
    char path[64], *const text = kp_kineto_zeros(ENVIRON_BYTES, 1);
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    const ssize_t n = kp_io_text(path, text, ENVIRON_BYTES);
    const struct variables all = {text, n > 0 ? (size_t)n : 0};
    const struct kp_rank place = kp_rank_find(variable_find, &all);
    kp_hang_add_silent(hang, state, pid, place.is_launched ? (long)place.rank : -1,
                       place.is_launched ? (long)place.size : 0);
    free(text);
}

static bool answer_take(struct kp_hang *hang, int fd)
{
    const char *why;
    if (!answer) answer = kp_kineto_zeros(ANSWER_BYTES, 1);
    return kp_ctlsocket_ask(fd, "where\n", answer, ANSWER_BYTES) && kp_hang_add(hang, answer, strlen(answer), &why);
}

bool kp_where_ask(struct kp_hang *hang, const char *path, const char *who)
{
    const char *const number = strrchr(who, '_');
    const long pid = number ? strtol(number + 1, NULL, 10) : strtol(who, NULL, 10);
    if (kp_hang_find(hang, "", pid)) return true; /* it has two sockets for a moment */
    if (state_guess(pid) == KP_HANG_STOPPED) {
        quiet_add(hang, KP_HANG_STOPPED, pid);
        return true;
    }
    const int fd = kp_ctlsocket_connect(path);
    if (fd < 0) return false;
    const bool is_told = answer_take(hang, fd);
    close(fd);
    if (!is_told) quiet_add(hang, state_guess(pid), pid);
    return true;
}

int kp_where_ask_pid(struct kp_hang *hang, long pid)
{
    char path[4600], who[32];
    snprintf(who, sizeof who, "%ld", pid);
    const bool is_there = kp_ctlsocket_of_pid(pid, ".sock", path, sizeof path) ||
                          kp_ctlsocket_of_pid(pid, KP_CTLSOCKET_EARLY, path, sizeof path);
    if (is_there && kp_where_ask(hang, path, who)) return 0;
    errno = ENOENT;
    return -1;
}

static void visit(void *context, const char *path, const char *who) { (void)kp_where_ask(context, path, who); }

/* ---- ranks by their files ---- */

static ssize_t file_read(int dir, const char *name, char *text, size_t bytes)
{
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, bytes);
    if (fd >= 0) close(fd);
    return n;
}

static bool rank_read(int dir, const char *name, struct kp_job_answer *out)
{
    char text[KP_JOB_BYTES] = "";
    return file_read(dir, name, text, sizeof text) == (ssize_t)sizeof text && kp_job_answer_parse(text, out);
}

/* The rank is told by its file where the process itself did not. */
static void rank_note(struct kp_hang *hang, const struct kp_job_answer *a)
{
    struct kp_hang_process *const known = kp_hang_find(hang, a->host, (long)a->pid);
    const bool is_gone = a->start && kp_procstate_start((long)a->pid) != a->start;
    if (known && known->rank < 0) known->rank = (long)a->rank;
    if (known && known->size < 2) known->size = (long)a->size;
    if (known && is_gone) known->state = KP_HANG_GONE;
    if (known) return;
    kp_hang_add_silent(hang, is_gone ? KP_HANG_GONE : state_guess((long)a->pid), (long)a->pid, (long)a->rank,
                       (long)a->size);
}

static int is_rank_name(const struct dirent *entry)
{
    return entry->d_name[0] == '.' && kp_input_has_end(entry->d_name, ".rank");
}

static void ranks_note(struct kp_hang *hang, const char *folder)
{
    struct dirent **entries;
    char host[65] = "";
    struct kp_job_answer a;
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int count = dir < 0 ? -1 : scandirat(dir, ".", &entries, is_rank_name, alphasort);
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < count; i++) {
        if (rank_read(dir, entries[i]->d_name, &a) && strcmp(a.host, host) == 0) rank_note(hang, &a);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    if (dir >= 0) close(dir);
}

static bool has_rank(const struct kp_hang *hang, long rank)
{
    for (size_t i = 0; i < hang->count; i++)
        if (hang->of[i].rank == rank) return true;
    return false;
}

/* If all processes are of this machine, a rank of which there is no trace has ended. */
static void missing_note(struct kp_hang *hang)
{
    long size = 0;
    for (size_t i = 0; i < hang->count; i++)
        if (hang->of[i].rank >= 0 && hang->of[i].size > size) size = hang->of[i].size;
    for (long rank = 0; size > 1 && size <= 4096 && rank < size; rank++)
        if (!has_rank(hang, rank)) kp_hang_add_silent(hang, KP_HANG_GONE, 0, rank, size);
}

static bool is_early(const struct kp_hang_process *p) { return strcmp(p->event, "early") == 0; }

static bool is_above(long above, long pid)
{
    enum { DEPTH = 16 };
    bool is = false;
    for (int up = 0; up < DEPTH && pid > 1 && !is; up++) is = (pid = kp_procstate_parent(pid)) == above;
    return is;
}

/* A shell or timeout(1), below which a process answers; or a command that a program of Python has started. */
static bool is_command(const struct kp_hang *hang, const struct kp_hang_process *p)
{
    bool is = false;
    if (p->rank >= 0 || *p->python || p->state != KP_HANG_TOLD) return false;
    for (size_t i = 0; i < hang->count && !is; i++) {
        const struct kp_hang_process *const o = &hang->of[i];
        is = is_above(p->pid, o->pid) || (*o->python && is_above(o->pid, p->pid));
    }
    return is;
}

/*
 * Is the process no part of the job? A launcher waits for its ranks. The program that starts a rank (a shell) has the
 * rank's variables and records nothing, as has the rank itself before it imports torch: among such ones the youngest
 * counts.
 */
static bool is_beside(const struct kp_hang *hang, size_t at)
{
    const struct kp_hang_process *const p = &hang->of[at];
    bool has_ranks = false, is_started = false;
    for (size_t i = 0; i < hang->count; i++) {
        const struct kp_hang_process *const o = &hang->of[i];
        has_ranks |= o->rank >= 0;
        is_started |= i != at && o->rank == p->rank && p->rank >= 0 && (!is_early(o) || o->pid > p->pid);
    }
    return (has_ranks && p->rank < 0) || (is_early(p) && is_started) || is_command(hang, p);
}

static void others_drop(struct kp_hang *hang)
{
    for (size_t i = 0; i < hang->count;) {
        if (!is_beside(hang, i)) {
            i++;
            continue;
        }
        const struct kp_hang_process out = hang->of[i];
        hang->of[i] = hang->of[hang->count - 1];
        hang->of[hang->count - 1] = out;
        kp_hang_drop_last(hang);
    }
}

int kp_where_ask_all(struct kp_hang *hang, const char *folder)
{
    const int elsewhere = kp_ctlsocket_each(folder, visit, hang);
    if (elsewhere < 0) return elsewhere;
    ranks_note(hang, folder);
    others_drop(hang);
    if (!elsewhere) missing_note(hang);
    kp_hang_sort(hang);
    return elsewhere;
}

/* ---- files of KPROF_HANG ---- */

static int is_hang_name(const struct dirent *entry)
{
    return strncmp(entry->d_name, "hang-", 5) == 0 && kp_input_has_end(entry->d_name, ".json");
}

static bool file_add(struct kp_hang *hang, int dir, const char *name)
{
    const char *why;
    if (!answer) answer = kp_kineto_zeros(ANSWER_BYTES, 1);
    const ssize_t n = file_read(dir, name, answer, ANSWER_BYTES - 1);
    if (n <= 0 || !kp_hang_add(hang, answer, (size_t)n, &why)) return false;
    return hang->of[hang->count - 1].is_of_file = true;
}

size_t kp_where_files(struct kp_hang *hang, const char *folder)
{
    struct dirent **entries;
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int count = dir < 0 ? -1 : scandirat(dir, ".", &entries, is_hang_name, alphasort);
    const size_t before = hang->count;
    double newest = 0;
    for (int i = count - 1; i >= 0; i--) {
        if (file_add(hang, dir, entries[i]->d_name)) {
            const struct kp_hang_process *const p = &hang->of[hang->count - 1];
            if (p->time_ms > newest) newest = p->time_ms;
            const bool is_known = kp_hang_find(hang, p->host, p->pid) != p; /* the newest of a process comes first */
            const bool is_other = strcmp(p->job, hang->of[0].job) != 0;
            if (is_known || is_other || p->time_ms < newest - ONE_HANG_MS) kp_hang_drop_last(hang);
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    if (dir >= 0) close(dir);
    kp_hang_sort(hang);
    return hang->count - before;
}
