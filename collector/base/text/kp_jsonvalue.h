// SPDX-License-Identifier: Apache-2.0
/*
 * kp_jsonvalue.h - walks over the members and elements of a JSON text that was checked
 *
 * Text that was not checked gives wrong values or none, and is never read beyond its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kp_jsonvalue { /* as it is written, a string with its quotes */
    const char *at;   /* NULL: there is none */
    size_t bytes;
};
/* The next member of an object, the key without quotes. *at is NULL before the first. False: there is no more. */
bool kp_jsonvalue_next(struct kp_jsonvalue object, const char **at, struct kp_jsonvalue *key,
                       struct kp_jsonvalue *value);
/* As kp_jsonvalue_next, the elements of a list. */
bool kp_jsonvalue_element(struct kp_jsonvalue list, const char **at, struct kp_jsonvalue *value);
/* The first value at the key of an object; at NULL if there is none. Not in objects inside of it. */
struct kp_jsonvalue kp_jsonvalue_member(struct kp_jsonvalue object, const char *key);
/* Writes a string without quotes and escapes, at most `room` bytes with the NUL. Returns its bytes without the NUL.
 * The last three bytes of the room may stay unused. */
size_t kp_jsonvalue_text(char *out, size_t room, struct kp_jsonvalue value);
bool kp_jsonvalue_is_key(struct kp_jsonvalue key, const char *name);
static inline bool kp_jsonvalue_is_string(struct kp_jsonvalue value) { return value.bytes > 1 && value.at[0] == '"'; }
