// SPDX-License-Identifier: Apache-2.0
/* where.h - where every thread of this process stands, as one line of JSON */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_where_text { /* all zero: empty */
    char *at;
    size_t used, room;
};
/* Writes an object and a newline. On a helper thread. 0 or -errno. */
int kp_where_write(struct kp_where_text *out, const char *event);
/* The place of the main thread then: "train.py:41 batches", or its system call. Until the next call. */
const char *kp_where_main(void);
void kp_where_drop(struct kp_where_text *text); /* frees it */

struct kp_json;
/* The members of an object that say which process it is, and when: all that comes before its own. */
void kp_where_process(struct kp_json *j, const char *event);
enum { KP_WHERE_PATH = 4400 };
void kp_where_path(char path[KP_WHERE_PATH], const char *what);        /* DIR/what-TIME-HOST_PID.json */
int kp_where_keep(const struct kp_where_text *text, const char *path); /* as a whole file: 0 or -errno */

/* ---- wherechildren.c: what the child processes of this one do, and which were killed ---- */

struct kp_task;
struct kp_pywhere_stack;
/* Adds the child processes that a thread has made. */
void kp_wherechildren_note(uint32_t tid);
/* Puts ,"children":[...],"lost":[...] and forgets them. `room` is used. */
void kp_wherechildren_put(struct kp_json *j, struct kp_pywhere_stack *room);
void kp_wherechildren_call_put(struct kp_json *j, const struct kp_task *task); /* ,"call":"read","words":"reads" */
void kp_wherechildren_frames_put(struct kp_json *j, const struct kp_pywhere_stack *stack); /* ,"python":[...] */
