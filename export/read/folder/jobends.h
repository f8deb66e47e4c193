// SPDX-License-Identifier: Apache-2.0
/* jobends.h - how processes of a job ended, as their launcher was told (preload/finish/childends.c) */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { KP_JOBEND_BYTES = 32 };
struct kp_jobend {
    long pid;
    int64_t at_ns;            /* the launcher was told then, since the Unix epoch */
    char by[KP_JOBEND_BYTES]; /* "SIGSEGV", "exit status 3" */
};
struct kp_jobends { /* all zero: none */
    struct kp_jobend *of;
    size_t count, capacity;
};
/* Reads all files of a folder. */
void kp_jobends_read(struct kp_jobends *ends, const char *folder);
/* The newest of that process; NULL: not known. */
const struct kp_jobend *kp_jobends_find(const struct kp_jobends *ends, long pid);
void kp_jobends_fini(struct kp_jobends *ends);
