// SPDX-License-Identifier: Apache-2.0
/* json_scan.c - reads plain JSON that lies whole in memory: a step of a word of eight bytes through each string */
#include "export/report/json_scan.h"

#include <stdint.h>
#include <string.h>

#include "export/report/kineto.h"

enum { SCAN_DEEPEST = 32 };

struct cursor {
    const char *at, *end;
    struct kp_json_scan *scan;
};

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static void space_skip(struct cursor *c)
{
    while (c->at < c->end && is_space(*c->at)) c->at++;
}

/* ---- strings ---- */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

static uint64_t has_zero(uint64_t word) { return (word - ONES) & ~word & HIGHS; }

/* Whether a byte of eight is a quote, a backslash or a control letter. It may also say so where none is. */
static bool is_special(uint64_t word)
{
    return has_zero(word ^ ONES * '"') || has_zero(word ^ ONES * '\\') || ((word - ONES * 0x20) & ~word & HIGHS);
}

/* Where the plain part of a string ends. */
static const char *plain_end(const char *at, const char *end)
{
    uint64_t word;
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        if (is_special(word)) break;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20) at++;
    return at;
}

static bool buffer_add(struct kp_json_scan *s, size_t *used, const char *text, size_t bytes)
{
    s->buffer = kp_kineto_grow(s->buffer, &s->buffer_room, *used + bytes + 1, 1);
    memcpy(s->buffer + *used, text, bytes);
    *used += bytes;
    return true;
}

/* The string has escapes: its text is put together. Stands on the first backslash. */
static bool escaped_take(struct cursor *c, const char *from, const char **text, size_t *bytes)
{
    static const char names[] = "\"\\/bfnrt", letters[] = "\"\\/\b\f\n\r\t";
    size_t used = 0;
    while (c->at + 1 < c->end && *c->at == '\\') {
        const char *name = c->at[1] ? strchr(names, c->at[1]) : NULL;
        if (!name) return false;
        buffer_add(c->scan, &used, from, (size_t)(c->at - from));
        buffer_add(c->scan, &used, &letters[name - names], 1);
        from = c->at + 2;
        c->at = plain_end(from, c->end);
    }
    if (c->at >= c->end || *c->at != '"') return false;
    buffer_add(c->scan, &used, from, (size_t)(c->at - from));
    *text = c->scan->buffer;
    *bytes = used;
    return true;
}

/* Stands on the opening quote, and ends behind the closing one. */
static bool string_take(struct cursor *c, const char **text, size_t *bytes)
{
    const char *from = ++c->at;
    c->at = plain_end(from, c->end);
    if (c->at >= c->end) return false;
    if (*c->at == '"') {
        *text = from;
        *bytes = (size_t)(c->at - from);
    } else if (!escaped_take(c, from, text, bytes)) {
        return false;
    }
    c->at++;
    return true;
}

/* ---- numbers and words ---- */

static bool digits_skip(struct cursor *c)
{
    const char *from = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
    return c->at > from;
}

static bool number_take(struct cursor *c)
{
    const char *from = c->at;
    if (*c->at == '-') c->at++;
    const char *whole = c->at;
    if (!digits_skip(c) || (*whole == '0' && c->at - whole > 1)) return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!digits_skip(c)) return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        if (!digits_skip(c)) return false;
    }
    return c->at < c->end && c->scan->calls->number(c->scan->context, from, (size_t)(c->at - from));
}

static bool is_word(struct cursor *c, const char *word)
{
    const size_t bytes = strlen(word);
    if ((size_t)(c->end - c->at) < bytes || memcmp(c->at, word, bytes) != 0) return false;
    c->at += bytes;
    return true;
}

static bool word_take(struct cursor *c)
{
    const struct kp_json_calls *calls = c->scan->calls;
    if (is_word(c, "true")) return calls->boolean(c->scan->context, 1);
    if (is_word(c, "false")) return calls->boolean(c->scan->context, 0);
    return is_word(c, "null") && calls->null(c->scan->context);
}

/* ---- values ---- */

static bool value_take(struct cursor *c, unsigned depth);

static bool member_take(struct cursor *c, unsigned depth)
{
    const char *text;
    size_t bytes;
    space_skip(c);
    if (c->at >= c->end || *c->at != '"' || !string_take(c, &text, &bytes)) return false;
    if (!c->scan->calls->map_key(c->scan->context, (const unsigned char *)text, bytes)) return false;
    space_skip(c);
    if (c->at >= c->end || *c->at++ != ':') return false;
    return value_take(c, depth);
}

/* The members or values up to the bracket that closes. Stands behind the one that opens. */
static bool inside_take(struct cursor *c, unsigned depth, char closing)
{
    space_skip(c);
    if (c->at < c->end && *c->at == closing) return c->at++, true;
    for (;;) {
        if (closing == '}' ? !member_take(c, depth) : !value_take(c, depth)) return false;
        space_skip(c);
        if (c->at >= c->end) return false;
        const char letter = *c->at++;
        if (letter == closing) return true;
        if (letter != ',') return false;
    }
}

static bool brackets_take(struct cursor *c, unsigned depth)
{
    const struct kp_json_calls *calls = c->scan->calls;
    void *context = c->scan->context;
    if (depth == SCAN_DEEPEST) return false;
    if (*c->at++ == '{') return calls->map_start(context) && inside_take(c, depth + 1, '}') && calls->map_end(context);
    return calls->array_start(context) && inside_take(c, depth + 1, ']') && calls->array_end(context);
}

static bool value_take(struct cursor *c, unsigned depth)
{
    const char *text;
    size_t bytes;
    space_skip(c);
    if (c->at >= c->end) return false;
    if (*c->at == '"')
        return string_take(c, &text, &bytes) &&
               c->scan->calls->string(c->scan->context, (const unsigned char *)text, bytes);
    if (*c->at == '{' || *c->at == '[') return brackets_take(c, depth);
    return *c->at == '-' || (*c->at >= '0' && *c->at <= '9') ? number_take(c) : word_take(c);
}

size_t kp_json_scan_list(struct kp_json_scan *scan, const char *text, size_t bytes)
{
    struct cursor c = {text, text + bytes, scan};
    const char *good = text;
    for (;;) {
        space_skip(&c);
        if (c.at == c.end) return bytes;
        if (*c.at++ != ',' || !value_take(&c, 0)) return (size_t)(good - text);
        good = c.at;
    }
}
