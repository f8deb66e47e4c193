// SPDX-License-Identifier: Apache-2.0
/*
 * trigger.c - when the next steps are recorded: behind a long step, of a late rank, behind an allocation that failed
 *
 * Called by: run/stepnote.c, by the thread kprof-summary
 * Owns:      nothing: the caller has the struct
 * Locks:     none
 */
#include "schedule/trigger.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

enum { BEHIND_MILLI = 200 };
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

static bool is_word(const char *at, size_t bytes, const char *word)
{
    return bytes == strlen(word) && strncmp(at, word, bytes) == 0;
}

static bool rule_read(const char *at, size_t bytes, struct kp_trigger *out)
{
    uint64_t milli = 0;
    if (is_word(at, bytes, "oom")) return out->is_of_oom = true;
    if (is_word(at, bytes, "behind")) return out->is_of_behind = true;
    const char *const unit = strncmp(at, "step>", 5) == 0 ? milli_read(at + 5, &milli) : NULL;
    const size_t left = unit ? (size_t)(at + bytes - unit) : 0;
    out->times_milli = out->over_ns = 0;
    if (unit && is_word(unit, left, "x") && milli > 1000) out->times_milli = (uint32_t)milli;
    else if (unit && is_word(unit, left, "s")) out->over_ns = milli * 1000000;
    else if (unit && is_word(unit, left, "ms")) out->over_ns = milli * 1000;
    return out->times_milli || out->over_ns;
}

int kp_trigger_parse(const char *text, struct kp_trigger *out, char *why, size_t why_bytes)
{
    memset(out, 0, sizeof *out);
    for (const char *at = text;; at++) {
        const size_t bytes = strcspn(at, ",");
        if (!rule_read(at, bytes, out)) break;
        at += bytes;
        if (!*at) return 0;
    }
    memset(out, 0, sizeof *out);
    kp_fmt(why, why_bytes, "%s", "needs a factor, a time, behind or oom, such as step>1.5x, step>2s or step>2s,oom");
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

static bool fires(struct kp_trigger *t, uint64_t now_ns)
{
    if (t->fired_ns && now_ns - t->fired_ns < APART_NS) return false;
    t->fired_ns = now_ns;
    return true;
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
    return fires(t, now_ns) ? KP_TRIGGER_LONG : KP_TRIGGER_AGAIN;
}

bool kp_trigger_is_of_steps(const struct kp_trigger *t) { return t->over_ns || t->times_milli; }

bool kp_trigger_oom(struct kp_trigger *t, uint64_t now_ns) { return t->is_of_oom && fires(t, now_ns); }

bool kp_trigger_behind(struct kp_trigger *t, uint64_t own, uint64_t *others, size_t count, uint64_t now_ns,
                       uint64_t *median)
{
    kp_sort_u64(others, count);
    *median = count ? others[(count - 1) / 2] : 0;
    t->behind_looks = *median >= own + BEHIND_MILLI ? t->behind_looks + 1 : 0;
    return t->is_of_behind && t->behind_looks >= KP_TRIGGER_LOOKS && fires(t, now_ns);
}
