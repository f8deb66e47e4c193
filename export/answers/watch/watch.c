// SPDX-License-Identifier: Apache-2.0
/* watch.c - reads the ends of .steps files: which ranks there are, what their last steps took, whether they live */
#include "export/answers/watch/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/kp_order.h"
#include "export/read/files/procstate.h"
#include "export/read/store/qsort.h"
#include "export/read/store/stringtable.h"

enum { TAIL = 80, SILENT_MEDIANS = 10 }; /* lines that are read */
#define SECOND_NS 1e9
#define SILENT_NS (5 * SECOND_NS)
#define NO_SIGN_NS (60 * SECOND_NS)
#define ONE_RUN_NS UINT64_C(60000000000) /* ranks of one run begin within it */

/* ---- one file ---- */

static bool head_read(int fd, struct kp_stephead *head)
{
    if (pread(fd, head, sizeof *head, 0) != (ssize_t)sizeof *head) return false;
    head->host[sizeof head->host - 1] = head->script[sizeof head->script - 1] = head->job[sizeof head->job - 1] = '\0';
    return memcmp(head->magic, KP_STEPLINE_MAGIC, sizeof head->magic) == 0 && head->head_bytes == sizeof *head &&
           head->line_bytes == sizeof(struct kp_stepline);
}

/* No clock has such times: the file is damaged, and its lines are not read. */
static bool is_absurd(const struct kp_stepline *l)
{
    return l->end_ns > INT64_MAX || l->dur_ns > INT64_MAX || l->median_ns > INT64_MAX;
}

/* Reads the last whole lines. Returns how many. */
static size_t tail_read(int fd, struct kp_stepline lines[TAIL])
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size <= (off_t)sizeof(struct kp_stephead)) return 0;
    const size_t all = ((size_t)st.st_size - sizeof(struct kp_stephead)) / sizeof *lines;
    const size_t count = all < TAIL ? all : TAIL;
    const off_t at = (off_t)(sizeof(struct kp_stephead) + (all - count) * sizeof *lines);
    if (pread(fd, lines, count * sizeof *lines, at) != (ssize_t)(count * sizeof *lines)) return 0;
    for (size_t i = 0; i < count; i++)
        if (is_absurd(&lines[i])) return 0;
    return count;
}

static void tail_add(struct kp_watch_rank *r, const struct kp_stepline *lines, size_t count)
{
    double ns[TAIL], had_us = 0, waited_us = 0, looked_us = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].median_ns) ns[known++] = (double)lines[i].median_ns;
        had_us += lines[i].had_us, waited_us += lines[i].waited_us, looked_us += lines[i].looked_us;
    }
    r->had = looked_us > 0 ? had_us / looked_us : NAN;
    r->waited = looked_us > 0 ? waited_us / looked_us : NAN;
    if (!count) return;
    r->last = lines[count - 1];
    r->last_ns = (double)r->last.median_ns;
    r->median_ns = kp_quantile(ns, known, 0.5);
    r->p99_ns = kp_quantile(ns, known, 0.99);
}

/* The number may have gone to another process: the time of its start tells. */
static bool is_gone(const struct kp_stephead *head, double sign_ns)
{
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    if (strcmp(host, head->host) != 0) return sign_ns > NO_SIGN_NS;
    const uint64_t start = kp_procstate_start(head->pid);
    return start == 0 || (head->process_start && start != head->process_start);
}

static void state_find(struct kp_watch_rank *r, uint64_t now_ns)
{
    const uint64_t end_ns = r->last.count ? r->last.end_ns : r->head.begin_ns;
    const double sign_ns = now_ns > r->head.beat_ns ? (double)(now_ns - r->head.beat_ns) : 0;
    const double silent_ns = fmax(SILENT_NS, SILENT_MEDIANS * r->median_ns);
    r->quiet_ns = now_ns > end_ns ? (double)(now_ns - end_ns) : 0;
    if (r->head.state == KP_STEPLINE_ENDED) r->state = KP_WATCH_ENDED;
    else if (is_gone(&r->head, sign_ns)) r->state = KP_WATCH_GONE;
    else r->state = r->quiet_ns > silent_ns ? KP_WATCH_SILENT : KP_WATCH_RUNS;
}

static bool file_read(int dir, const char *name, uint64_t now_ns, struct kp_watch_rank *out)
{
    struct kp_stepline lines[TAIL];
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *out = (struct kp_watch_rank){.had = NAN, .waited = NAN};
    if (fd < 0) return false;
    const bool is_read = head_read(fd, &out->head);
    if (is_read) tail_add(out, lines, tail_read(fd, lines));
    if (is_read) state_find(out, now_ns);
    close(fd);
    return is_read;
}

/* ---- a folder ---- */

static bool is_live(const struct kp_watch_rank *r) { return r->state == KP_WATCH_RUNS || r->state == KP_WATCH_SILENT; }

bool kp_watch_goes_on(const struct kp_watch *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (is_live(&w->ranks[i])) return true;
    return false;
}

/* When the first rank of the run began that goes on, or, where none does, of the last one. */
static uint64_t run_begin(const struct kp_watch *w)
{
    const bool goes_on = kp_watch_goes_on(w);
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < w->count; i++) {
        const uint64_t begin = w->ranks[i].head.begin_ns;
        if (goes_on && is_live(&w->ranks[i]) && begin < first) first = begin;
        if (begin > last) last = begin;
    }
    const uint64_t from = goes_on ? first : last;
    return from > ONE_RUN_NS ? from - ONE_RUN_NS : 0;
}

KP_ORDER2(by_rank, struct kp_watch_rank, head.rank, head.begin_ns)

static void others_remove(struct kp_watch *w)
{
    const uint64_t from = run_begin(w);
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++)
        if (is_live(&w->ranks[i]) || w->ranks[i].head.begin_ns >= from) w->ranks[kept++] = w->ranks[i];
    w->count = kept;
    if (w->count) qsort(w->ranks, w->count, sizeof *w->ranks, by_rank);
}

void kp_watch_oom(struct kp_watch *w, int64_t pid, int64_t time_ms, const char *text)
{
    for (size_t i = 0; i < w->count; i++) {
        struct kp_watch_rank *const r = &w->ranks[i];
        if (r->head.pid == pid && time_ms >= (int64_t)(r->head.begin_ns / 1000000))
            snprintf(r->oom, sizeof r->oom, "%s", text);
    }
}

static int is_steps_name(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".steps") == 0;
}

int kp_watch_read(struct kp_watch *w, const char *path, uint64_t now_ns)
{
    struct dirent **names;
    *w = (struct kp_watch){NULL, 0};
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int found = dir < 0 ? -1 : scandirat(dir, ".", &names, is_steps_name, alphasort);
    const int error = found < 0 ? -errno : 0;
    if (found > 0) w->ranks = kp_kineto_zeros((size_t)found, sizeof *w->ranks);
    for (int i = 0; i < found; i++) {
        if (file_read(dir, names[i]->d_name, now_ns, &w->ranks[w->count])) w->count++;
        free(names[i]);
    }
    if (found >= 0) free(names);
    if (dir >= 0) close(dir);
    others_remove(w);
    return error;
}

void kp_watch_free(struct kp_watch *w) { free(w->ranks); }
