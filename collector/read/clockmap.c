// SPDX-License-Identifier: Apache-2.0
/*
 * clockmap.c - maps ticks to ns since the Unix epoch, piecewise linear between the samples of a spool
 *
 * The slope comes from CLOCK_MONOTONIC, which never jumps. The wall time of one sample anchors all times. So a wall
 * clock that is set inside a window neither bends nor reverses its trace. Each line multiplies by a 48-bit fraction,
 * rounds down, and stops at the next line's base. So a later tick is never an earlier time.
 *
 * When the machine slept between two samples, ticks and CLOCK_MONOTONIC went on differently. That is a gap. The line
 * before it continues at the usual rate, and the next sample begins a new line.
 */
#include "collector/read/clockmap.h"

#include <errno.h>
#include <stdbool.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_poison.h"

#define FRACTION 48
#define ONE ((uint64_t)1 << FRACTION)
#define EDGE_NS 10000000   /* the sample of a window's edge lies beside it */
#define ENOUGH_NS 10000000 /* a slope measured over so long is right to 1 in 100,000 */

__extension__ typedef unsigned __int128 wide;

int kp_clockmap_add(struct kp_clockmap *m, const struct kp_clock_pair *sample, uint64_t busy_ns, uint64_t waited_ns)
{
    if (!kp_map_room(&m->lines, m->n, &m->cap, sizeof *m->lines, 256)) return -ENOMEM;
    m->lines[m->n++] = (struct kp_clock_line){.from = sample->ticks,
                                              .base = sample->mono_ns,
                                              .real_minus_mono = sample->real_ns - sample->mono_ns,
                                              .busy_ns = busy_ns,
                                              .waited_ns = waited_ns};
    return 0;
}

/* Slope between two samples. 0: impossible, since the counter ticks at 15 MHz to 64 GHz. */
static uint64_t slope_of(const struct kp_clock_line *a, const struct kp_clock_line *b)
{
    uint64_t ticks = b->from - a->from, ns = b->base - a->base;
    wide slope;
    if (b->from <= a->from || b->base <= a->base) return 0;
    slope = ((wide)ns << FRACTION) / ticks;
    return slope < ONE / 64 || slope > ONE * 64 ? 0 : (uint64_t)slope;
}

/* For a process killed in its first moments. On the same machine, since the same boot, now is a second sample. */
static uint64_t slope_from_now(const struct kp_clock_line *only)
{
    struct kp_clock_pair pair;
    struct kp_clock_line now;
    kp_clock_init();
    kp_clock_sample(&pair);
    now = (struct kp_clock_line){.from = pair.ticks, .base = pair.mono_ns};
    return kp_load_relaxed(&kp_clock_is_tsc) ? slope_of(only, &now) : 0;
}

static bool is_near(uint64_t slope, uint64_t usual, uint32_t part)
{
    return slope && slope >= usual - usual / part && slope <= usual + usual / part;
}

/* Line i does not continue `before`. It begins after a gap if the next sample continues line i. */
static bool is_gap(const struct kp_clockmap *m, const struct kp_clock_line *before, uint32_t i)
{
    const struct kp_clock_line *line = &m->lines[i];
    return line->from > before->from && line->base > before->base && i + 1 < m->n && slope_of(line, line + 1);
}

struct sum {
    wide ns, ticks; /* over all lines that have their own slope */
};

/* Keeps the samples that rise. The slope stays 0 in a line before a gap, and in the last line. */
static struct sum lines_keep(struct kp_clockmap *m)
{
    uint32_t n = 0;
    struct sum sum = {0, 0};
    for (uint32_t i = 0; i < m->n; i++) {
        struct kp_clock_line *last = n ? &m->lines[n - 1] : NULL, line = m->lines[i];
        uint64_t slope = last ? slope_of(last, &line) : 0;
        if (last && !slope && !is_gap(m, last, i)) {
            m->rejected += line.from != last->from;
            continue;
        }
        if (slope) {
            last->slope = slope;
            sum.ns += line.base - last->base, sum.ticks += line.from - last->from;
        }
        m->lines[n++] = line;
    }
    m->n = n;
    return sum;
}

/* The rate of the ticks. Samples of the first moments alone are too close together: each is up to 100 ns off. */
static uint64_t slope_usual(const struct kp_clockmap *m, struct sum sum)
{
    uint64_t measured = sum.ticks ? (uint64_t)((sum.ns << FRACTION) / sum.ticks) : 0, now;
    if (!m->n || sum.ns >= ENOUGH_NS) return measured ? measured : ONE;
    now = slope_from_now(&m->lines[0]);
    if (!measured) return now ? now : ONE;
    return is_near(now, measured, 10) ? now : measured; /* if not near: another machine, or another boot */
}

void kp_clockmap_finish(struct kp_clockmap *m, uint32_t kind, uint64_t start_ns)
{
    struct sum sum = lines_keep(m);
    if (m->n) m->last_ticks = m->lines[m->n - 1].from;
    m->slope = kind == KP_CLOCK_MONO ? ONE : slope_usual(m, sum);
    for (uint32_t i = 0; i < m->n; i++) {
        struct kp_clock_line *line = &m->lines[i];
        if (kind == KP_CLOCK_MONO) line->base = line->from; /* ticks are CLOCK_MONOTONIC itself */
        if (kind == KP_CLOCK_MONO || !line->slope) line->slope = m->slope;
    }
    m->real_minus_mono = m->n ? m->lines[0].real_minus_mono : kind == KP_CLOCK_MONO ? 0 : start_ns;
}

uint64_t kp_clockmap_ticks(const struct kp_clockmap *m, uint64_t ns)
{
    return (uint64_t)(((wide)ns << FRACTION) / (m->slope ? m->slope : ONE));
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

/* b may be negative: a wall clock that was never set. */
static uint64_t add(uint64_t a, uint64_t b)
{
    if ((int64_t)b < 0) return a > 0 - b ? a + b : 0;
    return a > INT64_MAX || a + b > INT64_MAX ? INT64_MAX : a + b;
}

static bool has_begun(const void *line, const void *ticks)
{
    return ((const struct kp_clock_line *)line)->from <= *(const uint64_t *)ticks;
}

/* The last line that begins at or before ticks, or the first. */
static uint32_t find(const struct kp_clockmap *m, uint64_t ticks)
{
    const uint32_t begun = (uint32_t)kp_search(m->lines, sizeof *m->lines, m->n, has_begun, &ticks);
    return begun ? begun - 1 : 0;
}

void kp_clockmap_anchor(struct kp_clockmap *m, uint64_t ticks)
{
    if (!m->n) return;
    uint32_t i = find(m, ticks);
    if (m->lines[i].from < ticks && i + 1 < m->n) i++;
    m->real_minus_mono = m->lines[i].real_minus_mono;
}

/* ticks as CLOCK_MONOTONIC. */
static uint64_t mono_of(struct kp_clockmap *m, uint64_t ticks)
{
    const struct kp_clock_line *line = &m->lines[m->last];
    if (ticks < m->lines[0].from) {
        uint64_t back = scale(m->lines[0].from - ticks, m->slope);
        return back < m->lines[0].base ? m->lines[0].base - back : 0;
    }
    if (ticks < line->from || (m->last + 1 < m->n && ticks >= line[1].from)) {
        m->last = find(m, ticks);
        line = &m->lines[m->last];
    }
    uint64_t ns = add(line->base, scale(ticks - line->from, line->slope));
    return m->last + 1 < m->n && ns > line[1].base ? line[1].base : ns;
}

uint64_t kp_clockmap_mono(struct kp_clockmap *m, uint64_t ticks) { return m->n ? mono_of(m, ticks) : ticks; }

struct kp_busy kp_clockmap_busy(struct kp_clockmap *m, uint64_t from, uint64_t to)
{
    const uint64_t begin = kp_clockmap_mono(m, from), end = kp_clockmap_mono(m, to);
    const struct kp_clock_line *first = NULL, *last = NULL;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct kp_clock_line *line = &m->lines[i];
        if (!line->busy_ns || add(line->base, EDGE_NS) < begin || line->base > add(end, EDGE_NS)) continue;
        if (!first) first = line;
        last = line;
    }
    if (!first || last->base <= first->base || last->busy_ns < first->busy_ns) return (struct kp_busy){0};
    const bool is_wait_known = last->waited_ns && last->waited_ns >= first->waited_ns;
    return (struct kp_busy){.ns = last->busy_ns - first->busy_ns,
                            .waited_ns = is_wait_known ? last->waited_ns - first->waited_ns : 0,
                            .of_ns = last->base - first->base,
                            .is_wait_known = is_wait_known};
}

uint64_t kp_clockmap_real(const struct kp_clockmap *m, uint64_t mono_ns) { return add(mono_ns, m->real_minus_mono); }

uint64_t kp_clockmap_ns(struct kp_clockmap *m, uint64_t ticks)
{
    return kp_clockmap_real(m, kp_clockmap_mono(m, ticks));
}
