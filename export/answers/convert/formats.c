// SPDX-License-Identifier: Apache-2.0
/* formats.c - puts the events of a trace in order, and gives them to the writer of a format */
#include "export/answers/convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/files/budget.h"
#include "export/show/say.h"
#include "export/read/files/outfile.h"
#include "export/read/files/sorted.h"
#include "export/read/folder/trace_source.h"
#include "export/read/folder/written.h"
#include "export/read/parse/kineto_parse.h"

struct format_run {
    const struct format *format;
    const char *out;
    struct kp_outfile file;
    struct kp_sorted *sorted;
    struct kp_pftrace *pftrace;
    struct kp_sqlite *sqlite;
    struct kp_speedscope *speedscope;
    size_t events;
    bool is_json;
    int error;
};

static int text_put(void *context, const char *text, size_t bytes)
{
    struct format_run *run = context;
    kp_budget_print(bytes);
    return fwrite(text, 1, bytes, run->file.to) == bytes ? 0 : -(errno ? errno : EIO);
}

/* ---- ndjson: the event as it is, without its line breaks ---- */

static int line_put(void *context, const struct kp_raw_event *e)
{
    struct format_run *run = context;
    int rc = 0;
    for (size_t from = 0; from < e->whole.bytes && rc == 0;) {
        size_t to = from;
        while (to < e->whole.bytes && e->whole.at[to] != '\n' && e->whole.at[to] != '\r') to++;
        rc = text_put(run, e->whole.at + from, to - from);
        from = to + 1;
    }
    run->events++;
    return rc ? rc : text_put(run, "\n", 1);
}

static int ndjson_write(struct format_run *run, const struct kp_texts *texts, char *why, size_t why_bytes)
{
    return kp_raw_read(texts, &(struct kp_raw_calls){line_put, NULL}, run, why, why_bytes);
}

/* ---- perfetto: in order of time ---- */

enum { ROW_BYTES = 64 }; /* of an event's numbers in a database, about */

static int event_add(struct format_run *run, const struct kp_raw_event *e)
{
    if (!e->of[KP_RAW_TS].at) return 0;
    return kp_sorted_add(run->sorted, e->start_ns, e->end_ns - e->start_ns, e->whole.at, e->whole.bytes);
}

static int event_sort(void *context, const struct kp_raw_event *e)
{
    struct format_run *run = context;
    return e->phase == 'M' ? kp_pftrace_name(run->pftrace, e), 0 : event_add(run, e);
}

/* Gives a sorted event to the writer that is open. */
static void event_give(void *context, int64_t start_ns, const char *line, size_t bytes)
{
    struct format_run *run = context;
    struct kp_raw_event e;
    (void)start_ns;
    kp_raw_parse(&e, line, bytes);
    if (run->sqlite) kp_budget_print(e.of[KP_RAW_ARGS].bytes + ROW_BYTES);
    run->events++;
    if (run->error) return;
    if (run->sqlite) run->error = kp_sqlite_event(run->sqlite, &e);
    else if (run->speedscope) run->error = kp_speedscope_event(run->speedscope, &e);
    else run->error = kp_pftrace_event(run->pftrace, &e);
}

static int perfetto_write(struct format_run *run, const struct kp_texts *texts, char *why, size_t why_bytes)
{
    run->pftrace = kp_pftrace_open(text_put, run);
    run->sorted = kp_sorted_open(0, kp_budget_now()->disk);
    int rc = kp_raw_read(texts, &(struct kp_raw_calls){event_sort, NULL}, run, why, why_bytes);
    if (rc == 0) rc = kp_sorted_each(run->sorted, event_give, run);
    const int closed = kp_pftrace_close(run->pftrace);
    kp_sorted_close(run->sorted);
    return rc ? rc : run->error ? run->error : closed;
}

/* ---- speedscope: a thread after the other, each in order of time ---- */

enum { THREADS_MOST = 1024, PIECE_BYTES = 1 << 20 };

struct scope_thread {
    struct kp_sorted *sorted;
    char pid[64], tid[64];
    int64_t start_ns, end_ns;
};
struct scope_run {
    struct scope_thread *threads;
    size_t count, capacity;
};

/* An id as a name that JSON needs no escapes for. */
static void plain_id(char out[64], struct kp_jsonvalue value)
{
    kp_jsonvalue_text(out, 64, value);
    for (; *out; out++)
        if ((unsigned char)*out < 0x20 || *out == '"' || *out == '\\') *out = '_';
}

static struct scope_thread *scope_thread_get(struct scope_run *s, const struct kp_raw_event *e)
{
    struct scope_thread new = {.start_ns = e->start_ns, .end_ns = e->end_ns};
    plain_id(new.pid, e->of[KP_RAW_PID]);
    plain_id(new.tid, e->of[KP_RAW_TID]);
    for (size_t i = s->count; i--;)
        if (strcmp(s->threads[i].tid, new.tid) == 0 && strcmp(s->threads[i].pid, new.pid) == 0) return &s->threads[i];
    if (s->count == THREADS_MOST) return NULL;
    new.sorted = kp_sorted_open(PIECE_BYTES, kp_budget_now()->disk);
    *KP_KINETO_NEXT(s->threads, s->count, s->capacity) = new;
    return &s->threads[s->count - 1];
}

static int scope_sort(void *context, const struct kp_raw_event *e)
{
    struct scope_run *s = context;
    if (e->phase != 'X' || !e->of[KP_RAW_TS].at || e->end_ns < e->start_ns) return 0;
    struct scope_thread *t = scope_thread_get(s, e);
    if (!t) return -E2BIG;
    if (e->start_ns < t->start_ns) t->start_ns = e->start_ns;
    if (e->end_ns > t->end_ns) t->end_ns = e->end_ns;
    return kp_sorted_add(t->sorted, e->start_ns, e->end_ns - e->start_ns, e->whole.at, e->whole.bytes);
}

static int speedscope_write(struct format_run *run, const struct kp_texts *texts, char *why, size_t why_bytes)
{
    struct scope_run s = {.threads = NULL};
    run->speedscope = kp_speedscope_open(text_put, run);
    int rc = kp_raw_read(texts, &(struct kp_raw_calls){scope_sort, NULL}, &s, why, why_bytes);
    for (size_t i = 0; i < s.count; i++) {
        struct scope_thread *t = &s.threads[i];
        if (rc == 0) {
            kp_speedscope_thread(run->speedscope, t->pid, t->tid, t->start_ns, t->end_ns);
            rc = kp_sorted_each(t->sorted, event_give, run);
            kp_speedscope_thread_end(run->speedscope);
        }
        kp_sorted_close(t->sorted);
    }
    const int closed = kp_speedscope_close(run->speedscope);
    free(s.threads);
    return rc ? rc : run->error ? run->error : closed;
}

/* ---- sqlite: in order of time, into the file of kp_outfile ---- */

static int row_sort(void *context, const struct kp_raw_event *e)
{
    struct format_run *run = context;
    return e->phase == 'M' ? kp_sqlite_name(run->sqlite, e) : event_add(run, e);
}

static int head_take(void *context, const char *text, size_t bytes, bool is_before)
{
    struct format_run *run = context;
    (void)is_before;
    return kp_sqlite_head(run->sqlite, text, bytes);
}

static int sqlite_write(struct format_run *run, const struct kp_texts *texts, char *why, size_t why_bytes)
{
    if (!run->file.part)
        return snprintf(why, why_bytes, "a database needs a file that can be read; give one with -o"), -EINVAL;
    run->sqlite = kp_sqlite_open(run->file.part, why, why_bytes);
    if (!run->sqlite) return -EIO;
    run->sorted = kp_sorted_open(0, kp_budget_now()->disk);
    int rc = kp_raw_read(texts, &(struct kp_raw_calls){row_sort, head_take}, run, why, why_bytes);
    if (rc == 0) rc = kp_sorted_each(run->sorted, event_give, run);
    kp_sorted_close(run->sorted);
    const int closed = kp_sqlite_close(run->sqlite, why, why_bytes);
    return rc ? rc : run->error ? run->error : closed;
}

/* ---- one trace ---- */

static const struct format {
    const char *name, *end;
    int (*write)(struct format_run *run, const struct kp_texts *texts, char *why, size_t why_bytes);
} formats[] = {{"perfetto", ".pftrace", perfetto_write},
               {"ndjson", ".ndjson", ndjson_write},
               {"speedscope", ".speedscope.json", speedscope_write},
               {"sqlite", ".sqlite", sqlite_write}};

static const struct format *format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

bool kp_formats_knows(const char *format) { return format_find(format) != NULL; }

static bool nothing_keep(const void *context, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    (void)context, (void)trace, (void)e;
    return false;
}

/* The writers take the text as it is, so it is read as a trace before: 0, or an exit code with the message out. */
static int text_check(const struct kp_trace_source *source)
{
    struct kp_kineto *trace;
    char why[512];
    const struct kp_kineto_wish wish = {
        .texts = kp_trace_source_texts(source), .label = source->path, .keep = nothing_keep};
    const int rc = kp_kineto_read(&trace, &wish, why, sizeof why);
    const bool is_torn = trace && trace->torn;
    kp_kineto_close(trace);
    return rc ? kp_cli_fail("export", "%s%s", why, is_torn ? KP_TORN_CUT : "") : KP_EXIT_DONE;
}

/* "log/a.pt.trace.json.gz" becomes "log/a.pftrace". The caller frees it. */
static char *path_beside(const struct format_run *run, const struct kp_trace_source *source)
{
    static const char *const ends[] = {".gz", ".json", ".trace", ".pt", ".kprof"};
    char cycle[32] = "";
    size_t bytes = strlen(source->path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        if (bytes > end && strncmp(source->path + bytes - end, ends[i], end) == 0) bytes -= end;
    }
    if (source->is_spool && source->input->count > 1) snprintf(cycle, sizeof cycle, ".%zu", source->cycle + 1);
    return kp_kineto_print("%.*s%s%s", (int)bytes, source->path, cycle, run->format->end);
}

static int trace_write(struct format_run *run, const struct kp_trace_source *source, const char *path)
{
    const struct kp_texts texts = kp_trace_source_texts(source);
    char why[512] = "";
    int rc = kp_outfile_open(&run->file, path);
    if (rc) return kp_cli_fail("export", "%s: %s", path, kp_cli_write_why(-rc));
    rc = run->format->write(run, &texts, why, sizeof why);
    const int closed = kp_outfile_close(&run->file, rc == 0);
    if (rc || closed) return kp_cli_fail("export", "%s: %s", path, why[0] ? why : kp_budget_explain(rc ? rc : closed));
    if (run->is_json) kp_written_say(&(struct kp_written){.name = path, .events = run->events});
    else kp_cli_say(stderr, "kprof: wrote %s (%zu events)", path, run->events);
    return KP_EXIT_DONE;
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct format_run run = *(const struct format_run *)context;
    if (several && run.out)
        return kp_cli_misuse("export", "-o names one file, but there are several traces; leave it out");
    int rc = text_check(source);
    if (rc != KP_EXIT_DONE) return rc;
    char *beside = run.out ? NULL : path_beside(&run, source);
    rc = trace_write(&run, source, run.out ? run.out : beside);
    free(beside);
    return rc;
}

int kp_formats_write(const char *format, const char *out, bool is_json, char **paths, int count)
{
    struct format_run run = {.format = format_find(format), .out = out, .is_json = is_json};
    return kp_input_each("export", paths, count, NULL, trace_take, &run);
}
