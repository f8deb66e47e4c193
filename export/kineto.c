// SPDX-License-Identifier: Apache-2.0
/* kineto.c - opens a trace file, gzip or plain, and drives the JSON machine over it */
#include "export/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define READ_BYTES (256u << 10)

static struct kp_trace *trace_new(void)
{
    struct kp_trace *trace = calloc(1, sizeof *trace);
    if (trace)
        trace->strings = kp_strings_open();
    return trace;
}

void kp_trace_close(struct kp_trace *trace)
{
    if (!trace)
        return;
    kp_strings_close(trace->strings);
    free(trace->events);
    free(trace->args_text);
    free(trace);
}

const char *kp_trace_text(const struct kp_trace *trace, uint32_t id)
{
    return kp_strings_get(trace->strings, id);
}

/* Where the profiler started is the anchor of torch's floats; files that do not say get their first event. */
static void trace_settle(struct kp_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        trace->events[i].start_ns += trace->base_ns;
    if (trace->has_start) {
        trace->start_ns += trace->base_ns;
        trace->end_ns += trace->base_ns;
        return;
    }
    for (size_t i = 0; i < trace->count; i++)
        if (i == 0 || trace->events[i].start_ns < trace->start_ns)
            trace->start_ns = trace->events[i].start_ns;
}

static void explain(const struct kp_kineto_parser *parser, const struct kp_trace *trace, const char *path, char *why,
                    size_t why_bytes)
{
    snprintf(why, why_bytes, "%s: byte %llu: %s (%zu events read before it)", path,
             (unsigned long long)kp_kineto_parser_offset(parser), kp_kineto_parser_why(parser), trace->count);
}

static int finish(struct kp_trace **out, struct kp_trace *trace, struct kp_kineto_parser *parser, int rc,
                  const char *path, char *why, size_t why_bytes)
{
    if (rc == 0)
        rc = kp_kineto_parser_end(parser);
    if (rc == -EINVAL)
        explain(parser, trace, path, why, why_bytes);
    trace->torn = rc == -EINVAL && kp_kineto_parser_is_torn(parser);
    kp_kineto_parser_close(parser);
    trace_settle(trace);
    if (rc && !trace->torn) {
        kp_trace_close(trace);
        trace = NULL;
    }
    *out = trace;
    return rc;
}

int kp_trace_parse(struct kp_trace **out, const char *text, size_t bytes, bool keep_args, char *why, size_t why_bytes)
{
    *out = NULL;
    struct kp_trace *trace = trace_new();
    if (!trace)
        return -ENOMEM;
    struct kp_kineto_parser *parser = kp_kineto_parser_open(trace, keep_args);
    int rc = kp_kineto_parser_feed(parser, text, bytes);
    return finish(out, trace, parser, rc, "text", why, why_bytes);
}

/* A gzip that ends early gives the bytes it has and then an error; both are told with the offset. */
static int feed_all(gzFile file, struct kp_kineto_parser *parser, const char *path, char *why, size_t why_bytes)
{
    char *buffer = malloc(READ_BYTES);
    uint64_t total = 0;
    int rc = buffer ? 0 : -ENOMEM;
    while (rc == 0) {
        int got = gzread(file, buffer, READ_BYTES);
        if (got > 0) {
            total += (uint64_t)got;
            rc = kp_kineto_parser_feed(parser, buffer, (size_t)got);
            continue;
        }
        int code = Z_OK;
        const char *text = gzerror(file, &code);
        if (code == Z_ERRNO)
            rc = errno ? -errno : -EIO;
        else if (got < 0 && code != Z_BUF_ERROR)
            rc = -EIO;
        if (rc)
            snprintf(why, why_bytes, "%s: byte %llu of the unpacked text: %s", path, (unsigned long long)total,
                     code == Z_ERRNO ? strerror(-rc) : text);
        break;
    }
    free(buffer);
    return rc;
}

int kp_trace_open(struct kp_trace **out, const char *path, bool keep_args, char *why, size_t why_bytes)
{
    *out = NULL;
    why[0] = 0;
    gzFile file = gzopen(path, "rbe");
    if (!file) {
        int rc = errno ? -errno : -ENOMEM;
        snprintf(why, why_bytes, "%s: %s", path, strerror(-rc));
        return rc;
    }
    gzbuffer(file, READ_BYTES);
    struct kp_trace *trace = trace_new();
    if (!trace) {
        gzclose(file);
        return -ENOMEM;
    }
    struct kp_kineto_parser *parser = kp_kineto_parser_open(trace, keep_args);
    int rc = feed_all(file, parser, path, why, why_bytes);
    gzclose(file);
    return finish(out, trace, parser, rc, path, why, why_bytes);
}
