// SPDX-License-Identifier: Apache-2.0
/*
 * trace_of.h - events of a trace from a line of text: "op a 0 10; kernel k@7 5 3 corr=4; op b 12 2 stack='a.py(8): f;'"
 *
 * An event is its category, name, start and length in microseconds, and arguments; @ is before another thread than 1.
 * A text with blanks or semicolons stands between ' and '. Words stand for categories and keys (below); others are
 * themselves. `step 3` is torch.profiler's range of step 3.
 */
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

struct trace_event {
    char cat[64], name[256], args[1024];
    int tid, ts, dur;
};

static inline const char *trace_word(const char *word)
{
    static const char *const words[][2] = {
        {"op", "cpu_op"},           {"range", "user_annotation"}, {"call", "python_function"}, {"cuda", "cuda_runtime"},
        {"seq", "Sequence number"}, {"fwd", "Fwd thread id"},     {"stack", "Call stack"},     {"from", "CallFrom"},
        {"id", "External id"},      {"corr", "correlation"},      {"dims", "Input Dims"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], word) == 0) return words[i][1];
    return word;
}

/* Copies a word, or what stands between two '. Returns what follows it. */
static inline const char *trace_word_read(const char *at, char *out, size_t bytes, const char *ends)
{
    at += strspn(at, " ");
    const bool is_quoted = *at == '\'';
    const size_t length = is_quoted ? strcspn(at + 1, "'") : strcspn(at, ends);
    assert_true(length < bytes);
    memcpy(out, at + is_quoted, length);
    out[length] = 0;
    return at + length + 2 * (size_t)is_quoted;
}

static inline const char *trace_args_read(const char *at, struct trace_event *e)
{
    size_t used = 0;
    e->args[0] = 0;
    for (at += strspn(at, " "); *at && *at != ';'; at += strspn(at, " ")) {
        char key[64], value[768];
        at = trace_word_read(at, key, sizeof key, "=");
        assert_true(*at == '=');
        const bool is_text = at[1] == '\'';
        at = trace_word_read(at + 1, value, sizeof value, " ;");
        used += (size_t)snprintf(e->args + used, sizeof e->args - used, "%s\"%s\":%s%s%s", used ? "," : "",
                                 trace_word(key), is_text ? "\"" : "", value, is_text ? "\"" : "");
        assert_true(used < sizeof e->args);
    }
    return at;
}

/* Returns what follows the first event of a text; NULL: there is none. */
static inline const char *trace_event_read(const char *at, struct trace_event *e)
{
    char cat[64], name[240], *end;
    at += strspn(at, "; ");
    if (!*at) return NULL;
    at = trace_word_read(at, cat, sizeof cat, " ");
    at = trace_word_read(at, name, sizeof name, " @");
    e->tid = *at == '@' ? (int)strtol(at + 1, &end, 10) : 1;
    if (*at == '@') at = end;
    e->ts = (int)strtol(at, &end, 10);
    assert_true(end != at);
    e->dur = (int)strtol(at = end, &end, 10);
    assert_true(end != at);
    const bool is_step = strcmp(cat, "step") == 0;
    snprintf(e->cat, sizeof e->cat, "%s", trace_word(is_step ? "range" : cat));
    snprintf(e->name, sizeof e->name, "%s%s", is_step ? "ProfilerStep#" : "", name);
    return trace_args_read(end, e);
}

/* Gives each event of a text to `add`, a function of (to, category, name, thread, start, length, arguments). */
#define TRACE_OF(add, to, text)                                               \
    do {                                                                      \
        struct trace_event one;                                               \
        for (const char *rest = text; (rest = trace_event_read(rest, &one));) \
            add(to, one.cat, one.name, one.tid, one.ts, one.dur, one.args);   \
    } while (0)
