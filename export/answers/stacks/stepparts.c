// SPDX-License-Identifier: Apache-2.0
/* stepparts.c - what of the steps is forward, backward and optimizer, and that as text */
#include "export/answers/stacks/stepparts.h"

#include <string.h>

#define BETWEEN_LEAST 1.0 /* percent */
#define ALL_SHARE 0.98    /* of other: all of it */

const enum kp_part kp_stepparts_order[KP_STEPPARTS_SHOWN] = {KP_PART_FORWARD, KP_PART_BACKWARD, KP_PART_OPTIMIZER,
                                                             KP_PART_LOADING, KP_PART_OTHER};

void kp_stepparts_add(struct kp_stepparts *into, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    if (!chosen->step_count) return;
    into->steps_ns += kp_spans_length(&chosen->in_steps, NULL);
    kp_wall_parts_add(&into->of, tree, &chosen->in_steps);
}

bool kp_stepparts_has(const struct kp_stepparts *p)
{
    return p->steps_ns > 0 && (p->of.host_ns[KP_PART_BACKWARD] > 0 || p->of.host_ns[KP_PART_OPTIMIZER] > 0);
}

static int64_t whole_ns(const struct kp_stepparts *p, bool on_gpu)
{
    int64_t sum = 0;
    if (!on_gpu) return p->steps_ns;
    for (int i = 0; i < KP_PARTS; i++) sum += p->of.gpu_ns[i];
    return sum;
}

bool kp_stepparts_has_gpu(const struct kp_stepparts *p) { return whole_ns(p, true) > 0; }

int64_t kp_stepparts_ns(const struct kp_stepparts *p, enum kp_part part, bool on_gpu)
{
    const int64_t *const of = on_gpu ? p->of.gpu_ns : p->of.host_ns;
    int64_t others = 0;
    if (part != KP_PART_OTHER) return of[part];
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++)
        if (kp_stepparts_order[i] != KP_PART_OTHER) others += of[kp_stepparts_order[i]];
    const int64_t rest = whole_ns(p, on_gpu) - others;
    return rest > 0 ? rest : 0;
}

/* ---- by step ---- */

struct part_rows {
    int64_t (*rows)[KP_STEPPARTS_SHOWN];
    const struct kp_chosen *chosen;
    size_t at; /* those before it have ended */
};

/* A part's number among those that are shown; other: what no part has. */
static int shown_at(enum kp_part part)
{
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++)
        if (kp_stepparts_order[i] == part) return i;
    return -1;
}

/* Adds what each step has of a moment. Moments come nearly by time. */
static void moment_take(void *context, uint32_t place, enum kp_part part, int64_t from_ns, int64_t value)
{
    struct part_rows *s = context;
    const struct kp_step *const steps = s->chosen->steps;
    const int64_t to_ns = from_ns + value;
    const int column = part == KP_PART_OTHER ? -1 : shown_at(part);
    (void)place;
    if (column < 0) return;
    while (s->at > 0 && steps[s->at - 1].end_ns > from_ns) s->at--;
    while (s->at < s->chosen->step_count && steps[s->at].end_ns <= from_ns) s->at++;
    for (size_t i = s->at; i < s->chosen->step_count && steps[i].start_ns < to_ns; i++) {
        const int64_t from = steps[i].start_ns > from_ns ? steps[i].start_ns : from_ns;
        const int64_t to = steps[i].end_ns < to_ns ? steps[i].end_ns : to_ns;
        if (to > from) s->rows[i][column] += to - from;
    }
}

void kp_stepparts_each(int64_t (*rows)[KP_STEPPARTS_SHOWN], const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct part_rows s = {.rows = rows, .chosen = chosen};
    const int other = shown_at(KP_PART_OTHER);
    memset(rows, 0, chosen->step_count * sizeof *rows);
    if (chosen->step_count) kp_wall_parts_tell(tree, moment_take, &s);
    for (size_t i = 0; i < chosen->step_count; i++) {
        int64_t rest = chosen->steps[i].end_ns - chosen->steps[i].start_ns;
        for (int p = 0; p < KP_STEPPARTS_SHOWN; p++) rest -= p == other ? 0 : rows[i][p];
        rows[i][other] = rest > 0 ? rest : 0;
    }
}

/* ---- as text ---- */

/* In tenths of a percent. What rounding leaves is the largest part's, so they are 100.0 % together. */
static void tenths_make(long of[KP_STEPPARTS_SHOWN], const struct kp_stepparts *p, bool on_gpu)
{
    const int64_t whole = whole_ns(p, on_gpu);
    long sum = 0;
    int most = 0;
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++) {
        const double share = (double)kp_stepparts_ns(p, kp_stepparts_order[i], on_gpu) / (double)whole;
        of[i] = (long)(1000 * share + 0.5);
        sum += of[i];
        if (of[i] > of[most]) most = i;
    }
    of[most] += 1000 - sum;
}

/* Of the last part, "other". */
static void between_put(char *out, size_t bytes, const struct kp_stepparts *p)
{
    const double percent = 100 * (double)p->of.between_ns / (double)whole_ns(p, false);
    if (percent < BETWEEN_LEAST || !bytes) return;
    if (p->of.between_ns >= (int64_t)(ALL_SHARE * (double)kp_stepparts_ns(p, KP_PART_OTHER, false)))
        snprintf(out, bytes, " (in gaps between these)");
    else snprintf(out, bytes, " (%.1f %% in gaps between these)", percent);
}

const char *kp_stepparts_text(char *out, size_t bytes, const struct kp_stepparts *p, bool on_gpu)
{
    long tenths[KP_STEPPARTS_SHOWN];
    size_t used = 0;
    out[0] = 0;
    if (whole_ns(p, on_gpu) <= 0) return out;
    tenths_make(tenths, p, on_gpu);
    for (int i = 0; i < KP_STEPPARTS_SHOWN && used < bytes; i++) {
        const enum kp_part part = kp_stepparts_order[i];
        if (!tenths[i] && (on_gpu || part == KP_PART_LOADING)) continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s %.1f %%", used ? ", " : "", kp_part_name(part),
                                 (double)tenths[i] / 10);
    }
    if (!on_gpu) between_put(out + used, bytes - used, p);
    return out;
}
