// SPDX-License-Identifier: Apache-2.0
/* kineto_raw.h - the args of events as they are in the file, for `kprof events --json` and work of devices */
#pragma once

#include "export/read/kineto/kineto.h"

struct kp_kineto_raw {
    struct kp_kineto *trace; /* whose args_text grows */
    bool comma;              /* one comes before the next value */
};
/* Each adds what the reader of JSON has called, as JSON on a line. */
void kp_kineto_raw_value(struct kp_kineto_raw *raw, const char *text, size_t bytes);
void kp_kineto_raw_string(struct kp_kineto_raw *raw, const unsigned char *text, size_t bytes);
void kp_kineto_raw_key(struct kp_kineto_raw *raw, const unsigned char *text, size_t bytes);
void kp_kineto_raw_open(struct kp_kineto_raw *raw, char bracket);
void kp_kineto_raw_close(struct kp_kineto_raw *raw, char bracket);
