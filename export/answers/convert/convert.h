// SPDX-License-Identifier: Apache-2.0
/* convert.h - writes a trace as another file: a part of it, or another format */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stddef.h>
#include <stdint.h>

#include "export/read/parse/kineto_parse.h"
#include "export/read/tree/spans.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "export/read/kineto/kineto.h"

/* ---- enclosing.c: the slice of its thread in which an event lies; events come by start, the longer first ---- */

struct kp_open_slice {
    int64_t start_ns, end_ns, id;
};
struct kp_enclosing_thread {
    struct kp_open_slice *open;
    size_t count, capacity;
};
struct kp_enclosing {
    struct kp_enclosing_thread *threads;
    size_t count, capacity;
};

/* The innermost slice of the thread around start to end, or 0. One that ends where another starts is not around it. */
int64_t kp_enclosing_slice(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns);
/* Opens a slice, after it was asked what is around it. `id` is not 0. */
void kp_enclosing_open(struct kp_enclosing *n, size_t thread, int64_t start_ns, int64_t end_ns, int64_t id);
void kp_enclosing_free(struct kp_enclosing *n);

/* ---- rawevents.c ---- */

enum kp_raw_key {
    KP_RAW_PH,
    KP_RAW_CAT,
    KP_RAW_NAME,
    KP_RAW_PID,
    KP_RAW_TID,
    KP_RAW_TS,
    KP_RAW_DUR,
    KP_RAW_ID,
    KP_RAW_ARGS,
    KP_RAW_KEYS
};
struct kp_raw_event {
    struct kp_jsonvalue whole;           /* from { to } */
    struct kp_jsonvalue of[KP_RAW_KEYS]; /* values as written, strings with their quotes */
    char phase;
    int64_t start_ns, end_ns; /* as the file counts time; end_ns is start_ns but for phase X */
};
/* A result other than 0 ends the reading and becomes its result. `rest` takes what stands before and after the events,
 * the brackets of their list among it; NULL: nobody wants it. */
typedef int (*kp_raw_fn)(void *context, const struct kp_raw_event *event);
struct kp_raw_calls {
    kp_raw_fn event;
    int (*rest)(void *context, const char *text, size_t bytes, bool is_before);
};
/* Returns 0 or -errno (-EINVAL: an event of more than 64 MB), with a line in `why`. */
int kp_raw_read(const struct kp_texts *texts, const struct kp_raw_calls *calls, void *context, char *why,
                size_t why_bytes);

/* Reads the text of one event. */
void kp_raw_parse(struct kp_raw_event *out, const char *text, size_t bytes);

/* ---- formats ---- */

/* A number of the head that is another in the part: of its key what stands behind ':'. */
struct kp_cut_number {
    const char *key;
    int64_t value;
};
/* The cut: events that have a part in `spans`, as the file counts time. Settled. */
struct kp_cut {
    const struct kp_spans *spans;
    long first_step, last_step; /* other steps are left out; -1: none is */
    const char *more;           /* JSON of events that the new file has, too, with commas between; NULL: none */
    bool is_torn;               /* the file ends early: what is there is cut, and the new file is whole */
    const struct kp_cut_number *numbers;
    size_t number_count;
};
/* Takes pieces of the new file; 0 or -errno. */
typedef int (*kp_convert_fn)(void *context, const char *text, size_t bytes);

/*
 * tracecut.c: writes the events of a cut, with everything in the file that is no event. An event that begins before or
 * ends after is written as its pieces inside, so times add up as `kprof report` adds up a part. Flows are kept whose
 * ends are all inside. It reads the text twice. `kept` gets the number of timed events. Returns 0 or -errno, with a
 * line in `why`.
 */
int kp_tracecut(const struct kp_texts *texts, const struct kp_cut *cut, kp_convert_fn put, void *context, size_t *kept,
                char *why, size_t why_bytes);

/*
 * pftrace.c: Perfetto's own format. Names of processes and threads (phase M) come first, then the other events by
 * start, the longer first. Phases other than X, i, s, t and f are left out. NULL: no memory. The others return 0 or
 * -errno.
 */
struct kp_pftrace;
struct kp_pftrace *kp_pftrace_open(kp_convert_fn put, void *context);
void kp_pftrace_name(struct kp_pftrace *w, const struct kp_raw_event *e);
int kp_pftrace_event(struct kp_pftrace *w, const struct kp_raw_event *e);
int kp_pftrace_close(struct kp_pftrace *w); /* writes what is still open */

/*
 * speedscope.c: a profile a thread. Its slices (phase X) come by start, the longer first, between _thread and
 * _thread_end. `pid` and `tid` are JSON without quotes.
 */
struct kp_speedscope;
struct kp_speedscope *kp_speedscope_open(kp_convert_fn put, void *context);
void kp_speedscope_thread(struct kp_speedscope *w, const char *pid, const char *tid, int64_t start_ns, int64_t end_ns);
int kp_speedscope_event(struct kp_speedscope *w, const struct kp_raw_event *e);
int kp_speedscope_thread_end(struct kp_speedscope *w);
int kp_speedscope_close(struct kp_speedscope *w);

/*
 * sqlitefile.c: a database of SQLite, in the file of that path, which is empty or missing. Names (phase M) and the
 * text around the events come in any order; the events by start, the longer first. NULL: `why` has a line. The others
 * return 0 or -errno; _close always frees, and writes a line to `why` where it knows one.
 */
struct kp_sqlite;
struct kp_sqlite *kp_sqlite_open(const char *path, char *why, size_t why_bytes);
int kp_sqlite_name(struct kp_sqlite *w, const struct kp_raw_event *e);
int kp_sqlite_head(struct kp_sqlite *w, const char *text, size_t bytes);
int kp_sqlite_event(struct kp_sqlite *w, const struct kp_raw_event *e);
int kp_sqlite_close(struct kp_sqlite *w, char *why, size_t why_bytes);

/* formats.c: `kprof export --format`: traces and spools in formats of other tools */
bool kp_formats_knows(const char *format);
/* Writes each trace behind the paths to `out` ("-": standard output), or beside it where out is NULL. An exit code. */
int kp_formats_write(const char *format, const char *out, bool is_json, char **paths, int count);
