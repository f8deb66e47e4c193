// SPDX-License-Identifier: Apache-2.0
/* kineto_file.c - opens a trace file, gzip or plain, and drives the JSON machine over it (the command only) */
#include "export/kineto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define READ_BYTES (256u << 10)

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
    return kp_trace_open_some(out, path, keep_args, NULL, NULL, why, why_bytes);
}

int kp_trace_open_some(struct kp_trace **out, const char *path, bool keep_args, kp_trace_keep_fn keep, const void *context, char *why,
                       size_t why_bytes)
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
    struct kp_trace *trace = kp_trace_new();
    if (!trace) {
        gzclose(file);
        return -ENOMEM;
    }
    trace->keep = keep;
    trace->keep_context = context;
    struct kp_kineto_parser *parser = kp_kineto_parser_open(trace, keep_args);
    int rc = feed_all(file, parser, path, why, why_bytes);
    gzclose(file);
    return kp_trace_finish(out, trace, parser, rc, path, why, why_bytes);
}
