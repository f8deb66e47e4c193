// SPDX-License-Identifier: Apache-2.0
/* oomtext.h - what was live when an allocation failed, as the process wrote it (preload/blackbox/oomfile.c) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct kp_fields;

struct kp_oom_site {
    char file[256], function[80], category[24]; /* file "": not known; category: "activations", "gradients", .. or "" */
    char module[100];                           /* "Net.Linear", of classes; "": none, or not known */
    int64_t line, bytes, blocks, largest, grows;
    int64_t first_step, last_step; /* its blocks were allocated in */
};
struct kp_oom {
    int64_t rank, pid, step, time_ms; /* rank -1: of no job */
    char text[1024]; /* "the host ran out of memory: 1.00 TiB asked for at k.py:6 huge, 17.40 MiB live, .." */
    char device[32], limit_by[16];
    struct kp_oom_site at;                                           /* asked for there */
    int64_t asked, live, blocks, unkept, allocated, reserved, limit; /* -1: not known */
    struct kp_oom_site *sites;
    size_t count, capacity;
};

/* False: that is no such text, with a phrase in *why. */
bool kp_oom_read(struct kp_oom *out, const char *text, size_t bytes, const char **why);
void kp_oom_print(FILE *out, const struct kp_oom *oom, long row_limit); /* row_limit below 1: all sites */
void kp_oom_json(FILE *out, const struct kp_oom *oom);
extern const struct kp_fields *const kp_oom_schema;
void kp_oom_fini(struct kp_oom *oom);
