// SPDX-License-Identifier: Apache-2.0
/* rawevents.c - finds the list of events in a text that comes in pieces, and each event in it */
#include "export/answers/convert/convert.h"

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

static void fields_find(struct kp_raw_event *e)
{
    static const char *const names[KP_RAW_KEYS] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"};
    struct kp_jsonvalue key, value;
    const char *at = NULL;
    while (kp_jsonvalue_next(e->whole, &at, &key, &value))
        for (int i = 0; i < KP_RAW_KEYS; i++)
            if (kp_jsonvalue_is_key(key, names[i])) e->of[i] = value;
}

static int64_t time_of(struct kp_jsonvalue value)
{
    if (kp_jsonvalue_is_string(value)) value = (struct kp_jsonvalue){value.at + 1, value.bytes - 2};
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
