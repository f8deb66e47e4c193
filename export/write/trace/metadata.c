// SPDX-License-Identifier: Apache-2.0
/*
 * metadata.c - the user's own members at the top of a trace
 *
 * From KPROF_METADATA (a JSON object) and from kprof_metadata() (lines "meta.KEY=VALUE" of the spool). Both were
 * checked when they were set, and are checked again here, since a spool may come from anywhere. A member with the name
 * of a top-level key of the trace is left out. A text as trace_id stands in place of the trace's own.
 */
#include <string.h>

#include "collector/base/kp_jsonread.h"
#include "collector/base/kp_utf8.h"
#include "export/write/trace/parts.h"
#include "collector/base/kp_poison.h"

enum { KEY_BYTES = 256 };

static unsigned hex_read(const char *at)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    unsigned value = 0;
    for (int k = 0; k < 4; k++) {
        const char *digit = strchr(digits, at[k]);
        value = value << 4 | (digit ? (unsigned)(digit - digits) & 15 : 0);
    }
    return value;
}

/* Reads a character of a checked JSON string, and resolves an escape. */
static size_t letter_read(const char **at, char *out)
{
    static const char plain[] = "b\bf\fn\nr\rt\t";
    const char *from = *at;
    if (*from != '\\') {
        *out = *from;
        *at += 1;
        return 1;
    }
    if (from[1] != 'u') {
        const char *known = strchr(plain, from[1]);
        *out = known ? known[1] : from[1];
        *at += 2;
        return 1;
    }
    unsigned value = hex_read(from + 2);
    *at += 6;
    if (value >> 10 == 0x36 && from[6] == '\\' && from[7] == 'u' && hex_read(from + 8) >> 10 == 0x37) { /* a pair */
        value = 0x10000 + ((value & 0x3ff) << 10 | (hex_read(from + 8) & 0x3ff));
        *at += 6;
    }
    return kp_utf8_put(out, value);
}

/* Writes the key as plain text, cut to the room. Returns its length. */
static size_t key_plain(const char *key, size_t bytes, char out[KEY_BYTES])
{
    size_t n = 0;
    for (const char *end = key + bytes; key < end && n + 4 < KEY_BYTES;) n += letter_read(&key, out + n);
    return n;
}

static bool is_ours(const char *written, size_t written_bytes)
{
    char key[KEY_BYTES];
    size_t bytes = key_plain(written, written_bytes, key);
    static const char *const ours[] = {"schemaVersion",       "deviceProperties",    "trace_id",
                                       "host_name",           "displayTimeUnit",     "baseTimeNanoseconds",
                                       "traceEvents",         "traceName",           "distributedInfo",
                                       "record_shapes",       "profile_memory",      "with_stack",
                                       "with_modules",        "with_flops",          "kprof",
                                       "kprof_gpu",           "cupti_version",       "cuda_runtime_version",
                                       "cuda_driver_version", "kprof_memory_before", "kprof_memory_freed",
                                       "kprof_memory_unkept"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strlen(ours[i]) == bytes && !memcmp(ours[i], key, bytes)) return true;
    return false;
}

static void member_write(struct kp_trace *t, const char *key, size_t key_bytes, const char *value, size_t value_bytes)
{
    if (is_ours(key, key_bytes)) return;
    kp_json_lit(&t->json, "  \"");
    if (memchr(key, '\\', key_bytes)) kp_json_raw(&t->json, key, key_bytes); /* from checked JSON */
    else kp_json_text(&t->json, key, key_bytes); /* unchanged unless JSON forbids a byte of it */
    kp_json_lit(&t->json, "\": ");
    kp_json_raw(&t->json, value, value_bytes);
    kp_json_lit(&t->json, ",\n");
}

static const char *blank_skip(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *string_skip(const char *at) /* stands on the opening quote */
{
    for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
    return at + 1;
}

/* The text is known to be valid JSON: brackets balance, strings end. */
static const char *value_skip(const char *at)
{
    int depth = 0;
    for (;;) {
        if (*at == '"') {
            at = string_skip(at);
        } else {
            if (*at == '{' || *at == '[') depth++;
            else if (*at == '}' || *at == ']') depth--;
            at++;
        }
        if (depth > 0) continue;
        if (strchr(",}] \t\r\n", *at)) return at; /* also at the closing NUL */
    }
}

struct member {
    const char *key, *value;
    size_t key_bytes, value_bytes;
};

/* Takes the member with its opening quote at *at, and moves *at to the next opening quote. False: no more. */
static bool member_take(const char **at, struct member *m)
{
    if (**at != '"') return false;
    const char *key_end = string_skip(*at) - 1, *value_end;
    m->key = *at + 1;
    m->key_bytes = (size_t)(key_end - m->key);
    m->value = blank_skip(blank_skip(key_end + 1) + 1);
    value_end = value_skip(m->value);
    m->value_bytes = (size_t)(value_end - m->value);
    *at = blank_skip(value_end);
    if (**at == ',') *at = blank_skip(*at + 1);
    return true;
}

/* As in add_metadata, the last value of a key counts, from here or from kprof_metadata(). */
static bool is_set_later(const struct kp_reader *r, const struct member *m, const char *behind)
{
    char key[KEY_BYTES], other[KEY_BYTES], line[KEY_BYTES + 8];
    const size_t bytes = key_plain(m->key, m->key_bytes, key);
    struct member later;
    while (member_take(&behind, &later))
        if (key_plain(later.key, later.key_bytes, other) == bytes && !memcmp(other, key, bytes)) return true;
    memcpy(line, "meta.", 5);
    memcpy(line + 5, key, bytes);
    line[5 + bytes] = 0;
    return kp_reader_text(r, line) != NULL;
}

static void object_write(struct kp_trace *t, const char *text)
{
    size_t offset;
    const char *why, *at;
    struct member m;
    if (kp_jsonread_check_object(text, strlen(text), &offset, &why)) return;
    at = blank_skip(blank_skip(text) + 1);
    while (member_take(&at, &m))
        if (!is_set_later(t->reader, &m, at)) member_write(t, m.key, m.key_bytes, m.value, m.value_bytes);
}

static const char *setting_text(const struct kp_trace *t)
{
    return t->options->metadata ? t->options->metadata : kp_reader_text(t->reader, "KPROF_METADATA");
}

const char *kp_metadata_trace_id(const struct kp_trace *t, size_t *bytes)
{
    const char *set = kp_reader_text(t->reader, "meta.trace_id"), *text = setting_text(t), *why;
    struct member m = {.value = NULL};
    size_t offset;
    if (set && *set == '"' && !kp_jsonread_check(set, strlen(set), &offset, &why)) {
        *bytes = strlen(set);
        return set;
    }
    if (!text || kp_jsonread_check_object(text, strlen(text), &offset, &why)) return NULL;
    const char *at = blank_skip(blank_skip(text) + 1), *found = NULL;
    while (member_take(&at, &m)) {
        if (m.key_bytes != 8 || memcmp(m.key, "trace_id", 8) != 0 || *m.value != '"') continue;
        found = m.value;
        *bytes = m.value_bytes;
    }
    return found;
}

void kp_metadata_write(struct kp_trace *t)
{
    const char *text = setting_text(t);
    const char *line = NULL;
    if (text) object_write(t, text);
    while ((line = kp_reader_line(t->reader, line))) {
        const char *value = strchr(line, '='), *why;
        char key[160];
        size_t offset;
        if (strncmp(line, "meta.", 5) != 0 || !value || value - line >= (long)sizeof key) continue;
        memcpy(key, line, (size_t)(value - line));
        key[value++ - line] = 0;
        if (kp_reader_text(t->reader, key) != value) continue; /* a later line replaces it */
        if (strpbrk(key, "\"\\") || kp_jsonread_check(value, strlen(value), &offset, &why)) continue;
        member_write(t, key + 5, strlen(key + 5), value, strlen(value));
    }
}
