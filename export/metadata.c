// SPDX-License-Identifier: Apache-2.0
/*
 * metadata.c - the user's own members at the top of a trace
 *
 * From KPROF_METADATA (a JSON object) and from kprof_metadata() (lines "meta.KEY=VALUE" of the spool). Both were checked
 * when they were set and are checked again here: a spool may come from anywhere. A member that carries the name of one of ours is left out.
 */
#include <string.h>

#include "collector/base/kp_jsoncheck.h"
#include "export/trace.h"
#include "collector/base/kp_poison.h"

/* The key as plain text, as far as names of ours go: an escape of ASCII is resolved, every other one becomes '?'. */
static size_t key_plain(const char *key, size_t bytes, char *out, size_t room)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < bytes && n < room; n++) {
        unsigned value = 0;
        if (key[i] != '\\') {
            out[n] = key[i++];
            continue;
        }
        if (key[i + 1] == 'u') {
            for (int k = 0; k < 4; k++) {
                const char *digit = strchr(digits, key[i + 2 + k]);
                value = value << 4 | (digit ? (unsigned)(digit - digits) & 15 : 0);
            }
        }
        out[n] = value && value < 128 ? (char)value : '?';
        i += key[i + 1] == 'u' ? 6 : 2;
    }
    return n;
}

static bool is_ours(const char *written, size_t written_bytes)
{
    char key[64];
    size_t bytes = key_plain(written, written_bytes, key, sizeof key);
    static const char *const ours[] = {"schemaVersion", "deviceProperties", "trace_id", "host_name", "displayTimeUnit",
                                       "baseTimeNanoseconds", "traceEvents", "traceName", "distributedInfo", "record_shapes",
                                       "profile_memory", "with_stack", "with_modules", "with_flops", "kprof"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strlen(ours[i]) == bytes && !memcmp(ours[i], key, bytes)) return true;
    return false;
}

static void member_write(struct kp_trace *t, const char *key, size_t key_bytes, const char *value, size_t value_bytes)
{
    if (is_ours(key, key_bytes)) return;
    kp_json_lit(&t->json, "  \"");
    if (memchr(key, '\\', key_bytes)) kp_json_raw(&t->json, key, key_bytes); /* from checked JSON */
    else kp_json_text(&t->json, key, key_bytes); /* stays as it is unless a byte is none of JSON's */
    kp_json_lit(&t->json, "\": ");
    kp_json_raw(&t->json, value, value_bytes);
    kp_json_lit(&t->json, ",\n");
}

static const char *blank_skip(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

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

static bool is_set_later(const struct kp_reader *r, const char *key, size_t bytes)
{
    char line[160];
    if (bytes >= 128) return false;
    memcpy(line, "meta.", 5);
    memcpy(line + 5, key, bytes);
    line[5 + bytes] = 0;
    return kp_reader_text(r, line) != NULL;
}

static void object_write(struct kp_trace *t, const char *text)
{
    size_t offset;
    const char *why, *at;
    if (kp_jsoncheck_object(text, strlen(text), &offset, &why)) return;
    at = blank_skip(blank_skip(text) + 1);
    while (*at == '"') {
        const char *key = at + 1, *key_end = string_skip(at) - 1, *value, *value_end;
        value = blank_skip(blank_skip(key_end + 1) + 1);
        value_end = value_skip(value);
        if (!is_set_later(t->reader, key, (size_t)(key_end - key)))
            member_write(t, key, (size_t)(key_end - key), value, (size_t)(value_end - value));
        at = blank_skip(value_end);
        if (*at == ',') at = blank_skip(at + 1);
    }
}

void kp_metadata_write(struct kp_trace *t)
{
    const char *text = t->options->metadata ? t->options->metadata : kp_reader_text(t->reader, "KPROF_METADATA");
    const char *line = NULL;
    if (text) object_write(t, text);
    while ((line = kp_reader_line(t->reader, line))) {
        const char *value = strchr(line, '='), *why;
        char key[160];
        size_t offset;
        if (strncmp(line, "meta.", 5) != 0 || !value || value - line >= (long)sizeof key) continue;
        memcpy(key, line, (size_t)(value - line));
        key[value++ - line] = 0;
        if (kp_reader_text(t->reader, key) != value) continue; /* said again later */
        if (strpbrk(key, "\"\\") || kp_jsoncheck_value(value, strlen(value), &offset, &why)) continue;
        member_write(t, key + 5, strlen(key + 5), value, strlen(value));
    }
}
