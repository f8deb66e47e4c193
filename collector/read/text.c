// SPDX-License-Identifier: Apache-2.0
/*
 * text.c - the "key=value" lines of a spool: the header's lines, and the notes after them
 *
 * Called by: reader.c
 * Memory:    mapped blocks: the lines, and 16 bytes for each
 * On fail:   -ENOMEM
 *
 * A note replaces every earlier line of its key, so a program that notes its step leaves one line. Notes are
 * first appended. Once they doubled the text, the lines are sorted by key, and replaced lines are removed. So the
 * work grows as that sort does.
 */
#include "collector/read/reader.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

enum { UNSETTLED_LEAST = 65536 };

static int add(struct kp_text *t, const uint8_t *lines, uint32_t n)
{
    if (!t->bytes || t->used + n + 1 > t->cap) {
        size_t cap = (t->used + n) * 2 + UNSETTLED_LEAST;
        char *bytes = t->bytes ? kp_map_grow(t->bytes, t->cap, cap) : kp_map_alloc(cap);
        if (!bytes) return -ENOMEM;
        if (!t->bytes) t->used = 1;
        t->bytes = bytes, t->cap = cap;
    }
    if (t->used > 1 && t->bytes[t->used - 2]) t->used++; /* keep the last line apart: it had no newline */
    char *to = t->bytes + t->used - 1;
    memcpy(to, lines, n);
    to[n] = 0;
    for (uint32_t i = 0; i < n; i++)
        if (to[i] == '\n') to[i] = 0;
    t->used += n;
    return 0;
}

int kp_text_header(struct kp_text *t, const uint8_t *lines, uint32_t n)
{
    int rc = add(t, lines, n);
    t->header = t->settled = t->used;
    return rc;
}

int kp_text_note(struct kp_text *t, const uint8_t *lines, uint32_t n)
{
    if (!memchr(lines, '=', n)) return 0; /* not a line */
    int rc = t->used > 2 * t->settled + UNSETTLED_LEAST ? kp_text_settle(t) : 0;
    return rc ? rc : add(t, lines, n);
}

const char *kp_text_next(const struct kp_text *t, const char *previous)
{
    const char *line = previous ? previous + strlen(previous) + 1 : t->bytes, *end = t->bytes + t->used;
    while (line < end && !*line) line++;
    return line < end ? line : NULL;
}

/* --- by key --- */

/* Compares the keys alone, as strcmp does. */
static int key_compare(const struct kp_text *t, const struct kp_text_line *a, const char *key, size_t bytes)
{
    const size_t both = a->key_bytes < bytes ? a->key_bytes : bytes;
    const int differ = memcmp(t->bytes + a->at, key, both);
    return differ ? differ : (a->key_bytes > bytes) - (a->key_bytes < bytes);
}

static bool is_before(const void *left, const void *right, const void *text)
{
    const struct kp_text *t = text;
    const struct kp_text_line *a = left, *b = right;
    const int keys = key_compare(t, a, t->bytes + b->at, b->key_bytes);
    return keys ? keys < 0 : a->at < b->at;
}

static int index_make(struct kp_text *t)
{
    t->n = 0;
    for (const char *line = NULL; (line = kp_text_next(t, line));) {
        const char *equals = strchr(line, '=');
        if (!equals) continue;
        if (!kp_map_room(&t->lines, t->n, &t->lines_cap, sizeof *t->lines, 512)) return -ENOMEM;
        t->lines[t->n++] =
            (struct kp_text_line){.at = (uint64_t)(line - t->bytes), .key_bytes = (uint32_t)(equals - line)};
    }
    kp_sort(t->lines, sizeof *t->lines, t->n, is_before, t);
    return 0;
}

static bool is_same_key(const struct kp_text *t, const struct kp_text_line *a, const struct kp_text_line *b)
{
    return key_compare(t, a, t->bytes + b->at, b->key_bytes) == 0;
}

/* Blanks each line that a later line of its key replaces. False: there was none. */
static bool blank(struct kp_text *t)
{
    bool any = false;
    for (uint32_t i = t->n, last = t->n; i-- > 0;) {
        struct kp_text_line *line = &t->lines[i];
        if (last == t->n || !is_same_key(t, line, &t->lines[last])) {
            last = i;
        } else if (t->lines[last].at >= t->header - 1) {
            memset(t->bytes + line->at, 0, strlen(t->bytes + line->at));
            any = true;
        }
    }
    return any;
}

/* Removes blank lines. */
static void close_up(struct kp_text *t)
{
    size_t used = 0, header = 1;
    for (const char *line = NULL, *next = kp_text_next(t, NULL); (line = next);) {
        const size_t bytes = strlen(line) + 1;
        const bool is_header = (size_t)(line - t->bytes) < t->header - 1;
        next = kp_text_next(t, line);
        memmove(t->bytes + used, line, bytes);
        used += bytes;
        if (is_header) header = used + 1;
    }
    t->bytes[used] = 0;
    t->used = used + 1;
    t->header = header;
}

int kp_text_settle(struct kp_text *t)
{
    int rc = t->bytes ? index_make(t) : 0;
    if (!rc && t->bytes && blank(t)) {
        close_up(t);
        rc = index_make(t);
    }
    t->settled = t->used;
    return rc;
}

struct key {
    const struct kp_text *text;
    const char *key;
    size_t bytes;
};

static bool is_up_to(const void *item, const void *key)
{
    const struct key *k = key;
    return key_compare(k->text, item, k->key, k->bytes) <= 0;
}

const char *kp_text_get(const struct kp_text *t, const char *key)
{
    const struct key k = {t, key, strlen(key)};
    const size_t behind = kp_search(t->lines, sizeof *t->lines, t->n, is_up_to, &k); /* the last line of the key */
    if (!behind || key_compare(t, &t->lines[behind - 1], key, k.bytes) != 0) return NULL;
    return t->bytes + t->lines[behind - 1].at + k.bytes + 1;
}

void kp_text_fini(struct kp_text *t)
{
    if (t->bytes) kp_map_free(t->bytes, t->cap);
    if (t->lines) kp_map_free(t->lines, t->lines_cap * sizeof *t->lines);
    *t = (struct kp_text){0};
}
