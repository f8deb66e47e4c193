// SPDX-License-Identifier: Apache-2.0
/*
 * json_push.h - JSON in pieces: what kineto_parse.c asks of a reader
 *
 * The command has libyajl behind it (export/incommand), which may meet any file. The library reads only what it has
 * just written (export/inhost), and needs no other library.
 */
#ifndef KP_JSON_PUSH_H
#define KP_JSON_PUSH_H

#include <stdbool.h>
#include <stddef.h>

/* Each returns 0 to end the reading. Texts have no NUL behind them, and numbers stay texts. */
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
/* `grow` is realloc that never fails; what it gives kp_rt_free takes back. */
struct kp_json_push *kp_json_push_open(const struct kp_json_calls *calls, void *context,
                                       void *(*grow)(void *memory, size_t bytes));
void kp_json_push_close(struct kp_json_push *p);
/* The next piece; false: it is no JSON, see _consumed and _why. */
bool kp_json_push_feed(struct kp_json_push *p, const char *text, size_t bytes);
bool kp_json_push_end(struct kp_json_push *p);                          /* false: more had to come */
size_t kp_json_push_consumed(const struct kp_json_push *p);             /* of the last piece */
void kp_json_push_why(struct kp_json_push *p, char *out, size_t bytes); /* one line; before the next call */

#endif
