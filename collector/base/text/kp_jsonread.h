// SPDX-License-Identifier: Apache-2.0
/*
 * kp_jsonread.h - reads JSON, whole or in pieces of any size, and calls back for each value
 *
 * Strict RFC 8259, but for the bytes of strings, which may be any unless `is_utf8`. The reader loops and does not
 * recurse. It holds the value that a piece of a text cuts, and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A callback returns 0 to stop the reading. Texts end without a NUL, and numbers come as text. */
struct kp_json_calls {
    int (*null)(void *context);
    int (*boolean)(void *context, int value);
    int (*number)(void *context, const char *text, size_t bytes);
    int (*string)(void *context, const unsigned char *text, size_t bytes);
    int (*map_start)(void *context);
    int (*map_key)(void *context, const unsigned char *text, size_t bytes);
    int (*map_end)(void *context);
    int (*array_start)(void *context);
    int (*array_end)(void *context);
};

enum { KP_JSON_FEW = 512, KP_JSON_DIGITS = 19 };
struct kp_json_buffer {
    char *data;
    size_t used, room;
};
struct kp_jsonread {
    const struct kp_json_calls *calls; /* NULL: the text is checked alone */
    void *context;
    /* realloc() that never fails, and free() for 0 bytes. NULL: the text is whole, at most KP_JSON_FEW levels */
    void *(*grow)(void *memory, size_t bytes);
    bool is_utf8, is_whole; /* is_whole: no text follows */
    /* The reader's own: */
    uint8_t state;
    bool has_escapes;                        /* in the string that is read */
    int8_t decimals;                         /* digits behind its point; -1: `digits` are not those of the value */
    uint64_t digits;                         /* during a call: of the number, without sign and point */
    const char *why;                         /* NULL, or why the text is not JSON */
    const char *at;                          /* during a call: behind the value; then where the reading stopped */
    const char *from, *end;                  /* the text that is read, or NULL */
    size_t depth, most;                      /* levels that `levels` has room for */
    size_t tried;                            /* bytes of `held` that were read, and are a part of a value */
    uint64_t fed, before;                    /* bytes so far; those before `from` */
    uint64_t inner;                          /* a bit a level, the innermost is the lowest: an object */
    uint64_t few[KP_JSON_FEW / 64], *levels; /* the same of each 64 levels around those */
    struct kp_json_buffer held, plain;       /* the pending text; a string without its escapes */
};
/* The caller has set the first members, and the others are 0. */
void kp_jsonread_open(struct kp_jsonread *r);
void kp_jsonread_close(struct kp_jsonread *r);
/* Begins as if this stood before the text: the reader is inside of a list, behind a value. */
void kp_jsonread_enter_list(struct kp_jsonread *r);
/* Reads the next piece. False: it is not JSON, or a call stopped the reading. */
bool kp_jsonread_feed(struct kp_jsonread *r, const char *text, size_t bytes);
/* The text ends. False: too early. */
bool kp_jsonread_end(struct kp_jsonread *r);
/* Bytes of the whole text before the place where the reader is. */
uint64_t kp_jsonread_offset(const struct kp_jsonread *r);
/* Bytes fed behind the last value or sign that was read: of blanks, or of a value that is cut. */
static inline size_t kp_jsonread_pending(const struct kp_jsonread *r) { return r->held.used; }
/* Counts bytes that another reader read. */
static inline void kp_jsonread_pass(struct kp_jsonread *r, size_t bytes) { r->fed += bytes; }
/* Writes a string's inside without escapes, at least three bytes less than `room`. Text that was checked becomes no
 * longer. Half a pair is U+FFFD. Returns how many bytes. */
size_t kp_jsonread_plain(char *out, size_t room, const char *text, size_t bytes);

/* 0, or -EINVAL with the offset of the first wrong byte and a short phrase: text[0..bytes) is one value, in UTF-8. */
int kp_jsonread_check(const char *text, size_t bytes, size_t *offset, const char **why);
/* As kp_jsonread_check, and the value must be an object. */
int kp_jsonread_check_object(const char *text, size_t bytes, size_t *offset, const char **why);
