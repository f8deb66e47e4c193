// SPDX-License-Identifier: Apache-2.0
/* clockmap.h - maps ticks to ns since the Unix epoch, piecewise linear between the samples of a spool */
#pragma once

#include <stdint.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/read/kp_read.h"

struct kp_clock_line { /* CLOCK_MONOTONIC = base + (ticks - from) * slope / 2^48, from `from` to the next line's */
    uint64_t from, base, slope;
    uint64_t real_minus_mono;    /* as sampled at `from` */
    uint64_t busy_ns, waited_ns; /* of struct kp_rec_clock */
};
struct kp_clockmap {
    struct kp_clock_line *lines;
    uint32_t n, cap, last;    /* last: where the previous look-up ended */
    uint32_t rejected;        /* impossible samples */
    uint64_t slope;           /* over all lines; used before the first line, after the last, and in gaps */
    uint64_t real_minus_mono; /* added to every time: see kp_clockmap_anchor */
    uint64_t last_ticks;      /* of the last good sample, or 0 */
};

/* Adds a sample. Samples come in the order they were taken; a sample that goes back is rejected. 0 or -ENOMEM. */
int kp_clockmap_add(struct kp_clockmap *m, const struct kp_clock_pair *sample, uint64_t busy_ns, uint64_t waited_ns);
/* Called after the last add. Kind is KP_CLOCK_TSC or KP_CLOCK_MONO. start_ns is the wall time without any sample. */
void kp_clockmap_finish(struct kp_clockmap *m, uint32_t kind, uint64_t start_ns);
/*
 * From now on, wall times follow the wall clock as it was set at the first sample from `ticks` on. Other
 * settings of the clock, before or after, do not count.
 */
void kp_clockmap_anchor(struct kp_clockmap *m, uint64_t ticks);
uint64_t kp_clockmap_ticks(const struct kp_clockmap *m, uint64_t ns); /* so many ticks are so long, by the usual rate */
void kp_clockmap_fini(struct kp_clockmap *m);
uint64_t kp_clockmap_ns(struct kp_clockmap *m, uint64_t ticks);
uint64_t kp_clockmap_mono(struct kp_clockmap *m, uint64_t ticks); /* ticks as CLOCK_MONOTONIC, without the anchor */
/* Between the first and the last sample of the time between two ticks; not known where fewer than two lie there. */
struct kp_busy kp_clockmap_busy(struct kp_clockmap *m, uint64_t from, uint64_t to);
uint64_t kp_clockmap_real(const struct kp_clockmap *m, uint64_t mono_ns); /* CLOCK_MONOTONIC as wall time */
