// SPDX-License-Identifier: Apache-2.0
/* rawevents.c - finds the list of events in a text that comes in pieces, and each event in it */
#include "export/answers/convert/rawevents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/parse/kineto_parse.h"

enum { EVENT_MOST = 64 << 20, KEY_BYTES = 16 };
enum section { BEFORE, INSIDE, AFTER };

struct cutting {
    const struct kp_raw_calls *calls;
    void *context;
    enum section section;
    unsigned depth, list_depth; /* of brackets; that of the list of events */
    bool in_string, is_escaped, in_event;
    char key[KEY_BYTES]; /* the last string at depth 1 */
    size_t key_bytes;
    char *held; /* of an event that began in an earlier piece */
    size_t used, capacity;
};

/* ---- fields ---- */

static const char *blank_skip(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t' || *at == ',' || *at == ':')) at++;
    return at;
}

static const char *string_skip(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\') at++;
    return at < end ? at + 1 : end;
}

static const char *value_skip(const char *at, const char *end)
{
    unsigned depth = 0;
    if (at < end && *at == '"') return string_skip(at, end);
    while (at < end) {
        if (*at == '"') {
            at = string_skip(at, end);
            continue;
        }
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') {
            if (!depth) break;
            if (!--depth) return at + 1;
        }
        if (!depth && (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) break;
        at++;
    }
    return at;
}

/* Reads the next member of an object. False: there is none. */
static bool member_next(const char **at, const char *end, struct kp_raw_text *key, struct kp_raw_text *value)
{
    const char *from = blank_skip(*at, end);
    if (from >= end || *from != '"') return false;
    const char *key_end = string_skip(from, end);
    if (key_end - from < 2) return false;
    *key = (struct kp_raw_text){from + 1, (size_t)(key_end - from) - 2};
    const char *to = blank_skip(key_end, end);
    *at = value_skip(to, end);
    *value = (struct kp_raw_text){to, (size_t)(*at - to)};
    return *at > to;
}

static bool is_key(struct kp_raw_text key, const char *name)
{
    return key.bytes == strlen(name) && memcmp(key.at, name, key.bytes) == 0;
}

bool kp_raw_next(struct kp_raw_text object, const char **at, struct kp_raw_text *key, struct kp_raw_text *value)
{
    if (object.bytes < 2 || object.at[0] != '{') return false;
    if (!*at) *at = object.at + 1;
    return member_next(at, object.at + object.bytes, key, value);
}

struct kp_raw_text kp_raw_member(struct kp_raw_text object, const char *name)
{
    struct kp_raw_text key, value;
    const char *at = NULL;
    while (kp_raw_next(object, &at, &key, &value))
        if (is_key(key, name)) return value;
    return (struct kp_raw_text){0};
}

static void fields_find(struct kp_raw_event *e)
{
    static const char *const names[KP_RAW_KEYS] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"};
    struct kp_raw_text key, value;
    const char *at = e->whole.at + 1, *end = e->whole.at + e->whole.bytes;
    while (member_next(&at, end, &key, &value))
        for (int i = 0; i < KP_RAW_KEYS; i++)
            if (is_key(key, names[i])) e->of[i] = value;
}

static int64_t time_of(struct kp_raw_text value)
{
    if (kp_raw_is_string(value)) value = (struct kp_raw_text){value.at + 1, value.bytes - 2};
    return value.at ? kp_kineto_ns(value.at, value.bytes) : 0;
}

void kp_raw_parse(struct kp_raw_event *out, const char *text, size_t bytes)
{
    *out = (struct kp_raw_event){.whole = {text, bytes}};
    fields_find(out);
    if (out->of[KP_RAW_PH].bytes > 2) out->phase = out->of[KP_RAW_PH].at[1];
    out->start_ns = out->end_ns = time_of(out->of[KP_RAW_TS]);
    const int64_t dur_ns = out->phase == 'X' ? time_of(out->of[KP_RAW_DUR]) : 0;
    if (dur_ns > 0 && out->start_ns <= INT64_MAX - dur_ns) out->end_ns += dur_ns;
}

static int event_give(struct cutting *c, const char *text, size_t bytes)
{
    struct kp_raw_event e;
    kp_raw_parse(&e, text, bytes);
    return c->calls->event(c->context, &e);
}

/* ---- cutting ---- */

static int hold(struct cutting *c, const char *text, size_t bytes)
{
    if (c->used + bytes > EVENT_MOST) return -EINVAL;
    c->held = kp_kineto_grow(c->held, &c->capacity, c->used + bytes + 1, 1);
    memcpy(c->held + c->used, text, bytes);
    c->used += bytes;
    return 0;
}

/* An event ends with this piece. */
static int event_end(struct cutting *c, const char *text, size_t bytes)
{
    if (!c->used) return event_give(c, text, bytes);
    int rc = hold(c, text, bytes);
    if (rc == 0) rc = event_give(c, c->held, c->used);
    c->used = 0;
    return rc;
}

static void string_take(struct cutting *c, char letter)
{
    if (c->is_escaped) {
        c->is_escaped = false;
    } else if (letter == '\\') {
        c->is_escaped = true;
    } else if (letter == '"') {
        c->in_string = false;
        return;
    }
    if (c->section == BEFORE && c->depth == 1 && c->key_bytes < KEY_BYTES) c->key[c->key_bytes++] = letter;
}

static bool opens_list(const struct cutting *c)
{
    static const char events[] = "traceEvents";
    if (c->section != BEFORE) return false;
    return c->depth == 0 ||
           (c->depth == 1 && c->key_bytes == sizeof events - 1 && memcmp(c->key, events, sizeof events - 1) == 0);
}

static int rest_give(struct cutting *c, const char *text, size_t bytes, bool is_before)
{
    return c->calls->rest && bytes ? c->calls->rest(c->context, text, bytes, is_before) : 0;
}

struct piece {
    const char *text;
    size_t bytes, from; /* from: what was not given yet */
};

/* The letter at `at` opens or closes something. Returns 0 or an error. */
static int bracket_take(struct cutting *c, struct piece *p, size_t at)
{
    const char letter = p->text[at];
    int rc = 0;
    if (letter == '{' || letter == '[') {
        if (letter == '[' && opens_list(c)) {
            rc = rest_give(c, p->text + p->from, at + 1 - p->from, true);
            c->section = INSIDE;
            c->list_depth = c->depth + 1;
        } else if (c->section == INSIDE && c->depth == c->list_depth && letter == '{') {
            c->in_event = true;
            p->from = at;
        }
        c->depth++;
        return rc;
    }
    if (c->depth) c->depth--;
    if (c->section == INSIDE && c->depth + 1 == c->list_depth) {
        c->section = AFTER;
        p->from = at;
    } else if (c->in_event && c->depth == c->list_depth) {
        c->in_event = false;
        rc = event_end(c, p->text + p->from, at + 1 - p->from);
    }
    return rc;
}

static int piece_take(void *context, const char *text, size_t bytes)
{
    struct cutting *c = context;
    struct piece p = {text, bytes, 0};
    int rc = 0;
    for (size_t at = 0; at < bytes && rc == 0; at++) {
        const char letter = text[at];
        if (c->in_string) {
            string_take(c, letter);
        } else if (letter == '"') {
            c->in_string = true;
            if (c->section == BEFORE && c->depth == 1) c->key_bytes = 0;
        } else if (letter == '{' || letter == '[' || letter == '}' || letter == ']') {
            rc = bracket_take(c, &p, at);
        }
    }
    if (rc || (c->section == INSIDE && !c->in_event)) return rc;
    if (c->section == INSIDE) return hold(c, text + p.from, bytes - p.from);
    return rest_give(c, text + p.from, bytes - p.from, c->section == BEFORE);
}

int kp_raw_read(const struct kp_texts *texts, const struct kp_raw_calls *calls, void *context, char *why,
                size_t why_bytes)
{
    struct cutting c = {.calls = calls, .context = context};
    why[0] = 0;
    const int rc = texts->each(texts->from, piece_take, &c, why, why_bytes);
    if (rc == -EINVAL && !why[0]) snprintf(why, why_bytes, "an event of more than 64 MB");
    else if (rc && !why[0]) snprintf(why, why_bytes, "%s", strerror(-rc));
    free(c.held);
    return rc;
}

/* ---- strings ---- */

static size_t utf8_put(char *out, unsigned code)
{
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3f)), 2;
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Reads four hexadecimal digits. UINT32_MAX: they are none. */
static unsigned hex_read(const char *at, const char *end)
{
    unsigned code = 0;
    if (end - at < 4) return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return UINT32_MAX;
        code = code << 4 | (unsigned)digit;
    }
    return code;
}

/* Reads what follows \u, the second half of a pair as well. Half a pair is U+FFFD. */
static const char *unicode_read(const char *at, const char *end, unsigned *code)
{
    *code = hex_read(at, end);
    if (*code == UINT32_MAX) return *code = 0xfffd, at;
    at += 4;
    if (*code < 0xd800 || *code > 0xdfff) return at;
    if (*code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        const unsigned low = hex_read(at + 2, end);
        if (low >= 0xdc00 && low <= 0xdfff) return *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00), at + 6;
    }
    return *code = 0xfffd, at;
}

size_t kp_raw_string(char *out, size_t room, struct kp_raw_text value)
{
    static const char letters[] = "bfnrt", means[] = "\b\f\n\r\t";
    size_t bytes = 0;
    if (kp_raw_is_string(value)) value = (struct kp_raw_text){value.at + 1, value.bytes - 2};
    const char *at = value.at, *end = value.bytes ? value.at + value.bytes : value.at; /* missing: NULL */
    while (at < end && bytes + 4 < room) {
        if (*at != '\\' || at + 1 == end) {
            out[bytes++] = *at++;
            continue;
        }
        const char *known = strchr(letters, at[1]);
        unsigned code = (unsigned char)at[1];
        if (known && at[1]) code = (unsigned char)means[known - letters];
        at += 2;
        if (code == 'u' && at[-1] == 'u') at = unicode_read(at, end, &code);
        bytes += utf8_put(out + bytes, code);
    }
    out[bytes] = 0;
    return bytes;
}
