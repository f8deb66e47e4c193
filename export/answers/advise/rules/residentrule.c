// SPDX-License-Identifier: Apache-2.0
/*
 * residentrule.c - memory of the host that grows from step to step, whoever takes it, and files that stay open
 *
 * The recorder looks at the program's memory where steps end (preload/procfacts/residents.c). A cache that fills, or a
 * heap that finds its size, grows and then stops. So the first quarter is left out, the growth must be there in most
 * pairs of looks that are half of the rest apart, and the last half must have half of it at least, in three pieces or
 * more: a single one is a heap that found its size late. A heap takes its pieces over tens of steps, so few looks are
 * believed only where much of the program's memory has come. A program whose inputs get larger by a plan grows at few
 * steps, and not between them: three rises that have most of the growth are no leak of each step.
 */

#include <math.h>
#include <stdlib.h>

#include "export/answers/advise/rules/growthjumps.h"
#include "export/answers/advise/rules/rules.h"
#include "export/read/facts/steps/everynth.h"
#include "export/show/units.h"

enum { LOOKS_LEAST = 16, LOOKS_SURE = 64, WARM_PART = 4, BLOCKS = 24, STAGES = 3, END_LOOKS = 5, FULL_TIMES = 10 };
#define GROWS_LEAST (16.0 * 1024) /* a step: what is less is a heap in pieces */
#define GROWS_CRITICAL (64.0 * 1024)
#define FILES_CRITICAL 0.5            /* a step */
#define ALL_LEAST (8.0 * 1024 * 1024) /* in all of these steps */
#define ALL_FEW (1.0 / 16)            /* of the memory at the first look, where the looks are few */
#define OFTEN 0.25                    /* of the looks: an array in each step, which the heap takes in pieces */
#define STEADY 0.5   /* of the growth: a quarter of the pairs has less, and the last half; one piece of that */
#define STAGED 0.6   /* of the growth: what so few rises have, from block to block */
#define FALLS_MOST 5 /* so many usual falls */
#define FALLS_USUAL 0.9
#define RESERVED 0.5  /* of the growth: what the address space grew meanwhile, where the program had it before */
#define EXPLAINED 0.5 /* by tensors, which have a finding of their own: what is left is less */

#define KEEPING_LINE "To see the line that keeps it: kprof run --malloc trace --with-stack -- ..., then kprof advise."

struct looks {
    struct kp_sample step, bytes; /* in the order of the looks; bytes: or how many files are open */
};
struct growth_bounds {
    double each, all, of_first; /* a step, in all, and of what there was at first where the looks are few: at least */
};
static const struct growth_bounds of_memory = {GROWS_LEAST, ALL_LEAST, ALL_FEW}, of_files = {0.1, 24, 0.5};

/* Reads "17:60000,22:61000", so many `units` at the ends of steps, of all windows that were put behind one another. */
static struct looks looks_read(const struct kp_kineto *trace, const char *fact, double units)
{
    struct looks l = {0};
    for (size_t i = 0; i < trace->fact_count; i++) {
        const char *at = kp_kineto_text(trace, trace->facts[i].text);
        if (strcmp(kp_kineto_text(trace, trace->facts[i].path), fact) != 0) continue;
        for (char *end; *at; at = *end == ',' ? end + 1 : end) {
            const double step = strtod(at, &end);
            if (end == at || *end != ':') break;
            kp_sample_add(&l.step, step);
            kp_sample_add(&l.bytes, units * strtod(end + 1, &end));
        }
    }
    return l;
}

/* The growth of a step between looks that are half of [from, end) apart: the value at this share of all pairs. */
static double growth_at(const struct looks *l, size_t from, size_t end, double share)
{
    const size_t half = (end - from) / 2;
    struct kp_sample slopes = {0};
    for (size_t i = from; i + half < end && slopes.count < half; i++) {
        const double steps = l->step.of[i + half] - l->step.of[i];
        if (steps > 0) kp_sample_add(&slopes, (l->bytes.of[i + half] - l->bytes.of[i]) / steps);
    }
    return kp_sample_end(&slopes, share);
}

/* Has one piece half of what [from, end) grows? */
static bool is_one_piece(const struct looks *l, size_t from, size_t end)
{
    double most = 0;
    for (size_t i = from + 1; i < end; i++)
        if (l->bytes.of[i] - l->bytes.of[i - 1] > most) most = l->bytes.of[i] - l->bytes.of[i - 1];
    return most >= STEADY * (l->bytes.of[end - 1] - l->bytes.of[from]);
}

/* The median of one of `count` blocks of [from, end). */
static double block_of(const struct looks *l, size_t from, size_t end, size_t block, size_t count)
{
    struct kp_sample those = {0};
    for (size_t i = from + (end - from) * block / count; i < from + (end - from) * (block + 1) / count; i++)
        kp_sample_add(&those, l->bytes.of[i]);
    return kp_sample_end(&those, 0.5);
}

/* Do the largest few rises have most of what [from, end) grows? Memory that comes back once it was freed is none. */
static bool is_in_stages(const struct looks *l, size_t from, size_t end)
{
    const size_t count = end - from < BLOCKS ? end - from : BLOCKS;
    const double first = block_of(l, from, end, 0, count);
    double most = first, stages = 0;
    struct kp_sample rises = {0};
    for (size_t i = 1; i < count; i++) {
        const double now = block_of(l, from, end, i, count);
        kp_sample_add(&rises, fmax(now - most, 0));
        most = fmax(most, now);
    }
    for (size_t i = 0; i < STAGES && i < rises.count; i++)
        stages += kp_quantile(rises.of, rises.count, 1 - (double)i / (double)(rises.count - 1));
    free(rises.of);
    return stages >= STAGED * (most - first);
}

/* At how many looks did the program have more than ever before? */
static size_t rises_of(const struct looks *l)
{
    size_t rises = 0;
    double most = l->bytes.of[0];
    for (size_t i = 1; i < l->bytes.count; i++) {
        rises += l->bytes.of[i] > most;
        most = fmax(most, l->bytes.of[i]);
    }
    return rises;
}

/* Is the growth no larger than a few of the usual falls below what there was before? These are blocks that come and go,
 * by which a program has ever more only by chance, or until it has seen its largest. */
static bool is_of_falls(const struct looks *l, size_t from, size_t end)
{
    struct kp_sample last = {0}, falls = {0};
    double most = l->bytes.of[from];
    for (size_t i = from; i < end; i++) {
        most = fmax(most, l->bytes.of[i]);
        kp_sample_add(&falls, most - l->bytes.of[i]);
    }
    for (size_t i = end - END_LOOKS; i < end; i++) kp_sample_add(&last, l->bytes.of[i]);
    return kp_sample_end(&last, 0.5) - l->bytes.of[from] < FALLS_MOST * kp_sample_end(&falls, FALLS_USUAL);
}

struct growing {
    size_t steps;  /* in which it grows: all, or where that is less than half of the looks those */
    long distance; /* of those few, where it is even; 0 */
};

/* The distance is that behind the first quarter, where a heap may find its size. */
static struct growing growing_of(const struct kp_costrules *x, const struct looks *l)
{
    const size_t rises = rises_of(l), from = l->step.count / WARM_PART;
    if (rises >= STEADY * (double)l->step.count) return (struct growing){x->out->steps, 0};
    return (struct growing){rises,
                            kp_growthjumps_distance(l->step.of + from, l->bytes.of + from, l->step.count - from)};
}

/* Does the program, which grows so much a step, soon have all memory that it may have? Not where that is not known. */
static bool is_soon_full(const struct kp_costrules *x, const struct looks *l, double each)
{
    const size_t last = l->step.count - 1;
    const double limit = 1024 * kp_costrules_fact(x, "kprof.memory_kb");
    return limit > 0 && l->bytes.of[last] + each * FULL_TIMES * (l->step.of[last] - l->step.of[0]) >= limit;
}

static void looks_free(struct looks *l)
{
    free(l->step.of);
    free(l->bytes.of);
}

/* Had the program most of the addresses before that it has touched since the first quarter? If they were not looked at
 * as often, it is not known. */
static bool is_reserved(const struct kp_kineto *trace, const struct looks *l, double each)
{
    struct looks addresses = looks_read(trace, "kprof.address_steps", 1024);
    const size_t count = l->step.count, from = count / WARM_PART;
    const bool is_known = count && addresses.step.count == count;
    const double grown = is_known ? addresses.bytes.of[count - 1] - addresses.bytes.of[from] : 0;
    const bool is = is_known && grown < RESERVED * each * (l->step.of[count - 1] - l->step.of[from]);
    looks_free(&addresses);
    return is;
}

/* So much a step; 0: it does not grow, or stops to. */
static double growth_of(const struct looks *l, const struct growth_bounds *least)
{
    const size_t count = l->step.count, from = count / WARM_PART, last = count - (count - from) / 2;
    if (count < LOOKS_LEAST) return 0;
    const double each = growth_at(l, from, count, 0.5);
    const bool is_steady = growth_at(l, from, count, 0.25) >= STEADY * each &&
                           growth_at(l, last, count, 0.5) >= STEADY * each && !is_one_piece(l, last, count) &&
                           !is_in_stages(l, from, count) && !is_of_falls(l, from, count);
    const double all = each * (l->step.of[count - 1] - l->step.of[from]), of_few = least->of_first * l->bytes.of[0];
    const bool is_much = all >= least->all && (count >= LOOKS_SURE || all >= of_few);
    return is_steady && each >= least->each && is_much ? each : 0;
}

static const char *tensors_text(const struct kp_costrules *x, double tensors)
{
    char size[32];
    if (!x->tree->trace->memory_count) return "torch's tensors are not recorded";
    return tensors > 0
               ? KP_TEXT("torch's tensors explain %s of it", kp_units_bytes(size, sizeof size, (int64_t)tensors))
               : "torch's tensors explain none of it";
}

/* "with each step", "in jumps, each 40th step by about 2.60 MiB". */
static const char *when_text(const struct kp_costrules *x, const struct growing *g, double each)
{
    char every[32];
    if (g->steps == x->out->steps) return "with each step";
    if (!g->distance) return "in some steps, per step on average";
    return KP_TEXT("in jumps%s by about %s", kp_everynth_text(every, sizeof every, g->distance),
                   kp_units_size((int64_t)(each * (double)g->distance)));
}

static void resident_tell(struct kp_costrules *x, const struct looks *looks, double each, double tensors)
{
    const struct growing g = growing_of(x, looks);
    struct kp_finding f = {.id = KP_FINDING_RESIDENT, .step_bytes = each, .steps = g.steps};
    const bool is_full = is_soon_full(x, looks, each);
    f.what =
        KP_TEXT("the program's memory on the host grows %s (%s)%s", when_text(x, &g, each), tensors_text(x, tensors),
                is_full ? KP_TEXT(", and nears the %s that it may have",
                                  kp_units_size((int64_t)(1024 * kp_costrules_fact(x, "kprof.memory_kb"))))
                        : "");
    f.change = x->tree->trace->memory_count ? KEEPING_LINE
                                            : KEEPING_LINE
                   " For tensors alone: kprof run --profile-memory --with-stack ops.";
    const bool is_often = (double)g.steps >= OFTEN * (double)looks->step.count && !g.distance;
    f.is_critical = is_full || (is_often && each >= GROWS_CRITICAL);
    kp_costrules_tell(x, &f);
}

void kp_rules_resident(struct kp_costrules *x)
{
    struct looks looks = looks_read(x->tree->trace, "kprof.resident_steps", 1024);
    const struct kp_finding *const of_tensors = kp_costrules_find(x, KP_FINDING_GROWS);
    const double each =
        x->tree->trace->has_heap ? 0 : growth_of(&looks, &of_memory); /* a traced heap tells it by line */
    const double tensors = of_tensors ? of_tensors->step_bytes : 0;
    if (each > 0 && tensors < EXPLAINED * each) {
        if (!is_reserved(x->tree->trace, &looks, each)) resident_tell(x, &looks, each, tensors);
        else
            x->out->filled = KP_TEXT("the program's memory on the host grows by %s per step, in addresses that it "
                                     "had before: a buffer that fills, as of np.zeros(), stops growing when it is full",
                                     kp_units_size((int64_t)each));
    }
    looks_free(&looks);
}

/* Each batch of a DataLoader's worker that is kept has a file: its memory. */
void kp_rules_open_files(struct kp_costrules *x)
{
    struct looks looks = looks_read(x->tree->trace, "kprof.file_steps", 1);
    const double each = growth_of(&looks, &of_files);
    if (each > 0) {
        const struct growing g = growing_of(x, &looks);
        struct kp_finding f = {.id = KP_FINDING_FILES, .steps = g.steps};
        char every[32];
        f.what = KP_TEXT("the program opens files that stay open, %.2g per step%s: %.0f are open at first and %.0f in "
                         "the end",
                         each, kp_everynth_text(every, sizeof every, g.distance), looks.bytes.of[0],
                         looks.bytes.of[looks.bytes.count - 1]);
        f.change =
            "At its limit (ulimit -n) it fails with \"Too many open files\". A batch of a DataLoader's worker that "
            "is kept, also by a view of it, keeps a file of shared memory open: keep copies (.clone()). Else "
            "close what is opened: with open(...) as file. ls -l /proc/PID/fd names the files.";
        f.is_critical = each >= FILES_CRITICAL;
        kp_costrules_tell(x, &f);
    }
    looks_free(&looks);
}
