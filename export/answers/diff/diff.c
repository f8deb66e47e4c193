// SPDX-License-Identifier: Apache-2.0
/*
 * diff.c - compares two sets of samples: medians, with the spread between steps as the yardstick (decisions/066)
 *
 * The spread of a side is its median absolute deviation, scaled to a normal distribution's sigma. Few samples
 * understate it, so it is widened by the factors of Croux and Rousseeuw. A change is real beyond twice both spreads
 * together, and beyond a thousandth of a step. A smaller one is real where nearly every pair of a step of A and one of
 * B agrees: a side whose steps differ much has a wide spread, but may lie wholly above the other. With many steps a
 * side the interval of the change judges the step and its parts in place of the pairs (decisions/154).
 */
#include "export/answers/diff/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/answers/top/timeshares.h"
#include "export/read/store/qsort.h"

enum { SAMPLES_LEAST = 3, PAIRS_LEAST = 10, INTERVAL_LEAST = 20 /* samples a side */ };
#define NOISE_SPREADS 2.0
#define NOISE_OF_STEP 0.001
#define NORMAL_SIGMA 1.4826
#define PAIRS_STEP 0.85       /* of a step and its parts */
#define PAIRS_ROW 0.95        /* of hundreds of rows, of which some differ by chance */
#define INTERVAL_SIGMAS 2.576 /* 99 of 100 */
#define INTERVAL_LONE 0.05    /* of a step: one run a side differs by as much on a busier machine */

void kp_diff_open(struct kp_diff *d) { *d = (struct kp_diff){.strings = kp_strings_open()}; }

static void row_fini(struct kp_diff_row *row)
{
    for (int side = 0; side < KP_DIFF_SIDES; side++) free(row->values[side]);
}

static void rank_close(struct kp_diff_rank *r)
{
    kp_diff_close(r->of);
    free(r->of);
}

static void ranks_close(struct kp_diff *d)
{
    for (size_t i = 0; i < d->rank_count; i++) rank_close(&d->ranks[i]);
    free(d->ranks);
}

void kp_diff_close(struct kp_diff *d)
{
    for (size_t i = 0; i < d->count; i++) row_fini(&d->rows[i]);
    row_fini(&d->step);
    row_fini(&d->own);
    row_fini(&d->on_core);
    ranks_close(d);
    for (int side = 0; side < KP_DIFF_SIDES; side++) free(d->sides[side].files);
    free(d->rows);
    kp_keyindex_fini(&d->keys);
    kp_strings_close(d->strings);
    *d = (struct kp_diff){0};
}

struct kp_diff_row *kp_diff_row_get(struct kp_diff *d, int group, uint32_t name)
{
    const size_t at = kp_keyindex_get(&d->keys, (uint64_t)name | (uint64_t)group << 32);
    if (at == d->count) {
        *KP_KINETO_NEXT(d->rows, d->count, d->capacity) = (struct kp_diff_row){.name = name, .group = (uint8_t)group};
    }
    return &d->rows[at];
}

/* Samples that the row has no part in are 0. */
static void row_fill(struct kp_diff_row *row, int side, size_t samples)
{
    row->values[side] = kp_kineto_grow(row->values[side], &row->capacity[side], samples, sizeof(double));
    while (row->filled[side] < samples) row->values[side][row->filled[side]++] = 0;
}

struct kp_diff *kp_diff_rank_get(struct kp_diff *d, long rank)
{
    for (size_t i = 0; i < d->rank_count; i++)
        if (d->ranks[i].rank == rank) return d->ranks[i].of;
    struct kp_diff *const of = kp_kineto_zeros(1, sizeof *of);
    kp_diff_open(of);
    *KP_KINETO_NEXT(d->ranks, d->rank_count, d->rank_capacity) = (struct kp_diff_rank){.rank = rank, .of = of};
    return of;
}

void kp_diff_sample_add(struct kp_diff_row *row, int side, size_t sample, double value)
{
    if (sample >= row->filled[side]) row_fill(row, side, sample + 1);
    row->values[side][sample] += value;
}

/* ---- middle and spread ---- */

static double few_factor(size_t count)
{
    static const double factors[] = {1, 1, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
    return count < sizeof factors / sizeof *factors ? factors[count] : (double)count / ((double)count - 0.8);
}

/*
 * The median lies between two of the sorted samples, however they are distributed. Neighbours that lie on one side of
 * it more often than by chance count for fewer samples.
 */
static void side_interval(struct kp_diff_row *row, int side, size_t samples, const double *sorted)
{
    const double middle = row->middle[side], *const values = row->values[side];
    size_t same = 0;
    if (samples < INTERVAL_LEAST) return;
    for (size_t i = 1; i < samples; i++) same += (values[i] > middle) == (values[i - 1] > middle);
    const double kept = fmin(fmax(2 * (double)same / (double)(samples - 1) - 1, 0), 0.9);
    const double ranks = INTERVAL_SIGMAS / 2 * sqrt((double)samples * (1 + kept) / (1 - kept));
    const size_t from = (size_t)fmax(floor(((double)samples + 1) / 2 - ranks), 1);
    row->below[side] = middle - sorted[from - 1];
    row->above[side] = sorted[samples - from] - middle;
}

static void side_measure(struct kp_diff_row *row, int side, size_t samples, double *scratch)
{
    row_fill(row, side, samples);
    if (samples) memcpy(scratch, row->values[side], samples * sizeof *scratch);
    const double middle = row->middle[side] = kp_quantile(scratch, samples, 0.5);
    side_interval(row, side, samples, scratch);
    for (size_t i = 0; i < samples; i++) scratch[i] = fabs(scratch[i] - middle);
    row->spread[side] = NORMAL_SIGMA * few_factor(samples) * kp_quantile(scratch, samples, 0.5);
    if (samples) row->count[side] /= (double)samples;
}

/* In which share of the pairs B's is more, equal ones half. Both sides' values get sorted. */
static double step_pairs_share_more(struct kp_diff_row *row, size_t a_count, size_t b_count)
{
    const double *a = row->values[KP_DIFF_A], *b = row->values[KP_DIFF_B];
    double more = 0;
    if (!a_count || !b_count) return 0;
    kp_quantile(row->values[KP_DIFF_A], a_count, 0); /* sorts them */
    kp_quantile(row->values[KP_DIFF_B], b_count, 0);
    for (size_t i = 0, less = 0, through = 0; i < b_count; i++) {
        while (less < a_count && a[less] < b[i]) less++;
        while (through < a_count && a[through] <= b[i]) through++;
        more += (double)less + (double)(through - less) / 2;
    }
    return more / (double)a_count / (double)b_count;
}

static bool has_samples(const struct kp_diff *d, size_t least)
{
    return d->sides[KP_DIFF_A].samples >= least && d->sides[KP_DIFF_B].samples >= least;
}

static bool is_of_step(const struct kp_diff *d, const struct kp_diff_row *row)
{
    return row == &d->step || row->group == KP_DIFF_PARTS;
}

static bool step_pairs_tell(const struct kp_diff *d, const struct kp_diff_row *row)
{
    if (!has_samples(d, PAIRS_LEAST)) return false;
    const double real = is_of_step(d, row) ? PAIRS_STEP : PAIRS_ROW;
    return row->change > 0 ? row->pairs >= real : row->pairs <= 1 - real;
}

static bool is_absent(const struct kp_diff_row *row, int side) { return !(row->count[side] > 0); }

/* A smaller change is noise, however steady. */
static double least_of(const struct kp_diff *d, const struct kp_diff_row *row)
{
    return kp_diff_is_bytes(row->group) ? 0 : NOISE_OF_STEP * d->step.middle[KP_DIFF_A];
}

static bool has_lone_run(const struct kp_diff *d)
{
    return d->sides[KP_DIFF_A].file_count < 2 || d->sides[KP_DIFF_B].file_count < 2;
}

static bool interval_shows(const struct kp_diff *d, const struct kp_diff_row *row)
{
    const double least = has_lone_run(d) ? INTERVAL_LONE * d->step.middle[KP_DIFF_A] : 0;
    return row->has_interval && row->low * row->high > 0 && fabs(row->change) > least;
}

static uint8_t verdict_of(const struct kp_diff *d, struct kp_diff_row *row)
{
    const bool is_counted = row->group != KP_DIFF_PARTS && row->group != KP_DIFF_MEMORY;
    if (is_counted && is_absent(row, KP_DIFF_A) && !is_absent(row, KP_DIFF_B)) return KP_DIFF_APPEARED;
    if (is_counted && is_absent(row, KP_DIFF_B) && !is_absent(row, KP_DIFF_A)) return KP_DIFF_WENT;
    if (!has_samples(d, SAMPLES_LEAST)) return KP_DIFF_UNKNOWN;
    if (fabs(row->change) <= least_of(d, row)) return KP_DIFF_NOISE;
    if (fabs(row->change) <= row->noise) {
        row->is_by_interval = interval_shows(d, row);
        row->is_by_pairs = !row->has_interval && step_pairs_tell(d, row);
        if (!row->is_by_interval && !row->is_by_pairs) return KP_DIFF_NOISE;
    }
    return row->change > 0 ? KP_DIFF_MORE : KP_DIFF_LESS;
}

static void row_measure(const struct kp_diff *d, struct kp_diff_row *row, double *scratch)
{
    for (int side = 0; side < KP_DIFF_SIDES; side++) side_measure(row, side, d->sides[side].samples, scratch);
    row->change = row->middle[KP_DIFF_B] - row->middle[KP_DIFF_A];
    row->has_interval = is_of_step(d, row) && has_samples(d, INTERVAL_LEAST);
    row->low = row->change - hypot(row->below[KP_DIFF_B], row->above[KP_DIFF_A]);
    row->high = row->change + hypot(row->above[KP_DIFF_B], row->below[KP_DIFF_A]);
    row->pairs = step_pairs_share_more(row, d->sides[KP_DIFF_A].samples, d->sides[KP_DIFF_B].samples);
    row->noise = fmax(NOISE_SPREADS * hypot(row->spread[KP_DIFF_A], row->spread[KP_DIFF_B]), least_of(d, row));
    row->verdict = verdict_of(d, row);
}

/* ---- order ---- */

KP_ORDER(by_rank, struct kp_diff_rank, rank)

static int row_order(const void *a, const void *b, void *context)
{
    const struct kp_diff_row *x = a, *y = b;
    const struct kp_diff *d = context;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    const double i = fabs(x->change), j = fabs(y->change);
    if (i < j || i > j) return i > j ? -1 : 1;
    return strcmp(kp_strings_get(d->strings, x->name), kp_strings_get(d->strings, y->name));
}

static void ranks_settle(struct kp_diff *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->rank_count; i++) {
        struct kp_diff *const of = d->ranks[i].of;
        if (!of->sides[KP_DIFF_A].samples || !of->sides[KP_DIFF_B].samples) {
            rank_close(&d->ranks[i]);
            continue;
        }
        kp_diff_settle(of);
        d->ranks[kept++] = d->ranks[i];
    }
    d->rank_count = kept;
    if (kept) qsort(d->ranks, kept, sizeof *d->ranks, by_rank);
}

void kp_diff_settle(struct kp_diff *d)
{
    size_t most = 1;
    for (int side = 0; side < KP_DIFF_SIDES; side++)
        if (d->sides[side].samples > most) most = d->sides[side].samples;
    double *scratch = kp_kineto_room(most, sizeof *scratch);
    for (int side = 0; side < KP_DIFF_SIDES; side++)
        if (d->sides[side].samples) d->sides[side].ops /= (double)d->sides[side].samples;
    kp_diff_lines_meet(d);
    row_measure(d, &d->step, scratch); /* first: rows ask for its length */
    row_measure(d, &d->own, scratch);
    row_measure(d, &d->on_core, scratch);
    for (size_t i = 0; i < d->count; i++) row_measure(d, &d->rows[i], scratch);
    free(scratch);
    if (d->count) qsort_r(d->rows, d->count, sizeof *d->rows, row_order, d);
    kp_keyindex_fini(&d->keys); /* rows have moved */
    for (size_t group = 0, i = 0; group <= KP_DIFF_GROUPS; group++) {
        while (i < d->count && d->rows[i].group < group) i++;
        d->group_from[group] = i;
    }
    ranks_settle(d);
}

double kp_diff_percent(const struct kp_diff *d)
{
    return d->step.middle[KP_DIFF_A] > 0 ? 100 * d->step.change / d->step.middle[KP_DIFF_A] : 0;
}

bool kp_diff_may_be_the_machine(const struct kp_diff *d)
{
    return (d->step.is_by_pairs || d->step.is_by_interval) && has_lone_run(d);
}

double kp_diff_core_wait(const struct kp_diff *d, int side)
{
    const struct kp_diff_side *const s = &d->sides[side];
    const double wanted_us = s->core_had_us + s->core_waited_us;
    if (!s->samples || !(wanted_us > 0)) return 0;
    return fmin(1000 * s->core_waited_us / (double)s->samples, d->step.middle[side] * s->core_waited_us / wanted_us);
}

bool kp_diff_is_core_wait(const struct kp_diff *d, double percent)
{
    const double wait = kp_diff_core_wait(d, KP_DIFF_B),
                 a = d->step.middle[KP_DIFF_A] - kp_diff_core_wait(d, KP_DIFF_A);
    if (d->sides[KP_DIFF_B].has_gpu || wait < KP_CORE_WAITED_MUCH * d->step.middle[KP_DIFF_B] || !(a > 0)) return false;
    const double rest = d->step.middle[KP_DIFF_B] - wait - a;
    return 100 * rest / a <= percent || rest <= d->step.noise;
}

static bool has_waits(const struct kp_diff_side *s) { return !s->has_gpu && s->has_steps && s->core_had_us > 0; }

bool kp_diff_is_hidden(const struct kp_diff *d)
{
    const bool is_known = has_waits(&d->sides[KP_DIFF_A]) && has_waits(&d->sides[KP_DIFF_B]);
    const uint8_t verdict = d->on_core.verdict;
    return is_known && d->step.verdict == KP_DIFF_NOISE && (verdict == KP_DIFF_MORE || verdict == KP_DIFF_LESS);
}

bool kp_diff_sample_percent(const struct kp_diff *d, double *percent)
{
    const double a = (double)kp_diff_batches_size(&d->sides[KP_DIFF_A].batches);
    const double b = (double)kp_diff_batches_size(&d->sides[KP_DIFF_B].batches);
    if (!(a > 0 && b > 0 && d->step.middle[KP_DIFF_A] > 0) || fabs(a - b) < 1) return false;
    *percent = 100 * (d->step.middle[KP_DIFF_B] / b / (d->step.middle[KP_DIFF_A] / a) - 1);
    return true;
}

double kp_diff_share(const struct kp_diff *d, const struct kp_diff_row *row)
{
    return kp_diff_is_bytes(row->group) || fabs(d->step.change) <= 0 ? 0 : row->change / d->step.change;
}
