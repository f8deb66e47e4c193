// SPDX-License-Identifier: Apache-2.0
/* json_scan.c - reads plain JSON that lies whole in memory: a step of a word of eight bytes through each string */
#include "export/read/json/json_scan.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "export/read/store/stringtable.h"

enum { SCAN_DEEPEST = 32 };

/*
 * Each function takes where it stands, and returns where it ends; NULL: this is not plain. None looks for the end of
 * the text, since the zeros behind it are part of nothing.
 */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Eight bytes, the first of them lowest. */
static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

/* The number of the lowest byte that is not zero. */
static unsigned first_byte(uint64_t word) { return (unsigned)__builtin_ctzll(word) / 8; }

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* A blank and the eight that follow it are a step: a line's end with its indent. */
static inline const char *space_skip(const char *at)
{
    while (is_space(*at)) {
        const uint64_t others = word_at(++at) ^ ONES * ' ';
        at += others ? first_byte(others) : 8;
    }
    return at;
}

/* ---- strings ---- */

/*
 * Marks the first quote, backslash or control letter of eight bytes by its highest bit; maybe others behind it.
 * Subtracting borrows only from bytes behind one that is marked. A quote and the control letters are those below 0x21
 * once bit 1 is turned over: 0x22 becomes 0x20.
 */
static uint64_t special_mark(uint64_t word)
{
    const uint64_t quotes = (word ^ ONES * 2) - ONES * 0x21, backslashes = (word ^ ONES * '\\') - ONES;
    return (quotes | backslashes) & ~word & HIGHS;
}

/* Where the plain part of a string ends. */
static inline const char *plain_end(const char *at)
{
    for (;; at += 8) {
        const uint64_t mark = special_mark(word_at(at));
        if (mark) return at + first_byte(mark);
    }
}

static void buffer_add(struct kp_json_scan *s, size_t *used, const char *text, size_t bytes)
{
    s->buffer = kp_kineto_grow(s->buffer, &s->buffer_room, *used + bytes + 1, 1);
    memcpy(s->buffer + *used, text, bytes);
    *used += bytes;
}

/* The string has escapes: its text is put together. `at` is the first backslash. */
static const char *escaped_take(struct kp_json_scan *s, const char *from, const char *at, const char **text,
                                size_t *bytes)
{
    static const char names[] = "\"\\/bfnrt", letters[] = "\"\\/\b\f\n\r\t";
    size_t used = 0;
    while (*at == '\\') {
        const char *name = at[1] ? strchr(names, at[1]) : NULL;
        if (!name) return NULL;
        buffer_add(s, &used, from, (size_t)(at - from));
        buffer_add(s, &used, &letters[name - names], 1);
        from = at + 2;
        at = plain_end(from);
    }
    if (*at != '"') return NULL;
    buffer_add(s, &used, from, (size_t)(at - from));
    *text = s->buffer;
    *bytes = used;
    return at + 1;
}

/* Stands on the opening quote, and ends behind the closing one. */
static inline const char *string_take(struct kp_json_scan *s, const char *at, const char **text, size_t *bytes)
{
    const char *const from = at + 1;
    at = plain_end(from);
    if (*at != '"') return escaped_take(s, from, at, text, bytes);
    *text = from;
    *bytes = (size_t)(at - from);
    return at + 1;
}

/* ---- numbers and words ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* One digit or more. */
static inline const char *digits_take(const char *at)
{
    if (!is_digit(*at)) return NULL;
    while (is_digit(*at)) at++;
    return at;
}

static inline const char *number_take(struct kp_json_scan *s, const char *at)
{
    const char *const from = at, *const whole = at + (*at == '-');
    at = digits_take(whole);
    if (!at || (*whole == '0' && at - whole > 1)) return NULL;
    if (*at == '.') at = digits_take(at + 1);
    if (at && (*at == 'e' || *at == 'E')) at = digits_take(at + (at[1] == '+' || at[1] == '-' ? 2 : 1));
    return at && *at && s->calls->number(s->context, from, (size_t)(at - from)) ? at : NULL;
}

static bool is_word(const char *at, const char *word) { return strncmp(at, word, strlen(word)) == 0; }

static const char *word_take(struct kp_json_scan *s, const char *at)
{
    if (is_word(at, "true")) return s->calls->boolean(s->context, 1) ? at + 4 : NULL;
    if (is_word(at, "false")) return s->calls->boolean(s->context, 0) ? at + 5 : NULL;
    return is_word(at, "null") && s->calls->null(s->context) ? at + 4 : NULL;
}

/* ---- values ---- */

static const char *brackets_take(struct kp_json_scan *s, const char *at, unsigned depth);

/* Inlined, since most values are no brackets: those need no call. */
static inline __attribute__((always_inline)) const char *value_take(struct kp_json_scan *s, const char *at,
                                                                    unsigned depth)
{
    const char *text;
    size_t bytes;
    at = space_skip(at);
    if (*at == '"') {
        at = string_take(s, at, &text, &bytes);
        return at && s->calls->string(s->context, (const unsigned char *)text, bytes) ? at : NULL;
    }
    if (*at == '{' || *at == '[') return brackets_take(s, at, depth);
    return *at == '-' || is_digit(*at) ? number_take(s, at) : word_take(s, at);
}

static inline const char *key_take(struct kp_json_scan *s, const char *at)
{
    const char *text;
    size_t bytes;
    at = space_skip(at);
    at = *at == '"' ? string_take(s, at, &text, &bytes) : NULL;
    if (!at || !s->calls->map_key(s->context, (const unsigned char *)text, bytes)) return NULL;
    at = space_skip(at);
    return *at == ':' ? at + 1 : NULL;
}

/* The members or values up to the bracket that closes, and that. Stands behind the one that opens. */
static const char *inside_take(struct kp_json_scan *s, const char *at, unsigned depth, char closing)
{
    at = space_skip(at);
    if (*at == closing) return at + 1;
    for (;;) {
        if (closing == '}') at = key_take(s, at);
        if (at) at = value_take(s, at, depth);
        if (!at) return NULL;
        at = space_skip(at);
        if (*at == closing) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *brackets_take(struct kp_json_scan *s, const char *at, unsigned depth)
{
    const bool is_map = *at == '{';
    if (depth == SCAN_DEEPEST || !(is_map ? s->calls->map_start : s->calls->array_start)(s->context)) return NULL;
    at = inside_take(s, at + 1, depth + 1, is_map ? '}' : ']');
    return at && (is_map ? s->calls->map_end : s->calls->array_end)(s->context) ? at : NULL;
}

size_t kp_json_scan_list(struct kp_json_scan *s, const char *text, size_t bytes)
{
    const char *const end = text + bytes;
    for (const char *at = text;;) {
        const char *const good = at;
        at = space_skip(at);
        if (at == end) return bytes;
        at = *at == ',' ? value_take(s, at + 1, 0) : NULL;
        if (!at) return (size_t)(good - text);
    }
}
