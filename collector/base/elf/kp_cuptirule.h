// SPDX-License-Identifier: Apache-2.0
/*
 * kp_cuptirule.h - the versions of CUPTI that are refused or restricted: the rows of cuptirule.def
 *
 * For the recorder and for `kprof doctor`. Pure: no state, no system call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum kp_cuptirule {
    KP_CUPTI_REFUSE = 1u << 0,     /* never used */
    KP_CUPTI_ONE_WINDOW = 1u << 1, /* in a program with CUDA graphs: a single window for each process */
    KP_CUPTI_EARLY = 1u << 2,      /* enabled once before the program captures its first graph, or never */
    KP_CUPTI_ONCE = 1u << 3,       /* in a program with CUDA graphs: not again after its cuptiFinalize */
    KP_CUPTI_FEW = 1u << 4,        /* if no schedule is set: fewer records than with other versions */
    KP_CUPTI_SHORT = 1u << 5,      /* if no schedule is set: disabled sooner than other versions */
    KP_CUPTI_LOOK = 1u << 6,       /* text that it points to may be unreadable: copied with care */
};

struct kp_cuptirule_row {
    uint32_t low, high, rule;
    const char *text; /* its fault, for a user to read */
};

/* The version's next row behind `after` (NULL: its first row). NULL: no more. */
const struct kp_cuptirule_row *kp_cuptirule_next(uint32_t version, const struct kp_cuptirule_row *after);
/* The rules of all its rows together. */
uint32_t kp_cuptirule_all(uint32_t version);
/* Writes "CUPTI 130001 (CUDA 13.0 Update 1)". Returns the length. */
size_t kp_cuptirule_name(uint32_t version, char *out, size_t bytes);
/* Writes the name, ": " and the text of a row with one of these rules, or "". Returns the length. */
size_t kp_cuptirule_why(uint32_t version, uint32_t rules, char *out, size_t bytes);
/* How a user reads what the library does by this rule: "not used". */
const char *kp_cuptirule_consequence(uint32_t rule);
