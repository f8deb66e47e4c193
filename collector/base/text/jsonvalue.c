// SPDX-License-Identifier: Apache-2.0
/*
 * jsonvalue.c - walks over the members and elements of a JSON text that was checked
 *
 * Called by: the exporter, the CLI
 * Memory:    none; values are parts of the text.
 * Safe in:   signal handlers yes; after fork yes
 */
#include "collector/base/text/kp_jsonvalue.h"

#include <string.h>

#include "collector/base/text/kp_jsonread.h"

#include "collector/base/kp_poison.h"

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

/* Takes the value behind blanks at *at, and moves *at behind it. False: the text is over. */
static bool value_take(const char **at, const char *end, struct kp_jsonvalue *value)
{
    const char *const from = blank_skip(*at, end);
    *at = value_skip(from, end);
    *value = (struct kp_jsonvalue){from, (size_t)(*at - from)};
    return *at > from;
}

/* The place at which the inside goes on. NULL: this is no object or list. */
static const char *inside(struct kp_jsonvalue of, const char *at, char bracket)
{
    if (of.bytes < 2 || of.at[0] != bracket) return NULL;
    return at ? at : of.at + 1;
}

bool kp_jsonvalue_next(struct kp_jsonvalue object, const char **at, struct kp_jsonvalue *key,
                       struct kp_jsonvalue *value)
{
    const char *from = inside(object, *at, '{');
    if (!from) return false;
    const char *const end = object.at + object.bytes;
    from = blank_skip(from, end);
    if (from >= end || *from != '"') return false;
    *at = string_skip(from, end);
    if (*at - from < 2) return false;
    *key = (struct kp_jsonvalue){from + 1, (size_t)(*at - from) - 2};
    return value_take(at, end, value);
}

bool kp_jsonvalue_element(struct kp_jsonvalue list, const char **at, struct kp_jsonvalue *value)
{
    *at = inside(list, *at, '[');
    return *at && value_take(at, list.at + list.bytes, value);
}

bool kp_jsonvalue_is_key(struct kp_jsonvalue key, const char *name)
{
    return key.bytes == strlen(name) && memcmp(key.at, name, key.bytes) == 0;
}

struct kp_jsonvalue kp_jsonvalue_member(struct kp_jsonvalue object, const char *name)
{
    struct kp_jsonvalue key, value;
    const char *at = NULL;
    while (kp_jsonvalue_next(object, &at, &key, &value))
        if (kp_jsonvalue_is_key(key, name)) return value;
    return (struct kp_jsonvalue){NULL, 0};
}

size_t kp_jsonvalue_text(char *out, size_t room, struct kp_jsonvalue value)
{
    if (kp_jsonvalue_is_string(value)) value = (struct kp_jsonvalue){value.at + 1, value.bytes - 2};
    const size_t bytes = value.bytes ? kp_jsonread_plain(out, room - 1, value.at, value.bytes) : 0; /* none: NULL */
    out[bytes] = 0;
    return bytes;
}
