// SPDX-License-Identifier: Apache-2.0
/*
 * clockmap.c - ticks to ns since the Unix epoch, piecewise linear between the samples of a spool
 *
 * The slope comes from CLOCK_MONOTONIC, which never jumps; the wall time of the first sample anchors the whole line. So a
 * wall clock that is set while the program runs neither bends nor reverses a trace. Each line multiplies by a 48-bit fraction
 * rounded down: within a line the result never falls, and at its end it is not above the next line's base.
 */
#include "collector/read/clockmap.h"

#include <errno.h>
#include <stdbool.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_poison.h"

#define FRACTION 48
#define ONE ((uint64_t)1 << FRACTION)

__extension__ typedef unsigned __int128 wide;

int kp_clockmap_add(struct kp_clockmap *m, const struct kp_clock_pair *sample)
{
    if (m->n == m->cap) {
        uint32_t cap = m->cap ? m->cap * 2 : 256;
        struct kp_clock_line *lines = m->lines ? kp_map_grow(m->lines, m->cap * sizeof *lines, cap * sizeof *lines)
                                               : kp_map_alloc(cap * sizeof *lines);
        if (!lines) return -ENOMEM;
        m->lines = lines, m->cap = cap;
    }
    if (!m->n) m->real_minus_mono = sample->real_ns - sample->mono_ns;
    m->lines[m->n++] = (struct kp_clock_line){.from = sample->ticks, .base = sample->mono_ns};
    return 0;
}

/* Slope between two samples; 0 when they make no sense (no clock of ours ticks slower than 15 MHz or faster than 64 GHz). */
static uint64_t slope_of(const struct kp_clock_line *a, const struct kp_clock_line *b)
{
    uint64_t ticks = b->from - a->from, ns = b->base - a->base;
    wide slope;
    if (b->from <= a->from || b->base <= a->base) return 0;
    slope = ((wide)ns << FRACTION) / ticks;
    return slope < ONE / 64 || slope > ONE * 64 ? 0 : (uint64_t)slope;
}

/* One sample only (killed within its first second): on the same machine, since the same boot, now is another sample. */
static uint64_t slope_from_now(const struct kp_clock_line *only)
{
    struct kp_clock_pair pair;
    struct kp_clock_line now;
    kp_clock_init();
    kp_clock_sample(&pair);
    now = (struct kp_clock_line){.from = pair.ticks, .base = pair.mono_ns};
    return kp_clock_is_tsc ? slope_of(only, &now) : 0;
}

void kp_clockmap_finish(struct kp_clockmap *m, uint32_t kind, uint64_t start_ns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) { /* keep what rises with a believable slope */
        uint64_t slope = n ? slope_of(&m->lines[n - 1], &m->lines[i]) : 0;
        if (n && !slope) {
            m->rejected += m->lines[i].from != m->lines[n - 1].from;
            continue;
        }
        if (n) m->lines[n - 1].slope = slope;
        m->lines[n++] = m->lines[i];
    }
    m->n = n;
    if (!n) m->real_minus_mono = kind == KP_CLOCK_MONO ? 0 : start_ns;
    m->slope = n > 1 ? slope_of(&m->lines[0], &m->lines[n - 1]) : 0;
    if (n == 1 && kind == KP_CLOCK_TSC) m->slope = slope_from_now(&m->lines[0]);
    if (kind == KP_CLOCK_MONO) { /* ticks are CLOCK_MONOTONIC itself */
        m->n = 0;
        m->slope = ONE;
    }
    if (!m->slope) m->slope = ONE;
    if (m->n) m->lines[m->n - 1].slope = m->slope;
    for (uint32_t i = 0; i < m->n; i++) m->lines[i].base += m->real_minus_mono;
}

void kp_clockmap_fini(struct kp_clockmap *m)
{
    if (m->lines) kp_map_free(m->lines, m->cap * sizeof *m->lines);
    *m = (struct kp_clockmap){0};
}

static uint64_t scale(uint64_t ticks, uint64_t slope)
{
    wide ns = ((wide)ticks * slope) >> FRACTION;
    return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > INT64_MAX || a + b > INT64_MAX ? INT64_MAX : a + b;
}

/* The last line that begins at or before ticks (there is one). */
static uint32_t find(const struct kp_clockmap *m, uint64_t ticks)
{
    uint32_t low = 0, high = m->n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (m->lines[mid].from <= ticks) low = mid;
        else high = mid;
    }
    return low;
}

uint64_t kp_clockmap_ns(struct kp_clockmap *m, uint64_t ticks)
{
    const struct kp_clock_line *line;
    if (!m->n) return ticks > INT64_MAX ? INT64_MAX : add(ticks, m->real_minus_mono);
    if (ticks < m->lines[0].from) {
        uint64_t back = scale(m->lines[0].from - ticks, m->slope);
        return back < m->lines[0].base ? m->lines[0].base - back : 0;
    }
    line = &m->lines[m->last];
    if (ticks < line->from || (m->last + 1 < m->n && ticks >= line[1].from)) {
        m->last = find(m, ticks);
        line = &m->lines[m->last];
    }
    return add(line->base, scale(ticks - line->from, line->slope));
}
