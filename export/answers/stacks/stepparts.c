// SPDX-License-Identifier: Apache-2.0
/* stepparts.c - what of the steps is forward, backward and optimizer, and that as text */
#include "export/answers/stacks/stepparts.h"

#include <stdlib.h>

#include "export/read/facts/steps/usualsteps.h"
#include "export/show/units.h"

#define BETWEEN_LEAST 1.0     /* percent */
#define ALL_SHARE 0.98        /* of other: all of it */
enum { PASSES_LEAST = 2000 }; /* one in so many of the steps */

const enum kp_part kp_stepparts_order[KP_STEPPARTS_SHOWN] = {KP_PART_FORWARD, KP_PART_BACKWARD, KP_PART_OPTIMIZER,
                                                             KP_PART_LOADING, KP_PART_OTHER};

struct adding {
    struct kp_parts_sum *each;
    const struct kp_step *steps;
    size_t count;
};

/* Adds what each step has of a moment. */
static void moment_take(void *context, uint32_t where, enum kp_part part, int64_t from_ns, int64_t value)
{
    const struct adding *const a = context;
    const int64_t to_ns = from_ns + value;
    for (size_t i = kp_step_after(a->steps, a->count, from_ns); i < a->count && a->steps[i].start_ns < to_ns; i++) {
        const int64_t from = a->steps[i].start_ns > from_ns ? a->steps[i].start_ns : from_ns;
        const int64_t to = a->steps[i].end_ns < to_ns ? a->steps[i].end_ns : to_ns;
        if (to <= from) continue;
        (where == KP_WALL_DEVICE ? a->each[i].gpu_ns : a->each[i].host_ns)[part] += to - from;
        if (where == KP_WALL_GAP) a->each[i].between_ns += to - from;
    }
}

static void sum_add(struct kp_parts_sum *into, const struct kp_parts_sum *of)
{
    into->steps_ns += of->steps_ns;
    into->between_ns += of->between_ns;
    for (int i = 0; i < KP_PARTS; i++) into->host_ns[i] += of->host_ns[i], into->gpu_ns[i] += of->gpu_ns[i];
}

void kp_stepparts_add(struct kp_stepparts *into, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const size_t first = into->count;
    if (!chosen->step_count) return;
    for (size_t i = 0; i < chosen->step_count; i++)
        *KP_KINETO_NEXT(into->each, into->count, into->capacity) =
            (struct kp_parts_sum){.steps_ns = chosen->steps[i].end_ns - chosen->steps[i].start_ns};
    kp_wall_parts_tell(tree, moment_take, &(struct adding){into->each + first, chosen->steps, chosen->step_count});
    for (size_t i = first; i < into->count; i++) sum_add(&into->all, &into->each[i]);
}

void kp_stepparts_fini(struct kp_stepparts *p)
{
    free(p->each);
    *p = (struct kp_stepparts){0};
}

static int64_t whole_ns(const struct kp_parts_sum *s, bool on_gpu)
{
    int64_t sum = 0;
    if (!on_gpu) return s->steps_ns;
    for (int i = 0; i < KP_PARTS; i++) sum += s->gpu_ns[i];
    return sum;
}

bool kp_stepparts_has_gpu(const struct kp_stepparts *p) { return whole_ns(&p->all, true) > 0; }

static int64_t part_ns(const struct kp_parts_sum *s, enum kp_part part, bool on_gpu)
{
    const int64_t *const of = on_gpu ? s->gpu_ns : s->host_ns;
    int64_t others = 0;
    if (part != KP_PART_OTHER) return of[part];
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++)
        if (kp_stepparts_order[i] != KP_PART_OTHER) others += of[kp_stepparts_order[i]];
    const int64_t rest = whole_ns(s, on_gpu) - others;
    return rest > 0 ? rest : 0;
}

/* A trace that was cut to one thread has no passes in it: their time would be "other". */
static bool has_passes(const struct kp_stepparts *p)
{
    const int64_t passes = p->all.host_ns[KP_PART_FORWARD] + p->all.host_ns[KP_PART_BACKWARD];
    return passes >= p->all.steps_ns / PASSES_LEAST || part_ns(&p->all, KP_PART_OTHER, false) < p->all.steps_ns / 2;
}

bool kp_stepparts_has(const struct kp_stepparts *p)
{
    const bool trains = p->all.host_ns[KP_PART_BACKWARD] > 0 || p->all.host_ns[KP_PART_OPTIMIZER] > 0;
    return p->all.steps_ns > 0 && trains && has_passes(p);
}

int64_t kp_stepparts_ns(const struct kp_stepparts *p, enum kp_part part, bool on_gpu)
{
    return part_ns(&p->all, part, on_gpu);
}

void kp_stepparts_row(int64_t row[KP_STEPPARTS_SHOWN], const struct kp_parts_sum *step)
{
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++) row[i] = part_ns(step, kp_stepparts_order[i], false);
}

/* ---- as text ---- */

static struct kp_parts_sum usual_sum(const struct kp_stepparts *p, struct kp_usual_steps *usual)
{
    struct kp_parts_sum sum = {0};
    double *const lengths = kp_kineto_room(p->count + 1, sizeof *lengths);
    for (size_t i = 0; i < p->count; i++) lengths[i] = (double)p->each[i].steps_ns;
    *usual = kp_usual_steps_of(lengths, p->count);
    free(lengths);
    if (!usual->left_out) return p->all;
    for (size_t i = 0; i < p->count; i++)
        if ((double)p->each[i].steps_ns <= usual->most_ns) sum_add(&sum, &p->each[i]);
    return sum;
}

bool kp_stepparts_has_forward(const struct kp_stepparts *p)
{
    return p->all.host_ns[KP_PART_FORWARD] > 0 || !p->all.host_ns[KP_PART_BACKWARD];
}

static const char *part_text(const struct kp_stepparts *p, enum kp_part part)
{
    return part == KP_PART_OTHER && !kp_stepparts_has_forward(p) ? "forward and other" : kp_part_name(part);
}

/* In tenths of a percent. The rest of rounding is the largest part's, so they are 100.0 % together. */
static void tenths_make(long of[KP_STEPPARTS_SHOWN], const struct kp_parts_sum *s, bool on_gpu)
{
    const int64_t whole = whole_ns(s, on_gpu);
    long sum = 0;
    int most = 0;
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++) {
        const double share = (double)part_ns(s, kp_stepparts_order[i], on_gpu) / (double)whole;
        of[i] = (long)(1000 * share + 0.5);
        sum += of[i];
        if (of[i] > of[most]) most = i;
    }
    of[most] += 1000 - sum;
}

/* The last part's, "other". */
static size_t between_put(char *out, size_t bytes, const struct kp_parts_sum *s)
{
    const double percent = 100 * (double)s->between_ns / (double)whole_ns(s, false);
    if (percent < BETWEEN_LEAST || !bytes) return 0;
    if (s->between_ns >= (int64_t)(ALL_SHARE * (double)part_ns(s, KP_PART_OTHER, false)))
        return (size_t)snprintf(out, bytes, " (in gaps between these)");
    return (size_t)snprintf(out, bytes, " (%.1f %% in gaps between these)", percent);
}

const char *kp_stepparts_text(char *out, size_t bytes, const struct kp_stepparts *p, bool on_gpu)
{
    struct kp_usual_steps usual;
    const struct kp_parts_sum sum = usual_sum(p, &usual);
    long tenths[KP_STEPPARTS_SHOWN];
    size_t used = 0;
    out[0] = 0;
    if (whole_ns(&sum, on_gpu) <= 0) return out;
    tenths_make(tenths, &sum, on_gpu);
    for (int i = 0; i < KP_STEPPARTS_SHOWN && used < bytes; i++) {
        const enum kp_part part = kp_stepparts_order[i];
        if (!tenths[i] && (on_gpu || part == KP_PART_LOADING)) continue;
        if (part == KP_PART_FORWARD && !kp_stepparts_has_forward(p)) continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s %.1f %%", used ? ", " : "", part_text(p, part),
                                 (double)tenths[i] / 10);
    }
    if (on_gpu) return out;
    used += between_put(out + used, bytes - used, &sum);
    if (usual.left_out && used < bytes)
        snprintf(out + used, bytes - used, "; without %zu step%s that take%s %.0f %% of all time", usual.left_out,
                 kp_units_s(usual.left_out), usual.left_out == 1 ? "s" : "", 100 * usual.left_out_share);
    return out;
}

const char *kp_stepparts_bar(char out[KP_STEPPARTS_BAR + 1], const struct kp_stepparts *p)
{
    struct kp_usual_steps usual;
    const struct kp_parts_sum sum = usual_sum(p, &usual);
    int64_t until_ns = 0;
    int shown = 0;
    for (int i = 0; i < KP_STEPPARTS_SHOWN && sum.steps_ns; i++) {
        const enum kp_part part = kp_stepparts_order[i];
        until_ns += part_ns(&sum, part, false);
        const int to = (int)(KP_STEPPARTS_BAR * (double)until_ns / (double)sum.steps_ns + 0.5);
        for (; shown < to && shown < KP_STEPPARTS_BAR; shown++)
            out[shown] = part == KP_PART_OTHER ? '.' : kp_part_name(part)[0];
    }
    out[shown] = 0;
    return out;
}
