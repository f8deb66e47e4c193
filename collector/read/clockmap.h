// SPDX-License-Identifier: Apache-2.0
/* clockmap.h - ticks to ns since the Unix epoch, piecewise linear between the samples of a spool */
#ifndef KP_READ_CLOCKMAP_H
#define KP_READ_CLOCKMAP_H

#include <stdint.h>

#include "collector/base/kp_clock.h"

struct kp_clock_line { /* ns = base + (ticks - from) * slope / 2^48, from `from` on */
    uint64_t from, base, slope;
};
struct kp_clockmap {
    struct kp_clock_line *lines;
    uint32_t n, cap, last; /* last: where the previous look-up ended */
    uint32_t rejected;     /* samples that made no sense */
    uint64_t slope;        /* over all samples: used before the first and behind the last */
    uint64_t real_minus_mono;
};

/* In the order they were taken; one that goes back is rejected. */
int kp_clockmap_add(struct kp_clockmap *m, const struct kp_clock_pair *sample); /* 0 or -ENOMEM */
/* After the last add. kind: KP_CLOCK_TSC or KP_CLOCK_MONO. start_ns: wall time when there is no sample at all. */
void kp_clockmap_finish(struct kp_clockmap *m, uint32_t kind, uint64_t start_ns);
void kp_clockmap_fini(struct kp_clockmap *m);
uint64_t kp_clockmap_ns(struct kp_clockmap *m, uint64_t ticks);

#endif
