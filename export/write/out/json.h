// SPDX-License-Identifier: Apache-2.0
/*
 * json.h - writes JSON text into a buffer, which hands full pieces to a flush function
 *
 * The caller keeps the grammar (commas, braces); this keeps the strings legal and the numbers exact. The first error of
 * the flush function stays in `error` (-errno), and all later text is dropped. The caller checks once, at the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KP_JSON_BUFFER (256u * 1024u)

typedef int (*kp_json_flush_fn)(void *context, const void *data, size_t bytes); /* 0 or -errno */

struct kp_json {
    char *buf;
    size_t used;
    int error;
    kp_json_flush_fn flush;
    void *context;
};

int kp_json_init(struct kp_json *j, kp_json_flush_fn flush, void *context); /* 0 or -ENOMEM */
void kp_json_fini(struct kp_json *j);
int kp_json_flush(struct kp_json *j); /* hands on all text; 0 or the first error */

void kp_json_raw(struct kp_json *j, const char *text, size_t bytes); /* as it is */
#define kp_json_lit(j, literal) kp_json_raw((j), (literal), sizeof(literal) - 1)
void kp_json_char(struct kp_json *j, char c);
void kp_json_u64(struct kp_json *j, uint64_t v);
void kp_json_i64(struct kp_json *j, int64_t v);
void kp_json_us(struct kp_json *j, uint64_t ns);                        /* 1234567 ns: 1234.567 */
void kp_json_text(struct kp_json *j, const char *text, size_t bytes);   /* the inside of a string, escaped */
void kp_json_string(struct kp_json *j, const char *text, size_t bytes); /* "text", escaped */
void kp_json_cstring(struct kp_json *j, const char *text);
/*
 * Writes a text of less than 4 KB with values in it: %s the inside of a string, escaped; %.*s likewise, of so many
 * bytes; %u %d %lu %ld %c as in printf; %ju a time in ns, as kp_json_us writes it.
 */
void kp_json_fmt(struct kp_json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
