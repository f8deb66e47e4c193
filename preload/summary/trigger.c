// SPDX-License-Identifier: Apache-2.0
/*
 * trigger.c - which step is long enough to be looked into
 *
 * Called by: run/stepnote.c, by the thread kprof-summary
 * Owns:      nothing: the caller has the struct
 * Locks:     none
 */
#include "preload/summary/trigger.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

#define APART_NS UINT64_C(600000000000) /* ten minutes between two recordings */

/* Reads "1.5" in thousandths. Returns what follows, or NULL. */
static const char *milli_read(const char *at, uint64_t *out)
{
    uint64_t whole = 0, part = 0, unit = 100;
    const char *const begin = at;
    for (; *at >= '0' && *at <= '9' && whole < 1000000; at++) whole = whole * 10 + (uint64_t)(*at - '0');
    if (at == begin) return NULL;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10) part += (uint64_t)(*at - '0') * unit;
    *out = whole * 1000 + part;
    return at;
}

int kp_trigger_parse(const char *text, struct kp_trigger *out, char *why, size_t why_bytes)
{
    uint64_t milli = 0;
    memset(out, 0, sizeof *out);
    const char *const unit = strncmp(text, "step>", 5) == 0 ? milli_read(text + 5, &milli) : NULL;
    if (unit && strcmp(unit, "x") == 0 && milli > 1000) out->times_milli = (uint32_t)milli;
    else if (unit && strcmp(unit, "s") == 0) out->over_ns = milli * 1000000;
    else if (unit && strcmp(unit, "ms") == 0) out->over_ns = milli * 1000;
    if (out->times_milli || out->over_ns) return 0;
    kp_fmt(why, why_bytes, "%s", "needs a factor or a time, such as step>1.5x or step>2s");
    return -EINVAL;
}

static bool is_long(const struct kp_trigger *t, uint64_t dur_ns, uint64_t *median_ns)
{
    uint64_t sorted[KP_TRIGGER_STEPS];
    const size_t known = t->count < KP_TRIGGER_STEPS ? (size_t)t->count : KP_TRIGGER_STEPS;
    memcpy(sorted, t->ns, known * sizeof *sorted);
    kp_sort_u64(sorted, known);
    *median_ns = known ? sorted[known / 2] : 0;
    if (t->over_ns) return dur_ns > t->over_ns;
    if (known < KP_TRIGGER_STEPS) return false;
    const uint64_t low = sorted[KP_TRIGGER_STEPS / 4], high = sorted[KP_TRIGGER_STEPS * 3 / 4];
    return dur_ns > *median_ns / 1000 * t->times_milli && dur_ns > high + (high - low) * 3 / 2;
}

/* The last long steps are equally far apart: a checkpoint, an evaluation. */
static uint64_t period_find(const struct kp_trigger *t)
{
    if (t->longs <= KP_TRIGGER_PERIODS) return 0;
    const uint64_t first = t->long_at[0] - t->long_at[1];
    for (int i = 1; i < KP_TRIGGER_PERIODS; i++)
        if (t->long_at[i] - t->long_at[i + 1] != first) return 0;
    return first > 1 ? first : 0;
}

enum kp_trigger_verdict kp_trigger_step(struct kp_trigger *t, uint64_t step, uint64_t dur_ns, uint64_t now_ns,
                                        uint64_t *median_ns, uint64_t *period)
{
    const bool was_periodic = period_find(t) != 0;
    const bool is = is_long(t, dur_ns, median_ns);
    t->ns[t->count++ % KP_TRIGGER_STEPS] = dur_ns; /* a long one, too: steps may stay longer */
    if (!is) return KP_TRIGGER_NO;
    memmove(t->long_at + 1, t->long_at, KP_TRIGGER_PERIODS * sizeof t->long_at[0]);
    t->long_at[0] = step;
    t->longs += t->longs <= KP_TRIGGER_PERIODS;
    *period = period_find(t);
    if (*period) return was_periodic ? KP_TRIGGER_AGAIN : KP_TRIGGER_PERIODIC;
    if (t->fired_ns && now_ns - t->fired_ns < APART_NS) return KP_TRIGGER_AGAIN;
    t->fired_ns = now_ns;
    return KP_TRIGGER_LONG;
}
