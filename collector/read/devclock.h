// SPDX-License-Identifier: Apache-2.0
/* devclock.h - maps CUPTI's times to ns since the Unix epoch, through the DEVCLOCK samples of a spool */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/format/kp_device.h"
#include "collector/read/clockmap.h"

struct
    kp_devclock_line { /* CLOCK_MONOTONIC = base + (device - from) * slope / 2^48, up to the next line of its domain */
    uint64_t from, ticks, base, slope, width;
    uint32_t domain;
};
struct kp_devclock_domain {
    uint32_t number, first, n; /* its lines */
    uint64_t slope;            /* the usual slope of its lines */
    bool is_ns;                /* the clock counts ns: durations are kept as they are */
};
struct kp_devclock {
    struct kp_devclock_line *lines;
    struct kp_devclock_domain *domains;
    uint32_t n, cap, domains_n;
    uint32_t domain, line; /* place of the previous look-up's end */
    uint32_t rejected;     /* impossible samples */
    uint64_t start_ns;     /* wall time at which the spool was opened */
};

int kp_devclock_add(struct kp_devclock *d, const struct kp_rec_devclock *sample); /* 0 or -ENOMEM */
/* Called after the last add and after kp_clockmap_finish. 0 or -ENOMEM. */
int kp_devclock_finish(struct kp_devclock *d, struct kp_clockmap *clock, uint64_t start_ns);
void kp_devclock_fini(struct kp_devclock *d);
/*
 * Maps the range of a record of kp_device.h, with its flags (KP_DEV_*), to wall time. start <= end before and after.
 * False: the range is empty (end 0, or before the start), or no sample ties its clock to wall time.
 */
bool kp_devclock_span(struct kp_devclock *d, struct kp_clockmap *clock, uint8_t flags, uint64_t start, uint64_t end,
                      uint64_t *start_ns, uint64_t *end_ns);
