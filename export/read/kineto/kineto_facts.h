// SPDX-License-Identifier: Apache-2.0
/* kineto_facts.h - what the head of a trace's file says, beside its events */
#pragma once

#include "export/read/kineto/kineto.h"

struct kp_fact_path {
    char text[160];
    size_t ends[4]; /* where each level's name ends */
    unsigned depth; /* of the object whose member is read; 0: the file's own */
};
void kp_fact_key(struct kp_fact_path *path, const char *name, size_t bytes);
bool kp_fact_open(struct kp_fact_path *path); /* false: too deep, to be skipped */
void kp_fact_add(struct kp_kineto *trace, const struct kp_fact_path *path, const char *text, size_t bytes);
void kp_fact_put(struct kp_kineto *trace, const char *path, const char *text); /* as the head would say it */
const char *kp_kineto_fact(const struct kp_kineto *trace, const char *path);   /* its text, or NULL */
long kp_kineto_number(const struct kp_kineto *trace, const char *path);        /* 0: not in the file */
#define KP_FACT_CORE_STEPS "kprof.core_steps"                     /* one a window that was put behind another */
const char *kp_kineto_gpu_ended(const struct kp_kineto *trace);   /* why GPU work was not recorded any more, or NULL */
const char *kp_kineto_missed_call(const struct kp_kineto *trace); /* "call:X never came, ..", or NULL; also of op: */
bool kp_kineto_steps_are_calls(const struct kp_kineto *trace);    /* of a function, or of a model */
