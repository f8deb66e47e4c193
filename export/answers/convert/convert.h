// SPDX-License-Identifier: Apache-2.0
/* convert.h - writes a trace as another file: a part of it, or another format */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "export/answers/convert/rawevents.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/tree/spans.h"

/* What is cut out: events that have a part in `spans`, as the file counts time. Settled. */
struct kp_cut {
    const struct kp_spans *spans;
    long first_step, last_step; /* other steps are left out; -1: none is */
    const char *more;           /* JSON of events that the new file has, too, with commas between; NULL: none */
    bool is_torn;               /* the file ends early: what is there is cut, and the new file is whole */
};
/* Takes pieces of the new file; 0 or -errno. */
typedef int (*kp_convert_fn)(void *context, const char *text, size_t bytes);

/*
 * tracecut.c: writes the events of a cut, with everything in the file that is no event. Of an event that begins before
 * or ends after, the pieces inside are written, so times add up as `kprof report` adds up a part. Flows are kept whose
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
