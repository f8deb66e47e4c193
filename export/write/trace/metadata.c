// SPDX-License-Identifier: Apache-2.0
/*
 * metadata.c - the user's own members at the top of a trace
 *
 * From KPROF_METADATA (a JSON object) and from kprof_metadata() (lines "meta.KEY=VALUE" of the spool). Both were
 * checked when they were set, and are checked again here, since a spool may come from anywhere. A member with the name
 * of a top-level key of the trace is left out. A text as trace_id stands in place of the trace's own.
 */
#include <string.h>

#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "export/write/trace/parts.h"
#include "collector/base/kp_poison.h"

enum { KEY_BYTES = 256 };

/* Writes the key as plain text, cut to the room. Returns its length. */
static size_t key_plain(struct kp_jsonvalue key, char out[KEY_BYTES])
{
    return kp_jsonread_plain(out, KEY_BYTES - 1, key.at, key.bytes);
}

static bool is_ours(struct kp_jsonvalue written)
{
    char key[KEY_BYTES];
    const size_t bytes = key_plain(written, key);
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

static void member_write(struct kp_trace *t, struct kp_jsonvalue key, struct kp_jsonvalue value)
{
    if (is_ours(key)) return;
    kp_json_lit(&t->json, "  \"");
    if (memchr(key.at, '\\', key.bytes)) kp_json_raw(&t->json, key.at, key.bytes); /* from checked JSON */
    else kp_json_text(&t->json, key.at, key.bytes); /* unchanged unless JSON forbids a byte of it */
    kp_json_lit(&t->json, "\": ");
    kp_json_raw(&t->json, value.at, value.bytes);
    kp_json_lit(&t->json, ",\n");
}

/* As in add_metadata, the last value of a key counts, from here or from kprof_metadata(). `at`: behind the member. */
static bool is_set_later(const struct kp_trace *t, struct kp_jsonvalue object, struct kp_jsonvalue key, const char *at)
{
    char text[KEY_BYTES], other[KEY_BYTES], line[KEY_BYTES + 8];
    const size_t bytes = key_plain(key, text);
    struct kp_jsonvalue later, value;
    while (kp_jsonvalue_next(object, &at, &later, &value))
        if (key_plain(later, other) == bytes && !memcmp(other, text, bytes)) return true;
    memcpy(line, "meta.", 5);
    memcpy(line + 5, text, bytes);
    line[5 + bytes] = 0;
    return kp_reader_text(t->reader, line) != NULL;
}

/* The object in a text. False: the text is no object. */
static bool object_find(const char *text, struct kp_jsonvalue *object)
{
    size_t offset;
    const char *why;
    if (!text || kp_jsonread_check_object(text, strlen(text), &offset, &why)) return false;
    text = strchr(text, '{');
    *object = (struct kp_jsonvalue){text, strlen(text)};
    return true;
}

static void object_write(struct kp_trace *t, const char *text)
{
    const char *at = NULL;
    struct kp_jsonvalue object, key, value;
    if (!object_find(text, &object)) return;
    while (kp_jsonvalue_next(object, &at, &key, &value))
        if (!is_set_later(t, object, key, at)) member_write(t, key, value);
}

static const char *setting_text(const struct kp_trace *t)
{
    return t->options->metadata ? t->options->metadata : kp_reader_text(t->reader, "KPROF_METADATA");
}

const char *kp_metadata_trace_id(const struct kp_trace *t, size_t *bytes)
{
    const char *set = kp_reader_text(t->reader, "meta.trace_id"), *why, *at = NULL, *found = NULL;
    struct kp_jsonvalue object, key, value;
    size_t offset;
    if (set && *set == '"' && !kp_jsonread_check(set, strlen(set), &offset, &why)) {
        *bytes = strlen(set);
        return set;
    }
    if (!object_find(setting_text(t), &object)) return NULL;
    while (kp_jsonvalue_next(object, &at, &key, &value)) {
        if (!kp_jsonvalue_is_key(key, "trace_id") || *value.at != '"') continue;
        found = value.at;
        *bytes = value.bytes;
    }
    return found;
}

void kp_metadata_write(struct kp_trace *t)
{
    const char *line = NULL;
    object_write(t, setting_text(t));
    while ((line = kp_reader_line(t->reader, line))) {
        const char *value = strchr(line, '='), *why;
        char key[160];
        size_t offset;
        if (strncmp(line, "meta.", 5) != 0 || !value || value - line >= (long)sizeof key) continue;
        memcpy(key, line, (size_t)(value - line));
        key[value++ - line] = 0;
        if (kp_reader_text(t->reader, key) != value) continue; /* a later line replaces it */
        if (strpbrk(key, "\"\\") || kp_jsonread_check(value, strlen(value), &offset, &why)) continue;
        member_write(t, (struct kp_jsonvalue){key + 5, strlen(key + 5)}, (struct kp_jsonvalue){value, strlen(value)});
    }
}
