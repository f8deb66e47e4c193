// SPDX-License-Identifier: Apache-2.0
/*
 * json_push.c - reads JSON in pieces, inside the host: the trace that the library has just written
 *
 * Called by: kineto_parse.c inside the host
 * Memory:    a buffer for the current token. A string without escapes that lies whole in a piece is not copied.
 * On fail:   false for brackets that do not match, more than 256 levels, an unknown word or a bad escape
 */
#include "export/report/json_push.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/kp_utf8.h"
#include "export/report/libc.h"

enum { DEEPEST = 256 };
enum state { BETWEEN, STRING, ESCAPE, UNICODE, WORD };

struct kp_json_push {
    const struct kp_json_calls *calls;
    void *context;
    void *(*grow)(void *memory, size_t bytes);
    char *token;
    size_t used, room, consumed, depth;
    enum state state;
    char open[DEEPEST]; /* { or [ */
    bool is_key, seen;  /* is_key: the next string is a key; seen: the text is not empty */
    uint32_t code, high;
    int digits;
};

struct kp_json_push *kp_json_push_open(const struct kp_json_calls *calls, void *context,
                                       void *(*grow)(void *memory, size_t bytes))
{
    struct kp_json_push *p = grow(NULL, sizeof *p);
    memset(p, 0, sizeof *p);
    p->calls = calls;
    p->context = context;
    p->grow = grow;
    return p;
}

void kp_json_push_close(struct kp_json_push *p)
{
    kp_rt_free(p->token);
    kp_rt_free(p);
}

static void keep(struct kp_json_push *p, const char *text, size_t bytes)
{
    if (p->used + bytes + 1 > p->room) {
        p->room = 2 * (p->used + bytes + 1);
        p->token = p->grow(p->token, p->room);
    }
    memcpy(p->token + p->used, text, bytes);
    p->used += bytes;
}

static void keep_code(struct kp_json_push *p, uint32_t c)
{
    char out[4];
    keep(p, out, kp_utf8_put(out, c));
}

static bool string_end(struct kp_json_push *p, const char *text, size_t bytes)
{
    bool is_key = p->is_key;
    p->state = BETWEEN;
    p->is_key = false;
    p->used = 0;
    return (is_key ? p->calls->map_key : p->calls->string)(p->context, (const unsigned char *)text, bytes);
}

static bool word_end(struct kp_json_push *p)
{
    const char *t = p->token;
    size_t n = p->used;
    p->state = BETWEEN;
    p->used = 0;
    if (n == 4 && memcmp(t, "true", 4) == 0) return p->calls->boolean(p->context, 1);
    if (n == 5 && memcmp(t, "false", 5) == 0) return p->calls->boolean(p->context, 0);
    if (n == 4 && memcmp(t, "null", 4) == 0) return p->calls->null(p->context);
    if (*t != '-' && (*t < '0' || *t > '9')) return false;
    return p->calls->number(p->context, t, n);
}

static bool bracket_open(struct kp_json_push *p, char c)
{
    if (p->depth == DEEPEST) return false;
    p->open[p->depth++] = c;
    p->is_key = c == '{';
    return (c == '{' ? p->calls->map_start : p->calls->array_start)(p->context);
}

static bool bracket_close(struct kp_json_push *p, char c)
{
    if (!p->depth || p->open[p->depth - 1] != (c == '}' ? '{' : '[')) return false;
    p->depth--;
    p->is_key = false;
    return (c == '}' ? p->calls->map_end : p->calls->array_end)(p->context);
}

static bool letter(struct kp_json_push *p, char c)
{
    p->seen = true;
    switch (c) {
    case ' ':
    case '\n':
    case '\r':
    case '\t':
    case ':': return true;
    case ',': p->is_key = p->depth && p->open[p->depth - 1] == '{'; return true;
    case '{':
    case '[': return bracket_open(p, c);
    case '}':
    case ']': return bracket_close(p, c);
    case '"': p->state = STRING; return true;
    default:
        p->state = WORD;
        keep(p, &c, 1);
        return true;
    }
}

static bool escape(struct kp_json_push *p, char c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = strchr(from, c);
    p->state = STRING;
    if (c == 'u') {
        p->state = UNICODE;
        p->code = 0;
        p->digits = 0;
        return true;
    }
    keep(p, at && c ? &to[at - from] : &c, 1);
    return true;
}

/* Takes a hex digit of an escape. A high surrogate waits in `high` for the low one. */
static bool unicode(struct kp_json_push *p, char c)
{
    uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a' + 10);
    if (digit > 15) return false;
    p->code = p->code << 4 | digit;
    if (++p->digits < 4) return true;
    p->state = STRING;
    if (p->code >= 0xd800 && p->code < 0xdc00) {
        p->high = p->code;
        return true;
    }
    if (p->high && p->code >= 0xdc00 && p->code < 0xe000)
        p->code = 0x10000 + ((p->high - 0xd800) << 10) + (p->code - 0xdc00);
    p->high = 0;
    keep_code(p, p->code);
    return true;
}

/* Takes text up to the string's or the piece's end. Returns how many bytes, 0 when a callback stops the reading. */
static size_t string_take(struct kp_json_push *p, const char *text, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && text[n] != '"' && text[n] != '\\') n++;
    if (n < bytes && text[n] == '"' && !p->used) return string_end(p, text, n) ? n + 1 : 0;
    keep(p, text, n);
    if (n == bytes) return n;
    if (text[n] == '\\') p->state = ESCAPE;
    else if (!string_end(p, p->token, p->used)) return 0;
    return n + 1;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

bool kp_json_push_feed(struct kp_json_push *p, const char *text, size_t bytes)
{
    bool good = true;
    size_t i = 0;
    while (i < bytes && good) {
        size_t taken = 1;
        if (p->state == WORD && !is_word(text[i])) good = word_end(p), taken = 0;
        else if (p->state == WORD) keep(p, &text[i], 1);
        else if (p->state == STRING) good = (taken = string_take(p, text + i, bytes - i)) != 0;
        else good = (p->state == ESCAPE ? escape : p->state == UNICODE ? unicode : letter)(p, text[i]);
        i += taken;
    }
    p->consumed = i;
    return good;
}

bool kp_json_push_end(struct kp_json_push *p)
{
    if (p->state == WORD && !word_end(p)) return false;
    return p->state == BETWEEN && !p->depth && p->seen;
}

size_t kp_json_push_consumed(const struct kp_json_push *p) { return p->consumed; }

void kp_json_push_why(struct kp_json_push *p, char *out, size_t bytes)
{
    (void)p;
    snprintf(out, bytes, "unreadable");
}
