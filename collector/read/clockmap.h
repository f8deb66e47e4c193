// SPDX-License-Identifier: Apache-2.0
/* clockmap.h - maps ticks to ns since the Unix epoch, piecewise linear between the samples of a spool */
#ifndef KP_READ_CLOCKMAP_H
#define KP_READ_CLOCKMAP_H

#include <stdint.h>

#include "collector/base/kp_clock.h"

struct kp_clock_line { /* CLOCK_MONOTONIC = base + (ticks - from) * slope / 2^48, from `from` to the next line's */
    uint64_t from, base, slope;
    uint64_t real_minus_mono; /* as sampled at `from` */
};
struct kp_clockmap {
    struct kp_clock_line *lines;
    uint32_t n, cap, last;    /* last: where the previous look-up ended */
    uint32_t rejected;        /* samples that made no sense */
    uint64_t slope;           /* over all lines: used before the first, behind the last and into gaps */
    uint64_t real_minus_mono; /* what is added to every time: see kp_clockmap_anchor */
    uint64_t last_ticks;      /* of the last sample that made sense; 0: none */
};

/* In the order they were taken; one that goes back is rejected. */
int kp_clockmap_add(struct kp_clockmap *m, const struct kp_clock_pair *sample); /* 0 or -ENOMEM */
/* After the last add. kind: KP_CLOCK_TSC or KP_CLOCK_MONO. start_ns: wall time when there is no sample at all. */
void kp_clockmap_finish(struct kp_clockmap *m, uint32_t kind, uint64_t start_ns);
/*
 * Wall times from now on are as the wall clock was at `ticks` (at the first sample from there on), whatever it was
 * set to before or after.
 */
void kp_clockmap_anchor(struct kp_clockmap *m, uint64_t ticks);
void kp_clockmap_fini(struct kp_clockmap *m);
uint64_t kp_clockmap_ns(struct kp_clockmap *m, uint64_t ticks);
uint64_t kp_clockmap_mono(struct kp_clockmap *m,
                          uint64_t ticks); /* the same as CLOCK_MONOTONIC, whatever the anchor ... */
uint64_t kp_clockmap_real(const struct kp_clockmap *m, uint64_t mono_ns); /* ... and that as wall time */

#endif
