// SPDX-License-Identifier: Apache-2.0
/*
 * yajl_parse.h - the part of libyajl's interface that kineto_parse.c uses, for the library: json_push.c has the code
 *
 * The command links libyajl, which may meet any file. The library reads only what it has just written, and needs no
 * other library.
 */
#ifndef KP_INHOST_YAJL_PARSE_H
#define KP_INHOST_YAJL_PARSE_H

#include <stddef.h>

/* Names of our own: the command links both. */
#define yajl_alloc kp_json_push_open
#define yajl_config kp_json_push_config
#define yajl_parse kp_json_push_feed
#define yajl_complete_parse kp_json_push_end
#define yajl_get_bytes_consumed kp_json_push_consumed
#define yajl_get_error kp_json_push_error
#define yajl_free_error kp_json_push_error_free
#define yajl_free kp_json_push_close

typedef struct kp_json_push *yajl_handle;
typedef struct { /* not asked: memory is kp_kineto_grow's in any case */
    void *(*malloc_fn)(void *context, size_t bytes);
    void *(*realloc_fn)(void *context, void *p, size_t bytes);
    void (*free_fn)(void *context, void *p);
    void *context;
} yajl_alloc_funcs;
typedef enum { yajl_status_ok, yajl_status_client_canceled, yajl_status_error } yajl_status;
enum { yajl_dont_validate_strings = 2 };
typedef struct {
    int (*yajl_null)(void *context);
    int (*yajl_boolean)(void *context, int value);
    int (*yajl_number)(void *context, const char *text, size_t bytes);
    int (*yajl_string)(void *context, const unsigned char *text, size_t bytes);
    int (*yajl_start_map)(void *context);
    int (*yajl_map_key)(void *context, const unsigned char *text, size_t bytes);
    int (*yajl_end_map)(void *context);
    int (*yajl_start_array)(void *context);
    int (*yajl_end_array)(void *context);
} yajl_callbacks;

yajl_handle yajl_alloc(const yajl_callbacks *callbacks, yajl_alloc_funcs *unused,
                       void *context); /* exits when memory is short */
int yajl_config(yajl_handle handle, int option, ...);
yajl_status yajl_parse(yajl_handle handle, const unsigned char *text, size_t bytes);
yajl_status yajl_complete_parse(yajl_handle handle);
size_t yajl_get_bytes_consumed(yajl_handle handle); /* of the last piece */
unsigned char *yajl_get_error(yajl_handle handle, int verbose, const unsigned char *text, size_t bytes);
void yajl_free_error(yajl_handle handle, unsigned char *message);
void yajl_free(yajl_handle handle);

#endif
