// SPDX-License-Identifier: Apache-2.0
/* story.h - a trace that a test writes event by event, read in blocks and pieces so small that it has many of them */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/read/parse/kineto_parse.h"
#include "export/read/parse/kineto_pieces.h"
#include "test/support/support.h"

enum { PIECE_EVENTS = 64, BLOCK_BYTES = 700, READ_BYTES = 300, TEXT_BYTES = 1 << 20 };

struct story {
    char *text;
    size_t used;
    const char *between; /* what stands before the next event */
};

static inline int story_setup(void **state)
{
    struct story *s = calloc(1, sizeof *s);
    *state = s;
    s->text = s ? malloc(TEXT_BYTES) : NULL;
    s->between = "";
    return s && s->text ? 0 : -1;
}

static inline int story_teardown(void **state)
{
    struct story *s = *state;
    free(s->text);
    free(s);
    return 0;
}

__attribute__((format(printf, 2, 3))) static inline void add(struct story *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    s->used += (size_t)vsnprintf(s->text + s->used, TEXT_BYTES - s->used, format, args);
    va_end(args);
    assert_true(s->used < TEXT_BYTES);
}

static inline void begin(struct story *s, const char *head)
{
    add(s, "{%s\"baseTimeNanoseconds\":1000000,\"traceEvents\":[", head);
}

static inline void event(struct story *s, const char *cat, const char *name, int tid, int ts, int dur, const char *args)
{
    add(s,
        "%s\n  {\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{%s}}",
        s->between, cat, name, tid, ts, dur, args);
    s->between = ",";
}

static inline void end(struct story *s) { add(s, "]}"); }

static inline int text_each(const void *from, kp_text_fn take, void *context, char *why, size_t why_bytes)
{
    const struct story *s = from;
    int rc = 0;
    (void)why, (void)why_bytes;
    for (size_t at = 0, n; at < s->used && rc == 0; at += n) {
        n = s->used - at < READ_BYTES ? s->used - at : READ_BYTES;
        rc = take(context, s->text + at, n);
    }
    return rc;
}

static inline int story_read(const struct story *s, struct kp_kineto **out, struct kp_kineto_pieces *pieces)
{
    const struct kp_kineto_cutting cutting = kp_kineto_cutting;
    const size_t events = kp_kineto_piece_events;
    const struct kp_kineto_wish wish = {.texts = {text_each, s}, .label = "text", .pieces = pieces};
    char why[256];
    kp_kineto_cutting = (struct kp_kineto_cutting){2, BLOCK_BYTES};
    kp_kineto_piece_events = PIECE_EVENTS;
    const int rc = kp_kineto_read(out, &wish, why, sizeof why);
    kp_kineto_cutting = cutting;
    kp_kineto_piece_events = events;
    return rc;
}
