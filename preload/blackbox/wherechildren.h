// SPDX-License-Identifier: Apache-2.0
/* wherechildren.h - what the child processes of this one do, and which were killed */
#pragma once

#include <stdint.h>

struct kp_json;
struct kp_task;
/* Adds the child processes that a thread has made. */
void kp_wherechildren_note(uint32_t tid);
/* Puts ,"children":[...],"lost":[...] and forgets them. */
void kp_wherechildren_put(struct kp_json *j);
void kp_wherechildren_call_put(struct kp_json *j, const struct kp_task *task); /* ,"call":"read","words":"reads" */
