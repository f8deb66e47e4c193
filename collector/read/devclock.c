// SPDX-License-Identifier: Apache-2.0
/*
 * devclock.c - maps CUPTI's times to ns since the Unix epoch, through the DEVCLOCK samples of a spool
 *
 * Each sample ties a value of CUPTI's clock to ticks, and the clock map ties ticks to CLOCK_MONOTONIC. A time between
 * two samples lies on the line through them. Before the first and after the last, the slope of the whole domain
 * continues. CUPTI's clock may change while a spool is written, since torch.profiler registers its own. Then a new
 * domain begins, with its own lines. If the clock jumped between two samples (CLOCK_REALTIME was set), no slope crosses
 * the jump.
 *
 * A clock that counts ns keeps every duration as measured, and only its start is mapped. Otherwise both ends are
 * mapped.
 */
#include "collector/read/devclock.h"

#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_poison.h"

#define FRACTION 48
#define ONE ((uint64_t)1 << FRACTION)
#define LATE_MAX 1024u     /* so many samples of later domains may precede a sample */
#define APART_NS 10000000u /* samples closer together say little about the slope */
#define NEAR_NS \
    ((uint64_t)3600 * 1000000000u) /* a single sample so close to the ticks: the device clock is their clock */
#define YEARS_NS ((uint64_t)315360000 * 1000000000u)

__extension__ typedef unsigned __int128 wide;

int kp_devclock_add(struct kp_devclock *d, const struct kp_rec_devclock *sample)
{
    if (d->n >= LATE_MAX && d->lines[d->n - LATE_MAX].domain > sample->domain) { /* damage: domains only rise */
        d->rejected++;
        return 0;
    }
    if (!kp_map_room(&d->lines, d->n, &d->cap, sizeof *d->lines, 64)) return -ENOMEM;
    uint32_t at = d->n++;
    for (; at && d->lines[at - 1].domain > sample->domain; at--)
        d->lines[at] = d->lines[at - 1]; /* nearly never loops */
    d->lines[at] = (struct kp_devclock_line){
        .from = sample->device, .ticks = sample->ticks, .width = sample->width, .domain = sample->domain};
    return 0;
}

/* ns for each unit of the device's clock, between two samples. 0: impossible. */
static uint64_t slope_of(const struct kp_devclock_line *a, const struct kp_devclock_line *b)
{
    if (b->from <= a->from || b->base <= a->base) return 0;
    wide slope = ((wide)(b->base - a->base) << FRACTION) / (b->from - a->from);
    return slope < ONE / 64 || slope > ONE * 64 ? 0 : (uint64_t)slope;
}

static bool is_near(uint64_t slope, uint64_t usual)
{
    return slope >= usual - usual / 1000 && slope <= usual + usual / 1000;
}

/* Guesses the slope from a single sample: a clock of ns, or the clock of the ticks. */
static uint64_t slope_guess(const struct kp_devclock_line *only, const struct kp_clockmap *clock)
{
    uint64_t off = only->from > only->ticks ? only->from - only->ticks : only->ticks - only->from;
    return off < NEAR_NS ? clock->slope : ONE;
}

/*
 * Leaves out bad samples (the thread was preempted between two clock reads), and samples too close to the one
 * before.
 */
static uint32_t lines_keep(struct kp_devclock *d, uint32_t first, uint32_t end)
{
    uint64_t best = UINT64_MAX;
    uint32_t n = first;
    for (uint32_t i = first; i < end; i++)
        if (d->lines[i].width < best) best = d->lines[i].width;
    for (uint32_t i = first; i < end; i++) {
        struct kp_devclock_line line = d->lines[i], *last = n > first ? &d->lines[n - 1] : NULL;
        if (line.width / 4 > best && line.width / 4 - best > 1000) continue; /* so the best sample stays in any file */
        if (last && (line.from <= last->from || line.base <= last->base)) {
            d->rejected += line.from != last->from;
            continue;
        }
        if (last && line.base - last->base < APART_NS) continue;
        d->lines[n++] = line;
    }
    return n;
}

/* A domain's usual slope is the median of its lines. So a jump of the clock bends one line, not the domain. */
static uint64_t slope_usual(const struct kp_devclock_line *lines, uint32_t n, const struct kp_clockmap *clock)
{
    if (n < 2) return n ? slope_guess(&lines[0], clock) : ONE;
    uint64_t all = slope_of(&lines[0], &lines[n - 1]);
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint64_t slope = slope_of(&lines[i], &lines[i + 1]);
        uint32_t agree = 0;
        for (uint32_t k = 0; slope && k + 1 < n && k < 64; k++)
            agree += is_near(slope_of(&lines[k], &lines[k + 1]), slope);
        if (slope && agree * 2 >= (n - 1 < 64 ? n - 1 : 64)) return is_near(all, slope) ? all : slope;
    }
    return all ? all : ONE;
}

static void domain_finish(struct kp_devclock *d, struct kp_devclock_domain *domain, struct kp_clockmap *clock)
{
    struct kp_devclock_line *lines = d->lines + domain->first;
    domain->slope = slope_usual(lines, domain->n, clock);
    domain->is_ns = is_near(domain->slope, ONE);
    for (uint32_t i = 0; i < domain->n; i++) {
        uint64_t slope = i + 1 < domain->n ? slope_of(&lines[i], &lines[i + 1]) : 0;
        lines[i].slope = slope && is_near(slope, domain->slope) ? slope : domain->slope;
    }
}

int kp_devclock_finish(struct kp_devclock *d, struct kp_clockmap *clock, uint64_t start_ns)
{
    uint32_t domains = 0;
    d->start_ns = start_ns;
    for (uint32_t i = 0; i < d->n; i++) {
        d->lines[i].base = kp_clockmap_mono(clock, d->lines[i].ticks);
        domains += !i || d->lines[i].domain != d->lines[i - 1].domain;
    }
    if (!domains) return 0;
    d->domains = kp_map_alloc(domains * sizeof *d->domains);
    if (!d->domains) return -ENOMEM;
    d->domains_n = domains;
    for (uint32_t i = 0, k = 0, end; k < domains; k++, i = end) {
        for (end = i + 1; end < d->n && d->lines[end].domain == d->lines[i].domain;) end++;
        uint32_t kept = lines_keep(d, i, end);
        d->domains[k] = (struct kp_devclock_domain){.number = d->lines[i].domain, .first = i, .n = kept - i};
        domain_finish(d, &d->domains[k], clock);
    }
    return 0;
}

void kp_devclock_fini(struct kp_devclock *d)
{
    if (d->lines) kp_map_free(d->lines, d->cap * sizeof *d->lines);
    if (d->domains) kp_map_free(d->domains, d->domains_n * sizeof *d->domains);
    *d = (struct kp_devclock){0};
}

static uint64_t distance(const struct kp_devclock *d, const struct kp_devclock_domain *domain, uint64_t device)
{
    uint64_t first = d->lines[domain->first].from, last = d->lines[domain->first + domain->n - 1].from;
    return device < first ? first - device : device > last ? device - last : 0;
}

/* The domain of that parity with the nearest samples. NULL: none. */
static const struct kp_devclock_domain *domain_find(struct kp_devclock *d, bool odd, uint64_t device)
{
    const struct kp_devclock_domain *best = NULL, *last = d->domains_n ? &d->domains[d->domain] : NULL;
    uint64_t least = 0;
    if (last && (last->number & 1) == odd && !distance(d, last, device)) return last;
    for (uint32_t i = 0; i < d->domains_n; i++) {
        uint64_t far = distance(d, &d->domains[i], device);
        if ((d->domains[i].number & 1) != odd || (best && far > least)) continue;
        best = &d->domains[i], least = far;
    }
    if (best) d->domain = (uint32_t)(best - d->domains);
    return best;
}

static bool has_begun(const void *line, const void *device)
{
    return ((const struct kp_devclock_line *)line)->from <= *(const uint64_t *)device;
}

/* The last line of the domain that begins at or before this time, or its first. */
static const struct kp_devclock_line *line_find(struct kp_devclock *d, const struct kp_devclock_domain *domain,
                                                uint64_t device)
{
    const uint32_t first = domain->first, end = first + domain->n;
    const struct kp_devclock_line *last = &d->lines[d->line];
    if (d->line >= first && d->line < end && device >= last->from && (d->line + 1 == end || device < last[1].from))
        return last;
    const uint32_t begun = (uint32_t)kp_search(&d->lines[first], sizeof *d->lines, domain->n, has_begun, &device);
    d->line = begun ? first + begun - 1 : first;
    return &d->lines[d->line];
}

/* CLOCK_MONOTONIC of a device time. */
static uint64_t mono_of(struct kp_devclock *d, const struct kp_devclock_domain *domain, uint64_t device)
{
    const struct kp_devclock_line *line = line_find(d, domain, device);
    wide far;
    if (device < line->from) {
        far = ((wide)(line->from - device) * domain->slope) >> FRACTION;
        return far < line->base ? line->base - (uint64_t)far : 0;
    }
    far = ((wide)(device - line->from) * line->slope) >> FRACTION;
    return far > INT64_MAX - line->base ? INT64_MAX : line->base + (uint64_t)far;
}

static bool device_span(struct kp_devclock *d, struct kp_clockmap *clock, bool odd, uint64_t start, uint64_t end,
                        uint64_t *start_ns, uint64_t *end_ns)
{
    const struct kp_devclock_domain *domain = domain_find(d, odd, start);
    if (!domain) { /* no samples: CUPTI's usual clock is CLOCK_REALTIME */
        *start_ns = start, *end_ns = end;
        return start + YEARS_NS > d->start_ns && start < d->start_ns + YEARS_NS;
    }
    *start_ns = kp_clockmap_real(clock, mono_of(d, domain, start));
    *end_ns = domain->is_ns ? *start_ns + (end - start) : kp_clockmap_real(clock, mono_of(d, domain, end));
    return true;
}

bool kp_devclock_span(struct kp_devclock *d, struct kp_clockmap *clock, uint8_t flags, uint64_t start, uint64_t end,
                      uint64_t *start_ns, uint64_t *end_ns)
{
    if (!start || end < start || flags & KP_DEV_NO_TIME) return false;
    if (!(flags & KP_DEV_TICKS)) return device_span(d, clock, flags & KP_DEV_DOMAIN, start, end, start_ns, end_ns);
    *start_ns = kp_clockmap_ns(clock, start);
    *end_ns = kp_clockmap_ns(clock, end);
    return true;
}
