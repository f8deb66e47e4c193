// SPDX-License-Identifier: Apache-2.0
/*
 * jsonout.h - writes JSON to a stream: it keeps the commas and the brackets, and makes texts and numbers legal
 *
 * A key of NULL stands for an item of an array, or for the outermost value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum kp_unit {                  /* of a number, in text and in JSON */
               KP_UNIT_COUNT,   /* "12" */
               KP_UNIT_MS,      /* value: ns; "1.234" */
               KP_UNIT_MS_FIT,  /* value: ns; fewer digits behind the point where the largest has many before it */
               KP_UNIT_US,      /* value: ns; "1.2" */
               KP_UNIT_MIB,     /* value: bytes; "1.50" */
               KP_UNIT_PERCENT, /* value: from 0 to 1; "12.3" */
               KP_UNIT_SHARE,   /* value: from 0 to 1; "12.3 %", in JSON as it is */
               KP_UNIT_TIMES,   /* "1.23" */
               KP_UNIT_BYTES,   /* "1.50 KiB" */
               KP_UNIT_TRUE     /* value: 0 or 1; of JSON alone */
};
struct kp_jsonout {
    FILE *out;
    uint64_t filled; /* a bit for each level, the innermost lowest: it has an item */
    bool is_line;    /* the next item begins a line */
};
#define KP_JSONOUT(stream) (&(struct kp_jsonout){.out = stream})

void kp_jsonout_key(struct kp_jsonout *j, const char *key); /* the caller writes the value itself */
void kp_jsonout_open(struct kp_jsonout *j, const char *key, char bracket);
void kp_jsonout_close(struct kp_jsonout *j, char bracket);
void kp_jsonout_line(struct kp_jsonout *j); /* the next item begins a line */
void kp_jsonout_null(struct kp_jsonout *j, const char *key);
void kp_jsonout_text(struct kp_jsonout *j, const char *key, const char *text); /* NULL: null */
void kp_jsonout_some(struct kp_jsonout *j, const char *key, const char *text); /* NULL: nothing */
void kp_jsonout_bool(struct kp_jsonout *j, const char *key, bool value);
void kp_jsonout_whole(struct kp_jsonout *j, const char *key, int64_t value);
void kp_jsonout_number(struct kp_jsonout *j, const char *key, double value, int decimals); /* NAN: null */
void kp_jsonout_real(struct kp_jsonout *j, const char *key, double value);                 /* of six digits */
void kp_jsonout_id(struct kp_jsonout *j, const char *key, int64_t id); /* as a text: JavaScript would round it */
void kp_jsonout_items(struct kp_jsonout *j, const int64_t *of, size_t count);
void kp_jsonout_wholes(struct kp_jsonout *j, const char *key, const int64_t *of, size_t count); /* an array of them */
#define KP_JSONOUT_NUMBERS(...) (const int64_t[]){__VA_ARGS__}, sizeof(const int64_t[]){__VA_ARGS__} / sizeof(int64_t)
/* Writes a value of a column's unit as JSON has it: times in ms, percents from 0 to 100. NAN: null. */
void kp_jsonout_unit(struct kp_jsonout *j, const char *key, double value, enum kp_unit unit);
