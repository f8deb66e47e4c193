// SPDX-License-Identifier: Apache-2.0
/* kineto_read.c - reads a whole trace, as a wish says (the command only) */
#include "export/read/kineto/kineto.h"

#include <errno.h>
#include <stdio.h>

#include "export/read/parse/kineto_parse.h"
#include "export/read/kineto/kineto_processes.h"
#include "export/read/kineto/kineto_windows.h"
#include "export/read/kineto/passends.h"
#include "export/read/kineto/phasetimes.h"

struct reading {
    struct kp_kineto_blocks *blocks;
    const int *stop;
};

static int text_take(void *context, const char *text, size_t bytes)
{
    const struct reading *r = context;
    const int rc = kp_kineto_blocks_feed(r->blocks, text, bytes);
    return rc || !r->stop ? rc : *r->stop;
}

int kp_kineto_read(struct kp_kineto **out, const struct kp_kineto_wish *wish, char *why, size_t why_bytes)
{
    *out = NULL;
    why[0] = 0;
    struct kp_kineto *trace = kp_kineto_new();
    trace->keep = wish->keep;
    trace->keep_context = wish->context;
    trace->keep_works = wish->keep_works;
    trace->lasting_names = wish->lasting_names;
    struct kp_kineto_parser *parser = kp_kineto_parser_open(trace, wish->keep_args);
    struct reading reading = {kp_kineto_blocks_open(trace, parser, wish->keep_args, wish->pieces), wish->stop};
    int rc = wish->texts.each(wish->texts.from, text_take, &reading, why, why_bytes);
    if (rc == 0) rc = kp_kineto_blocks_end(reading.blocks);
    if (rc == 0 && wish->stop) rc = *wish->stop;
    kp_kineto_blocks_close(reading.blocks);
    return kp_kineto_finish(out, trace, parser, rc, wish->label, why, why_bytes);
}

/* ---- the end of the reading: times from the base, and why it failed ---- */

/* torch's floats count from the profiler's start. A file without it gets the first event's start. */
static void trace_settle(struct kp_kineto *trace)
{
    for (size_t i = 0; i < trace->count; i++) trace->events[i].start_ns += trace->base_ns;
    if (trace->has_start) {
        trace->start_ns += trace->base_ns;
        trace->end_ns += trace->base_ns;
    } else if (trace->has_first) {
        trace->start_ns = trace->first_ns + trace->base_ns;
    }
    kp_kineto_part_processes(trace);
    kp_phasetail_cut(trace);
    kp_kineto_windows_note(trace);
    if (trace->count) kp_passends_mark(trace);
}

static void explain(const struct kp_kineto_parser *parser, const struct kp_kineto *trace, const char *path, char *why,
                    size_t why_bytes)
{
    const unsigned long long at = kp_kineto_parser_offset(parser);
    const bool has_nothing = !trace->seen && (!at || kp_kineto_parser_is_torn(parser));
    char before[64] = "";
    if (trace->seen) snprintf(before, sizeof before, " (%zu events read before it)", trace->seen);
    snprintf(why, why_bytes, "%s: byte %llu: %s%s%s", path, at, kp_kineto_parser_why(parser), before,
             has_nothing ? "; copy it again, or write it again where its spool was left: kprof recover FOLDER"
             : at == 1   ? "; name a *.pt.trace.json[.gz], or its folder"
                         : "");
}

int kp_kineto_finish(struct kp_kineto **out, struct kp_kineto *trace, struct kp_kineto_parser *parser, int rc,
                     const char *path, char *why, size_t why_bytes)
{
    if (rc == 0) rc = kp_kineto_parser_end(parser);
    if (rc == 0 && !trace->has_events) {
        snprintf(why, why_bytes, "%s: byte %llu: the end of JSON without traceEvents: not a trace", path,
                 (unsigned long long)kp_kineto_parser_offset(parser));
        kp_kineto_parser_close(parser);
        kp_kineto_close(trace);
        *out = NULL;
        return -EINVAL;
    }
    if (rc == -EINVAL) explain(parser, trace, path, why, why_bytes);
    trace->torn = rc == -EINVAL && trace->seen && kp_kineto_parser_is_torn(parser);
    kp_kineto_parser_close(parser);
    trace_settle(trace);
    if (rc && !trace->torn) {
        kp_kineto_close(trace);
        trace = NULL;
    }
    *out = trace;
    return rc;
}
