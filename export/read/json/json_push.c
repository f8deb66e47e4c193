// SPDX-License-Identifier: Apache-2.0
/* json_push.c - a reader of JSON in pieces, by libyajl */
#include "export/read/json/json_push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

struct kp_json_push {
    yajl_handle yajl;
    yajl_callbacks calls;
    void *(*grow)(void *memory, size_t bytes);
};

/* libyajl does not check for NULL; `grow` never returns it. */
static void *memory_take(void *p, size_t bytes) { return ((struct kp_json_push *)p)->grow(NULL, bytes); }

static void *memory_grow(void *p, void *memory, size_t bytes)
{
    return ((struct kp_json_push *)p)->grow(memory, bytes);
}

static void memory_give(void *p, void *memory)
{
    (void)p;
    free(memory);
}

struct kp_json_push *kp_json_push_open(const struct kp_json_calls *calls, void *context,
                                       void *(*grow)(void *memory, size_t bytes))
{
    struct kp_json_push *p = grow(NULL, sizeof *p);
    yajl_alloc_funcs memory = {memory_take, memory_grow, memory_give, p}; /* libyajl copies it */
    *p = (struct kp_json_push){.grow = grow,
                               .calls = {.yajl_null = calls->null,
                                         .yajl_boolean = calls->boolean,
                                         .yajl_number = calls->number,
                                         .yajl_string = calls->string,
                                         .yajl_start_map = calls->map_start,
                                         .yajl_map_key = calls->map_key,
                                         .yajl_end_map = calls->map_end,
                                         .yajl_start_array = calls->array_start,
                                         .yajl_end_array = calls->array_end}};
    p->yajl = yajl_alloc(&p->calls, &memory, context);
    yajl_config(p->yajl, yajl_dont_validate_strings, 1); /* names may be any bytes */
    return p;
}

void kp_json_push_close(struct kp_json_push *p)
{
    yajl_free(p->yajl);
    free(p);
}

bool kp_json_push_feed(struct kp_json_push *p, const char *text, size_t bytes)
{
    return yajl_parse(p->yajl, (const unsigned char *)text, bytes) == yajl_status_ok;
}

bool kp_json_push_end(struct kp_json_push *p) { return yajl_complete_parse(p->yajl) == yajl_status_ok; }

size_t kp_json_push_consumed(const struct kp_json_push *p) { return yajl_get_bytes_consumed(p->yajl); }

void kp_json_push_why(struct kp_json_push *p, char *out, size_t bytes)
{
    unsigned char *message = yajl_get_error(p->yajl, 0, NULL, 0);
    snprintf(out, bytes, "%s", message ? (char *)message : "unreadable");
    out[strcspn(out, "\n")] = 0;
    yajl_free_error(p->yajl, message);
}
