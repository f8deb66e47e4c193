// SPDX-License-Identifier: Apache-2.0
/*
 * kp_cuptirule.h - which versions of CUPTI must not be used, or with limits: the rows of cuptirule.def
 *
 * For the recorder and for `kprof doctor`. Pure: no state, no system call.
 */
#ifndef KP_CUPTIRULE_H
#define KP_CUPTIRULE_H

#include <stddef.h>
#include <stdint.h>

enum kp_cuptirule {
    KP_CUPTI_REFUSE = 1u << 0,     /* not used at all */
    KP_CUPTI_ONE_WINDOW = 1u << 1, /* where the program uses CUDA graphs: one window a process */
    KP_CUPTI_EARLY = 1u << 2,      /* enabled once before the program captures its first graph, or not at all */
    KP_CUPTI_ONCE = 1u << 3,       /* where the program uses CUDA graphs: not again after its cuptiFinalize */
    KP_CUPTI_FEW = 1u << 4,        /* without a schedule: fewer records than of others */
    KP_CUPTI_SHORT = 1u << 5,      /* without a schedule: off again sooner than others */
    KP_CUPTI_LOOK = 1u << 6,       /* text it points to is looked at with care */
};

struct kp_cuptirule_row {
    uint32_t low, high, rule;
    const char *text; /* what is wrong with it */
};

/* The rows that concern a version, one after another; after: NULL for the first. NULL: no more. */
const struct kp_cuptirule_row *kp_cuptirule_next(uint32_t version, const struct kp_cuptirule_row *after);
/* Their rules together. */
uint32_t kp_cuptirule_all(uint32_t version);
/* "CUPTI 130001 (CUDA 13.0 Update 1)". The length. */
size_t kp_cuptirule_name(uint32_t version, char *out, size_t bytes);
/* That, ": ", and what is wrong by one of these rules; "": nothing is. The length. */
size_t kp_cuptirule_why(uint32_t version, uint32_t rules, char *out, size_t bytes);
/* What we do about it, for people: "not used". */
const char *kp_cuptirule_consequence(uint32_t rule);

#endif
