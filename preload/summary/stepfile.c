// SPDX-License-Identifier: Apache-2.0
/*
 * stepfile.c - writes the file of a line a step
 *
 * Called by: run/stepnote.c, by the thread kprof-summary
 * Owns:      nothing: the caller has the struct
 * Locks:     none
 * On fail:   lines are dropped and counted; the next call tries again
 *
 * The file is opened for each write, as the host may close any descriptor, and written at a known place, so a write
 * that failed half way is written over.
 */
#include "preload/summary/steplines.h"

#include <fcntl.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

#define FOLD_NS UINT64_C(60000000000) /* a line that stands for several steps is written within a minute */
enum { OUT = sizeof((struct kp_stepfile *)0)->out / sizeof(struct kp_stepline) };

static int made(struct kp_stepfile *file)
{
    const int fd = kp_io_open(file->path, O_WRONLY | O_CREAT | (file->at ? 0 : O_EXCL), KP_IO_FILE_MODE);
    if (fd >= 0 && !file->at) file->at = sizeof file->head;
    return fd;
}

static int lines_write(struct kp_stepfile *file)
{
    const size_t count = file->out_count;
    if (!count && !file->at) return 0;
    const int fd = made(file);
    ssize_t rc = fd;
    if (fd >= 0) rc = kp_io_pwrite_all(fd, file->out, count * sizeof *file->out, (off_t)file->at);
    file->out_count = 0;
    if (rc < 0)
        for (size_t i = 0; i < count; i++) file->head.lost += file->out[i].count;
    else file->at += count * sizeof *file->out;
    if (fd >= 0) {
        const ssize_t head_rc = kp_io_pwrite_all(fd, &file->head, sizeof file->head, 0);
        if (rc >= 0 && head_rc < 0) rc = head_rc;
        kp_io_close(fd);
    }
    return rc < 0 ? (int)rc : 0;
}

static void put(struct kp_stepfile *file, const struct kp_stepline *line)
{
    if (file->out_count == OUT) (void)lines_write(file); /* lines that it drops are counted */
    file->out[file->out_count++] = *line;
}

/* ---- several steps in a line ---- */

static void fold_end(struct kp_stepfile *file)
{
    struct kp_stepline *const open = &file->open;
    const uint32_t count = open->count;
    if (!count) return;
    kp_sort_u64(file->folded, count);
    open->min_ns = file->folded[0];
    open->median_ns = file->folded[count / 2];
    open->p99_ns = file->folded[count - 1 - count / 100];
    open->max_ns = file->folded[count - 1];
    put(file, open);
    open->count = 0;
}

static void fold_add(struct kp_stepfile *file, const struct kp_stepline *line)
{
    struct kp_stepline *const open = &file->open;
    if (!open->count) {
        *open = (struct kp_stepline){.count = 0};
        file->open_ns = line->end_ns;
    }
    file->folded[open->count++] = line->dur_ns;
    open->step = line->step;
    open->end_ns = line->end_ns;
    open->dur_ns += line->dur_ns;
    open->recorded += line->recorded;
    open->had_us += line->had_us;
    open->waited_us += line->waited_us;
    open->looked_us += line->looked_us;
    open->collectives_us += line->collectives_us;
    open->faults_minor += line->faults_minor;
    open->faults_major += line->faults_major;
    open->resident_kb = line->resident_kb;
    if (open->count == KP_STEPLINE_FOLD) fold_end(file);
}

void kp_stepfile_add(struct kp_stepfile *file, const struct kp_stepline *line)
{
    if (file->singles == KP_STEPLINE_SINGLES) {
        fold_add(file, line);
        return;
    }
    file->singles++;
    put(file, line);
}

int kp_stepfile_flush(struct kp_stepfile *file, uint64_t now_ns)
{
    if (file->open.count && file->out_count < OUT && now_ns - file->open_ns >= FOLD_NS) fold_end(file);
    file->head.beat_ns = now_ns;
    return lines_write(file);
}

int kp_stepfile_end(struct kp_stepfile *file, uint64_t now_ns)
{
    fold_end(file);
    file->head.state = KP_STEPLINE_ENDED;
    return kp_stepfile_flush(file, now_ns);
}
