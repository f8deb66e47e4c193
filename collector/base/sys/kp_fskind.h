// SPDX-License-Identifier: Apache-2.0
/*
 * kp_fskind.h - which file system a folder lies in, and what it is good for: the rows of fskind.def
 *
 * For the recorder and for `kprof doctor`. Pure: no state, no system call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum kp_fskind_place {
    KP_FSKIND_DISK,   /* of this machine */
    KP_FSKIND_MEMORY, /* of this machine; its content is gone with the machine */
    KP_FSKIND_LAYER,  /* above other file systems: as good as the one that it writes to */
    KP_FSKIND_SHARED, /* by machines: it may stand for minutes */
    KP_FSKIND_BEHIND, /* behind a process or a host, which may be anything, and may stand */
    KP_FSKIND_OTHER,  /* not known */
};

struct kp_fskind {
    uint32_t magic;
    const char *name;
    enum kp_fskind_place place;
    bool copies; /* a store into a mapped page may need new room */
};

/* The row of f_type of statfs(2), whose upper half some processors fill with the sign. Never NULL: "other". */
const struct kp_fskind *kp_fskind_of(uint64_t type);
/* Whether nothing of this machine alone answers for it. */
bool kp_fskind_may_stand(const struct kp_fskind *kind);
/* The words for it in a line for a user: "memory of this machine". */
const char *kp_fskind_what(const struct kp_fskind *kind);
/* Bytes left free for the program: the larger of 1 GB and 5 % of its size, but no more than half of what is free. */
uint64_t kp_fskind_left_free(uint64_t bytes, uint64_t spare);
/* Whether records may lie in this file system, beside what the program keeps there: a tmpfs with 1 GB free. */
bool kp_fskind_holds_records(uint64_t type, uint64_t spare);
