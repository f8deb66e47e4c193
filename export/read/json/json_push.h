// SPDX-License-Identifier: Apache-2.0
/* json_push.h - a reader of JSON in pieces, for kineto_parse.c */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
struct kp_json_push;
/* `grow` is a realloc() that never fails; free() frees its memory. */
struct kp_json_push *kp_json_push_open(const struct kp_json_calls *calls, void *context,
                                       void *(*grow)(void *memory, size_t bytes));
void kp_json_push_close(struct kp_json_push *p);
/* Reads the next piece. Returns false if it is not JSON, see _consumed and _why. */
bool kp_json_push_feed(struct kp_json_push *p, const char *text, size_t bytes);
bool kp_json_push_end(struct kp_json_push *p);                          /* false: the text ends too early */
size_t kp_json_push_consumed(const struct kp_json_push *p);             /* bytes of the last piece */
void kp_json_push_why(struct kp_json_push *p, char *out, size_t bytes); /* writes one line; call it before any other */
