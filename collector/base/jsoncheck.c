// SPDX-License-Identifier: Apache-2.0
/*
 * jsoncheck.c - checks that a text is JSON, and finds where it stops being so
 *
 * Called by: config.c (constructor), preload/run/api.c (kprof_metadata_json), the CLI
 * Memory:    never allocates. A bit for each level, on the stack, tells an object from a list.
 * Safe in:   signal handlers yes; after fork yes
 *
 * It loops and does not recurse, so a hostile text cannot use up a small stack.
 */
#include "collector/base/kp_jsoncheck.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_poison.h"

enum { DEPTH_MAX = 512 };

struct check {
    const unsigned char *text;
    size_t at, bytes;
    const char *why;
    unsigned depth;
    uint64_t is_object[DEPTH_MAX / 64];
};

static int peek(const struct check *c) { return c->at < c->bytes ? c->text[c->at] : -1; }

static bool fail(struct check *c, const char *why)
{
    c->why = why;
    return false;
}

static void skip_space(struct check *c)
{
    int ch;
    while ((ch = peek(c)) == ' ' || ch == '\t' || ch == '\n' || ch == '\r') c->at++;
}

static bool is_hex(int ch) { return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f') || (ch >= 'A' && ch <= 'F'); }

static bool take_escape(struct check *c)
{
    int ch;
    c->at++;
    ch = peek(c);
    if (ch == 'u') {
        c->at++;
        for (int i = 0; i < 4; i++, c->at++)
            if (!is_hex(peek(c))) return fail(c, "expected four hex digits after \\u");
        return true;
    }
    if (ch <= 0 || !strchr("\"\\/bfnrt", ch)) return fail(c, "unknown escape");
    c->at++;
    return true;
}

/* Takes a UTF-8 sequence of two to four bytes: no overlong form, no surrogate, nothing above U+10FFFF. */
static bool take_utf8(struct check *c)
{
    const unsigned char lead = c->text[c->at];
    const unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    unsigned char second;
    if (lead < 0xc2 || lead > 0xf4 || c->bytes - c->at <= more) return fail(c, "not UTF-8");
    second = c->text[c->at + 1];
    for (unsigned i = 1; i <= more; i++)
        if ((c->text[c->at + i] & 0xc0) != 0x80) return fail(c, "not UTF-8");
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
        return fail(c, "not UTF-8");
    c->at += more + 1;
    return true;
}

static bool take_string(struct check *c)
{
    int ch;
    if (peek(c) != '"') return fail(c, "expected a string");
    c->at++;
    while ((ch = peek(c)) != '"') {
        if (ch < 0) return fail(c, "string without an end");
        if (ch < 0x20) return fail(c, "control character in a string");
        if (ch == '\\') {
            if (!take_escape(c)) return false;
        } else if (ch >= 0x80) {
            if (!take_utf8(c)) return false;
        } else {
            c->at++;
        }
    }
    c->at++;
    return true;
}

static bool take_digits(struct check *c)
{
    const size_t from = c->at;
    while (peek(c) >= '0' && peek(c) <= '9') c->at++;
    return c->at > from || fail(c, "expected a digit");
}

static bool take_number(struct check *c)
{
    if (peek(c) == '-') c->at++;
    if (peek(c) == '0') c->at++;
    else if (!take_digits(c)) return false;
    if (peek(c) == '.') {
        c->at++;
        if (!take_digits(c)) return false;
    }
    if (peek(c) == 'e' || peek(c) == 'E') {
        c->at++;
        if (peek(c) == '+' || peek(c) == '-') c->at++;
        if (!take_digits(c)) return false;
    }
    return true;
}

static bool take_word(struct check *c, const char *word)
{
    const size_t length = strlen(word);
    if (c->bytes - c->at < length || memcmp(c->text + c->at, word, length) != 0) return fail(c, "expected a value");
    c->at += length;
    return true;
}

static bool take_scalar(struct check *c)
{
    const int ch = peek(c);
    if (ch == '"') return take_string(c);
    if (ch == '-' || (ch >= '0' && ch <= '9')) return take_number(c);
    if (ch == 't') return take_word(c, "true");
    if (ch == 'f') return take_word(c, "false");
    if (ch == 'n') return take_word(c, "null");
    return fail(c, ch < 0 ? "ends too early" : "expected a value");
}

static bool in_object(const struct check *c)
{
    return c->depth && (c->is_object[(c->depth - 1) / 64] >> ((c->depth - 1) % 64) & 1);
}

static bool go_in(struct check *c, bool object)
{
    const uint64_t bit = UINT64_C(1) << (c->depth % 64);
    if (c->depth == DEPTH_MAX) return fail(c, "nested too deep");
    if (object) c->is_object[c->depth / 64] |= bit;
    else c->is_object[c->depth / 64] &= ~bit;
    c->depth++;
    c->at++;
    skip_space(c);
    return true;
}

/* Takes "key": */
static bool take_key(struct check *c)
{
    if (peek(c) != '"') return fail(c, "expected a member name in double quotes");
    if (!take_string(c)) return false;
    skip_space(c);
    if (peek(c) != ':') return fail(c, "expected ':'");
    c->at++;
    skip_space(c);
    return true;
}

/* Behind a value: closes lists and objects until a comma (*more) or the end of the text. */
static bool close_levels(struct check *c, bool *more)
{
    for (;;) {
        skip_space(c);
        if (!c->depth) {
            *more = false;
            return true;
        }
        if (peek(c) == ',') {
            c->at++;
            skip_space(c);
            *more = true;
            return !in_object(c) || take_key(c);
        }
        if (peek(c) != (in_object(c) ? '}' : ']'))
            return fail(c, in_object(c) ? "expected ',' or '}'" : "expected ',' or ']'");
        c->at++;
        c->depth--;
    }
}

/* Takes a value. *opened: it only began a list or object, and its first value comes next. */
static bool take_value(struct check *c, bool *opened)
{
    const int ch = peek(c);
    *opened = false;
    if (ch != '{' && ch != '[') return take_scalar(c);
    if (!go_in(c, ch == '{')) return false;
    if (peek(c) == (ch == '{' ? '}' : ']')) {
        c->at++;
        c->depth--;
        return true;
    }
    *opened = true;
    return ch == '[' || take_key(c);
}

static bool check_all(struct check *c)
{
    bool more = true, opened;
    skip_space(c);
    while (more) {
        if (!take_value(c, &opened)) return false;
        if (!opened && !close_levels(c, &more)) return false;
    }
    return c->at == c->bytes || fail(c, "text after the end");
}

int kp_jsoncheck_value(const char *text, size_t bytes, size_t *offset, const char **why)
{
    struct check c = {.text = (const unsigned char *)text, .bytes = bytes};
    if (check_all(&c)) return 0;
    *offset = c.at;
    *why = c.why;
    return -EINVAL;
}

int kp_jsoncheck_object(const char *text, size_t bytes, size_t *offset, const char **why)
{
    size_t at = 0;
    const int rc = kp_jsoncheck_value(text, bytes, offset, why);
    if (rc < 0) return rc;
    while (at < bytes && text[at] != '{' && strchr(" \t\r\n", text[at])) at++;
    if (text[at] == '{') return 0;
    *offset = at;
    *why = "expected an object { }";
    return -EINVAL;
}
