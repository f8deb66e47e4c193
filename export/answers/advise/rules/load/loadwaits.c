// SPDX-License-Identifier: Apache-2.0
/*
 * loadwaits.c - what a loader with workers makes the steps wait: each a little, or a few of them for all
 *
 * Steps of which a few wait for most of it are told by their number, and the others beside them: the mean of both is
 * what no step has. Their waits may be the price of a batch that comes from another process.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <stdlib.h>

#include "export/answers/advise/rules/load/loadsavings.h"

enum { BURSTS_LEAST = 3 };
#define BURST_USUALS 4.0 /* times what the median step waits, and a hand-over more */
#define BURST_NEAR 0.25  /* of the wait that most of such time is in; what is less is noise */
#define BURST_SHARE 0.75 /* of all that is waited for: the few steps have it */
#define START_SHARE 0.25 /* of the time for data */
#define EVERY_SHARE 0.60 /* of the distances between them: they are about as long as the median */

static bool is_by_workers(const struct kp_costrules *x)
{
    const struct kp_costplace *const most = kp_costplaces_most(&x->places->parts[KP_SPLIT_LOADING]);
    return most && kp_kineto_is_of_workers(kp_kineto_text(x->tree->trace, most->name));
}

bool kp_part_is_of_others(const struct kp_costrules *x, enum kp_split_part part)
{
    return part == KP_SPLIT_COMM || (part == KP_SPLIT_LOADING && is_by_workers(x));
}

struct waits {
    double *of; /* by step */
    double above_ns, all_ns;
    struct kp_some_steps burst; /* of the few */
    size_t bursts, steps;
};

/* Sets from where on a wait is one of the few. */
static void above_find(struct waits *w)
{
    struct kp_sample all = {0};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < w->steps; i++) kp_sample_add(&all, w->of[i]);
    const double usual = kp_sample_end(&all, 0.5);
    w->above_ns = BURST_USUALS * usual > usual + KP_HAND_OVER_NS ? BURST_USUALS * usual : usual + KP_HAND_OVER_NS;
    for (size_t i = 0; i < w->steps; i++) {
        if (w->of[i] < w->above_ns) continue;
        sum += w->of[i];
        squares += w->of[i] * w->of[i];
    }
    if (sum > 0 && BURST_NEAR * squares / sum > w->above_ns) w->above_ns = BURST_NEAR * squares / sum;
}

static void waits_find(struct waits *w, const struct kp_step_split *splits)
{
    for (size_t i = 0; i < w->steps; i++) w->of[i] = (double)splits[i].part_ns[KP_SPLIT_LOADING];
    above_find(w);
    for (size_t i = 0; i < w->steps; i++) {
        w->all_ns += w->of[i];
        if (w->of[i] < w->above_ns) continue;
        w->bursts++;
        if (w->of[i] > w->burst.most_ns) w->burst.most_ns = w->of[i];
        if (w->bursts == 1 || w->of[i] < w->burst.least_ns) w->burst.least_ns = w->of[i];
        w->burst.all_ns += w->of[i];
    }
}

/* ", about each 4th step": where the distances between them tell; or "". */
static const char *every_text(const struct kp_costrules *x, const struct waits *w)
{
    size_t count = 0, near = 0;
    long last = -1;
    double *apart = kp_kineto_room(w->bursts + 1, sizeof *apart);
    for (size_t i = 0; i < w->steps; i++) {
        if (w->of[i] < w->above_ns) continue;
        if (last >= 0) apart[count++] = (double)(x->chosen->steps[i].number - last);
        last = x->chosen->steps[i].number;
    }
    const double usual = kp_quantile(apart, count, 0.5);
    const long every = (long)(usual + 0.5);
    for (size_t i = 0; i < count; i++) near += apart[i] >= 0.75 * usual && apart[i] <= 1.25 * usual;
    free(apart);
    if (every < 2 || (double)near < EVERY_SHARE * (double)count) return "";
    return KP_TEXT(" (about each %ld%s)", every, every == 2 ? "nd" : every == 3 ? "rd" : "th");
}

static bool bursts_tell(const struct kp_costrules *x, const struct kp_step_split *splits, struct kp_finding *f)
{
    struct waits w = {.steps = x->out->steps};
    w.of = kp_kineto_room(w.steps + 1, sizeof *w.of);
    waits_find(&w, splits);
    const bool are_bursts = w.bursts >= BURSTS_LEAST && w.burst.all_ns >= BURST_SHARE * w.all_ns;
    if (are_bursts) {
        f->is_bursty = true;
        f->steps = w.bursts;
        f->some = w.burst;
        f->what = KP_TEXT("%zu steps%s wait up to %.1f ms for the DataLoader", w.bursts, every_text(x, &w),
                          w.burst.most_ns / 1e6);
        f->change =
            "See whether all workers are busy: kprof run --with-stack 1 --children --schedule 10-30, then "
            "kprof advise. If one has the slow items, or none is busy, a slow batch holds up those behind it: "
            "in_order=False (torch 2.6 and later), prefetch_factor=N. If all are: more workers while cores are free, "
            "or cheaper items.";
        for (size_t i = 0; i < w.steps; i++) w.of[i] = w.of[i] < w.above_ns ? 0 : w.of[i];
        kp_loadepochs_tell(x, w.of, f);
    }
    free(w.of);
    return are_bursts;
}

/* Each epoch starts workers, where they are not kept. Only calls of Python show that. */
static bool starts_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const struct kp_keyindex *const places = &x->places->parts[KP_SPLIT_LOADING].keys;
    const struct kp_costplace *const rows = places->rows;
    double start_ns = 0, all_ns = 0;
    size_t starts = 0;
    for (size_t i = 0; i < places->count; i++) {
        const bool is_start = kp_namefacts(x->tree->trace, rows[i].name) & KP_NAME_LOADER_START;
        all_ns += (double)rows[i].ns;
        if (!is_start) continue;
        start_ns += (double)rows[i].ns;
        starts += rows[i].count;
    }
    if (starts < 2 || start_ns < START_SHARE * all_ns) return false;
    f->what = KP_TEXT("the DataLoader starts its workers again each epoch (%zu times, %.1f ms each), and "
                      "the step waits for data",
                      starts, start_ns / 1e6 / (double)starts);
    f->change = KP_LOADER_KEEPS;
    return true;
}

void kp_loadwaits_tell(const struct kp_costrules *x, const struct kp_step_split *splits, struct kp_finding *f)
{
    if (starts_tell(x, f) || bursts_tell(x, splits, f) || !f->steps) return;
    const double each_ns = f->step_ns * (double)x->out->steps / (double)f->steps;
    if (each_ns < KP_HAND_OVER_NS) /* no longer than a batch takes to come from a worker */
        f->change = KP_TEXT(
            "Taking a batch from a worker costs about as much (queue, pickling, a process that wakes), so more workers "
            "may not help. Hand over fewer, larger batches, or make items cheaper. Without workers (num_workers=0) a "
            "step is shorter only if a batch loads in less than %.1f ms. To see how long it takes, and whether the "
            "workers are busy: kprof run --with-stack 1 --children --schedule 10-30, then kprof advise.",
            each_ns / 1e6);
}
