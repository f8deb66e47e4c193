// SPDX-License-Identifier: Apache-2.0
/*
 * sorted.c - sorts any number of lines by time, in bounded memory
 *
 * Lines are collected until a piece is full. Then the piece is sorted and appended to a file, as a run. At the end all
 * runs are read side by side, each through its own buffer. Lines that fit into a piece need no file.
 */
#include "export/read/files/sorted.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/read/files/outfile.h"
#include "export/read/store/stringtable.h"

enum { PIECE = 8 << 20 };
/* The bytes that all runs together read ahead, and the least and the most of one. */
enum { AHEAD = 8 << 20, AHEAD_LEAST = 4 << 10, AHEAD_MOST = 64 << 10 };

struct sorted_row {
    int64_t start_ns, dur_ns;
    size_t at, bytes; /* in the text of the piece; in a file the text follows */
};
struct run {
    off_t at, end; /* what was not read yet */
    char *buffer;
    size_t from, to, room; /* of the buffer: read and not yet given */
    struct sorted_row row; /* it stands on; its text follows in the buffer */
    size_t number;         /* of equal rows that of the earlier run comes first */
};
struct kp_sorted {
    size_t piece;
    char *text;
    size_t used, capacity;
    struct sorted_row *rows;
    size_t rows_n, rows_capacity;
    struct run *runs;
    size_t runs_n, runs_capacity;
    FILE *file;
    off_t written;
    uint64_t most; /* the most bytes of the file, or 0 */
    int error;
};

struct kp_sorted *kp_sorted_open(size_t piece, uint64_t most)
{
    struct kp_sorted *s = kp_kineto_room(1, sizeof *s);
    *s = (struct kp_sorted){.piece = piece ? piece : PIECE, .most = most};
    return s;
}

void kp_sorted_close(struct kp_sorted *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->runs_n; i++) free(s->runs[i].buffer);
    if (s->file) fclose(s->file);
    free(s->runs);
    free(s->rows);
    free(s->text);
    free(s);
}

/* ---- a piece becomes a run ---- */

static int order(const struct sorted_row *x, const struct sorted_row *y)
{
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return x->dur_ns != y->dur_ns ? (x->dur_ns > y->dur_ns ? -1 : 1) : 0;
}

static int order_in_piece(const void *a, const void *b)
{
    const struct sorted_row *x = a, *y = b;
    const int by_time = order(x, y);
    return by_time ? by_time : (x->at > y->at) - (x->at < y->at);
}

static FILE *file_open(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/kprof-XXXXXX", kp_outfile_temporary());
    const int fd = mkstemp(path);
    if (fd < 0) return NULL;
    unlink(path);
    return fdopen(fd, "w+");
}

static void spill(struct kp_sorted *s)
{
    if (!s->file && !(s->file = file_open())) s->error = -errno;
    if (s->rows_n) qsort(s->rows, s->rows_n, sizeof *s->rows, order_in_piece);
    struct run *run = KP_KINETO_NEXT(s->runs, s->runs_n, s->runs_capacity);
    if (s->most && (uint64_t)s->written + s->used + s->rows_n * sizeof *s->rows > s->most) s->error = -EDQUOT;
    *run = (struct run){.at = s->written, .end = s->written, .number = s->runs_n};
    for (size_t i = 0; i < s->rows_n && !s->error; i++) {
        const struct sorted_row *row = &s->rows[i];
        if (fwrite(row, sizeof *row, 1, s->file) != 1 ||
            fwrite(s->text + row->at, 1, row->bytes, s->file) != row->bytes)
            s->error = errno ? -errno : -EIO;
        run->end += (off_t)(sizeof *row + row->bytes);
    }
    s->written = run->end;
    s->rows_n = s->used = 0;
}

int kp_sorted_add(struct kp_sorted *s, int64_t start_ns, int64_t dur_ns, const char *line, size_t bytes)
{
    if (s->rows_n && s->used + bytes > s->piece && !s->error) spill(s);
    if (s->error) return s->error;
    s->text = kp_kineto_grow(s->text, &s->capacity, s->used + bytes, 1);
    s->rows = kp_kineto_grow(s->rows, &s->rows_capacity, s->rows_n + 1, sizeof *s->rows);
    memcpy(s->text + s->used, line, bytes);
    s->rows[s->rows_n++] = (struct sorted_row){start_ns, dur_ns, s->used, bytes};
    s->used += bytes;
    return 0;
}

/* ---- runs side by side ---- */

static size_t ahead_of(const struct kp_sorted *s)
{
    const size_t each = AHEAD / s->runs_n;
    return each < AHEAD_LEAST ? AHEAD_LEAST : each > AHEAD_MOST ? AHEAD_MOST : each;
}

/* Reads until the buffer has so many bytes from `from` on. */
static bool run_has(struct kp_sorted *s, struct run *run, size_t bytes)
{
    if (run->to - run->from >= bytes) return true;
    if (run->buffer) memmove(run->buffer, run->buffer + run->from, run->to - run->from);
    run->to -= run->from;
    run->from = 0;
    run->buffer = kp_kineto_grow(run->buffer, &run->room, bytes > ahead_of(s) ? bytes : ahead_of(s), 1);
    while (run->to < bytes && run->at < run->end) {
        const size_t left = (size_t)(run->end - run->at), room = run->room - run->to;
        const ssize_t got = pread(fileno(s->file), run->buffer + run->to, left < room ? left : room, run->at);
        if (got <= 0) {
            s->error = got < 0 ? -errno : -EIO;
            return false;
        }
        run->at += got;
        run->to += (size_t)got;
    }
    return run->to >= bytes;
}

/* Moves a run to its next row, with its text. False: there is none. */
static bool run_next(struct kp_sorted *s, struct run *run)
{
    if (!run_has(s, run, sizeof run->row)) return false;
    memcpy(&run->row, run->buffer + run->from, sizeof run->row);
    run->from += sizeof run->row;
    return run_has(s, run, run->row.bytes);
}

static bool is_before(const struct run *x, const struct run *y)
{
    const int by_time = order(&x->row, &y->row);
    return by_time ? by_time < 0 : x->number < y->number;
}

static void runs_swap(struct run *x, struct run *y)
{
    const struct run other = *x;
    *x = *y;
    *y = other;
}

/* The runs are a heap, but for the one at `at`, which sinks to its place. */
static void run_sink(struct run *runs, size_t count, size_t at)
{
    for (size_t below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count && is_before(&runs[below + 1], &runs[below])) below++;
        if (!is_before(&runs[below], &runs[at])) return;
        runs_swap(&runs[below], &runs[at]);
    }
}

static void runs_merge(struct kp_sorted *s, kp_sorted_fn fn, void *context)
{
    size_t open = 0;
    for (size_t i = 0; i < s->runs_n; i++)
        if (run_next(s, &s->runs[i])) runs_swap(&s->runs[open++], &s->runs[i]);
    for (size_t i = open / 2; i-- > 0;) run_sink(s->runs, open, i);
    while (open && !s->error) {
        struct run *run = &s->runs[0];
        fn(context, run->row.start_ns, run->buffer + run->from, run->row.bytes);
        run->from += run->row.bytes;
        if (!run_next(s, run)) runs_swap(run, &s->runs[--open]);
        run_sink(s->runs, open, 0);
    }
}

int kp_sorted_each(struct kp_sorted *s, kp_sorted_fn fn, void *context)
{
    if (s->runs_n) {
        spill(s);
        if (!s->error && fflush(s->file) != 0) s->error = -errno;
        if (!s->error) runs_merge(s, fn, context);
        return s->error;
    }
    if (s->rows_n) qsort(s->rows, s->rows_n, sizeof *s->rows, order_in_piece);
    for (size_t i = 0; i < s->rows_n; i++) fn(context, s->rows[i].start_ns, s->text + s->rows[i].at, s->rows[i].bytes);
    return 0;
}
