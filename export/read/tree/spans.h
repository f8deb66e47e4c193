// SPDX-License-Identifier: Apache-2.0
/* spans.h - sets of time, kept as spans that do not overlap */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_time_span {
    int64_t start_ns, end_ns; /* start first: kp_rows_from. The end is not part of it */
    int64_t before_ns;        /* how long all earlier spans last; valid once settled */
};
struct kp_spans { /* all zero: empty */
    struct kp_time_span *of;
    size_t count, capacity;
};

void kp_spans_add(struct kp_spans *spans, int64_t start_ns, int64_t end_ns);
void kp_spans_add_all(struct kp_spans *spans, const struct kp_spans *others);
void kp_spans_settle(struct kp_spans *spans); /* sorts and joins; the functions below need it */
bool kp_spans_has(const struct kp_spans *spans, int64_t at_ns);
/* How long the set lasts from one time to another. */
int64_t kp_spans_between(const struct kp_spans *spans, int64_t start_ns, int64_t end_ns);
/* How long a set lasts inside another, or alone where `inside` is NULL. */
int64_t kp_spans_length(const struct kp_spans *spans, const struct kp_spans *inside);
/* Keeps what lies inside the other set. */
void kp_spans_cut(struct kp_spans *spans, const struct kp_spans *inside);
void kp_spans_fini(struct kp_spans *spans);
