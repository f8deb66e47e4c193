// SPDX-License-Identifier: Apache-2.0
/* oomwords.h - one sentence of an allocation that failed: what was asked for, what is live, and whose most is */
#pragma once

#include <stdint.h>

struct kp_callsite;

enum { KP_OOMWORDS_BYTES = 768 };
struct kp_oomwords {
    const char *device; /* "cuda:0" */
    uint64_t asked, live, most;
    uint64_t limit, cached;                 /* 0: not known */
    const struct kp_callsite *at, *most_at; /* NULL: not known */
};
/* "cuda:0 ran out of 4.00 GiB: 1.00 GiB asked for at k.py:6 huge, 3.40 GiB live, 2.50 GiB of it from k.py:4 work" */
void kp_oomwords_put(char out[KP_OOMWORDS_BYTES], const struct kp_oomwords *words);
