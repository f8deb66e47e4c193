// SPDX-License-Identifier: Apache-2.0
/*
 * trace_source.c - gives the text of a trace, from a file or from the export of a spool's cycle
 *
 * The export's text is handed on while it is made. So even a hostile spool takes no disk.
 */
#include "export/read/folder/trace_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/read/kp_read.h"
#include "export/read/files/budget.h"
#include "export/read/files/outfile.h"
#include "export/read/files/progress.h"
#include "export/show/say.h"
#include "export/read/folder/heapprofile.h"
#include "export/show/plainname.h"
#include "export/read/files/spoolfile.h"
#include "export/kp_export.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/parse/kineto_pieces.h"

/* Only the spool of the last source is open. */
static int reader_get(struct kp_input *input, const char *path, char *why, size_t why_bytes)
{
    if (input->reader && strcmp(input->reader_path, path) == 0) return 0;
    kp_reader_close(input->reader);
    input->reader = NULL;
    input->reader_path = path;
    return kp_spoolfile_open(&input->reader, path, NULL, why, why_bytes);
}

/* A file's text counts over all of its cycles, and each time it is read. */
struct counting {
    kp_text_fn take;
    void *context;
    struct kp_progress *progress;
    uint64_t bytes;
};

static int counted_take(void *context, const char *text, size_t bytes)
{
    struct counting *c = context;
    kp_progress_bytes(c->progress, c->bytes += bytes);
    const int rc = kp_budget_text(bytes);
    return rc ? rc : c->take(c->context, text, bytes);
}

static struct kp_export_options options_make(const struct kp_trace_source *s, kp_text_fn take, void *context)
{
    return (struct kp_export_options){.dir = kp_outfile_temporary(),
                                      .loads_cpp = true,
                                      .cpp = kp_plainname_can() ? kp_plainname_cpp : NULL,
                                      .places = s->input->places,
                                      .text = take,
                                      .text_context = context,
                                      .scratch_dir = kp_outfile_temporary(),
                                      .scratch_most = kp_budget_now()->disk};
}

static int cycle_each(const struct kp_trace_source *s, const struct kp_export_options *options, char *why,
                      size_t why_bytes)
{
    static struct kp_export_result result;
    struct kp_cycle cycle;
    int rc = reader_get(s->input, s->path, why, why_bytes);
    if (rc) return rc;
    rc = kp_reader_cycle(s->input->reader, s->cycle, &cycle);
    if (rc == 0) rc = kp_export_trace(s->input->reader, cycle.number, options, &result);
    if (rc && rc != -EINVAL && rc != -ECANCELED && !why[0]) /* an error without a message */
        snprintf(why, why_bytes, "%s: cycle %zu cannot be exported: %s", s->path, s->cycle + 1, kp_budget_explain(rc));
    return rc;
}

/* The user asks for the stacks of NAME.heap.zst, say, by the command that reads traces. */
static int heap_refuse(const char *path, char *why, size_t why_bytes)
{
    snprintf(why, why_bytes,
             "%s: a profile of the heap, not a trace; kprof memory shows it, kprof memory --svg -o heap.svg draws its "
             "flame graph, kprof memory --format folded prints its stacks",
             path);
    return -ENOTSUP; /* -EINVAL: of the text, which the parser explains */
}

static int text_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct kp_trace_source *s = from;
    struct kp_progress progress;
    struct counting counting = {take, context, &progress, 0};
    why[0] = 0;
    if (!s->is_spool && kp_profile_is(s->path)) return heap_refuse(s->path, why, why_bytes);
    kp_progress_begin(&progress, s->path);
    const struct kp_export_options options = options_make(s, counted_take, &counting);
    const int rc = s->is_spool ? cycle_each(s, &options, why, why_bytes)
                               : kp_text_file_each(s->path, counted_take, &counting, why, why_bytes);
    kp_progress_end(&progress);
    if (rc && rc != -EINVAL && !why[0]) snprintf(why, why_bytes, "%s: %s", s->path, kp_budget_explain(rc));
    return rc;
}

struct kp_texts kp_trace_source_texts(const struct kp_trace_source *s) { return (struct kp_texts){text_each, s}; }

int kp_trace_source_read(const struct kp_trace_source *s, struct kp_kineto **out, struct kp_kineto_pieces *pieces,
                         char *why, size_t why_bytes)
{
    const struct kp_kineto_wish wish = {
        .texts = kp_trace_source_texts(s), .label = s->path, .pieces = pieces, .lasting_names = !s->is_verbatim};
    return kp_kineto_read(out, &wish, why, why_bytes);
}

bool kp_trace_source_take_torn(struct kp_kineto *trace, char *why, size_t bytes)
{
    struct kp_kineto_torn torn;
    if (!trace || !trace->torn || !trace->seen) return false;
    kp_kineto_end_torn(trace, &torn);
    size_t n = strlen(why);
    n += (size_t)snprintf(why + n, bytes - n, ": shown");
    if (torn.is_known && n < bytes)
        n += (size_t)snprintf(why + n, bytes - n, " up to %.1f ms", (double)torn.span_ns / 1e6);
    if (torn.whole == 1 && n < bytes) n += (size_t)snprintf(why + n, bytes - n, ", 1 whole step (%ld)", torn.first);
    if (torn.whole > 1 && n < bytes)
        n += (size_t)snprintf(why + n, bytes - n, ", %zu whole steps (%ld to %ld)", torn.whole, torn.first, torn.last);
    if (torn.has_cut && n < bytes) (void)snprintf(why + n, bytes - n, ", step %ld cut short", torn.cut);
    return true;
}

int kp_trace_source_show(const char *command, const struct kp_trace_source *s, bool partial, bool all_calls,
                         struct kp_kineto **out)
{
    char why[768];
    struct kp_kineto_pieces fewer = {.has_memory = true};
    int rc = kp_trace_source_read(s, out, all_calls || partial ? NULL : &fewer, why, sizeof why);
    const bool is_late = rc == -ESTALE || (rc == 0 && !kp_kineto_pieces_hold(&fewer, *out));
    if (is_late) kp_kineto_close(*out);
    if (is_late) rc = kp_trace_source_read(s, out, NULL, why, sizeof why);
    if (rc == 0) return KP_EXIT_DONE;
    if (partial && kp_trace_source_take_torn(*out, why, sizeof why))
        return kp_cli_say(stderr, "kprof: %s", why), KP_EXIT_DONE;
    const bool is_torn = *out && (*out)->torn;
    kp_kineto_close(*out);
    return kp_cli_fail(command, "%s%s", why, is_torn ? "; --partial shows those" : "");
}

/* The profile comes before the trace, which is not wanted. */
static int trace_drop(void *context, const char *text, size_t bytes)
{
    (void)context, (void)text, (void)bytes;
    return -ECANCELED;
}

static int heap_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct kp_trace_source *s = from;
    struct kp_export_options options = options_make(s, trace_drop, NULL);
    char path[4096];
    options.heap_text = take;
    options.heap_context = context;
    why[0] = 0;
    if (!s->is_spool && !kp_profile_find(path, sizeof path, s->path)) return -ENOENT;
    if (!s->is_spool) return kp_text_file_each(path, take, context, why, why_bytes);
    const int rc = cycle_each(s, &options, why, why_bytes);
    return rc == -ECANCELED ? 0 : rc;
}

struct kp_texts kp_trace_source_heap(const struct kp_trace_source *s) { return (struct kp_texts){heap_each, s}; }
