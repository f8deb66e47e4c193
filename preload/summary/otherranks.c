// SPDX-License-Identifier: Apache-2.0
/*
 * otherranks.c - how long the ranks of a job are in collectives, by their files of KPROF_SUMMARY
 *
 * Called by: stepnote.c, by the thread kprof-summary, once in 15 s
 * Owns:      room for the last lines of one file
 * Locks:     none; a line that is being written may be torn, and is of one step
 * Memory:    6 KB, static
 * On fail:   a rank whose file cannot be read is not there
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/summary/steplines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { LINES = 64, LEAST = 32, PATH_BYTES = 4400 };
#define ALIVE_NS UINT64_C(60000000000)

static struct kp_stepline lines[LINES];

static bool is_head(const struct kp_stephead *head)
{
    return memcmp(head->magic, KP_STEPLINE_MAGIC, sizeof head->magic) == 0 && head->head_bytes == sizeof *head &&
           head->line_bytes == sizeof lines[0];
}

static int64_t tail_read(int fd, struct kp_stephead *head)
{
    struct stat st;
    if (kp_io_pread(fd, head, sizeof *head, 0) != (ssize_t)sizeof *head || !is_head(head)) return -EINVAL;
    if (kp_io_fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof *head) return -EINVAL;
    const int64_t all = (st.st_size - (off_t)sizeof *head) / (off_t)sizeof lines[0], count = all < LINES ? all : LINES;
    const off_t at = (off_t)sizeof *head + (all - count) * (off_t)sizeof lines[0];
    const ssize_t bytes = kp_io_pread(fd, lines, (size_t)count * sizeof lines[0], at);
    return bytes < 0 ? bytes : bytes / (ssize_t)sizeof lines[0];
}

int kp_otherranks_share(const char *path, struct kp_stephead *head, uint64_t *milli)
{
    uint64_t open_us = 0, dur_us = 0, steps = 0;
    const int fd = kp_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) return fd;
    const int64_t count = tail_read(fd, head);
    kp_io_close(fd);
    for (int64_t i = 0; i < count; i++) {
        if (lines[i].recorded || !lines[i].dur_ns) continue;
        open_us += lines[i].collectives_us;
        dur_us += lines[i].dur_ns / 1000;
        steps += lines[i].count;
    }
    if (count < 0) return (int)count;
    if (steps < LEAST || !dur_us) return -ENODATA;
    *milli = open_us * 1000 / dur_us;
    return 0;
}

struct otherranks_visit {
    const char *folder;
    const struct kp_stephead *own;
    uint64_t now_ns, *out;
    size_t count;
};

static bool is_of_job(const struct kp_stephead *head, const struct otherranks_visit *v)
{
    const bool is_alive = head->state == KP_STEPLINE_RUNS && head->beat_ns + ALIVE_NS > v->now_ns;
    return is_alive && head->rank != v->own->rank && head->ranks == v->own->ranks &&
           strncmp(head->job, v->own->job, sizeof head->job) == 0;
}

static void name_visit(void *context, const char *name)
{
    static const char ending[] = ".steps";
    struct otherranks_visit *const v = context;
    const size_t bytes = strlen(name);
    char path[PATH_BYTES];
    struct kp_stephead head;
    if (v->count == KP_OTHERRANKS_MOST || bytes < sizeof ending) return;
    if (strcmp(name + bytes - (sizeof ending - 1), ending) != 0) return;
    kp_fmt(path, sizeof path, "%s/%s", v->folder, name);
    if (kp_otherranks_share(path, &head, &v->out[v->count]) == 0 && is_of_job(&head, v)) v->count++;
}

size_t kp_otherranks_shares(const char *folder, const struct kp_stephead *own, uint64_t now_ns,
                            uint64_t out[KP_OTHERRANKS_MOST])
{
    struct otherranks_visit v = {.folder = folder, .own = own, .now_ns = now_ns, .out = out};
    (void)kp_io_each_name(folder, name_visit, &v);
    return v.count;
}
