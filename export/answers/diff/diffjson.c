// SPDX-License-Identifier: Apache-2.0
/* diffjson.c - prints a comparison as one JSON object: both sides, the step, and every row of every group */
#include "export/answers/diff/diff.h"

#include <math.h>

#include "export/show/fields.h"

struct diffjson_item {
    const struct kp_diff *diff;
    const struct kp_diff_side *side;
    const struct kp_diff_row *row;
};

/* NULL: none. */
static const char *text_of(const struct kp_diff *d, uint32_t id) { return id ? kp_strings_get(d->strings, id) : NULL; }

static double sample_percent(const struct kp_diff *d)
{
    double percent;
    return kp_diff_sample_percent(d, &percent) ? percent : NAN;
}

/* NULL: the change has no parts. */
static const struct kp_diff_explained *explained(const struct kp_diff *d, struct kp_diff_explained *room)
{
    return kp_diff_explain(d, room) ? room : NULL;
}

/* clang-format off */
#define SIDE(F, IF) \
    F(TEXTS, files, (r->side->file_count, kp_strings_get(r->diff->strings, r->side->files[i]))) \
    F(MAYBE, program, text_of(r->diff, r->side->program)) \
    F(MAYBE, torch, text_of(r->diff, r->side->torch)) \
    F(MAYBE, host, text_of(r->diff, r->side->host)) \
    F(WHOLE, samples, r->side->samples) \
    F(WORD, samples_are, (r->side->has_steps ? "steps" : "traces", "steps|traces")) \
    F(BOOL, gpu, r->side->has_gpu) \
    F(WHOLE, dropped, r->side->lost) \
    F(REAL, ops, r->side->ops) \
    F(MAYBE_WHOLE, batch, kp_diff_batches_size(&r->side->batches) ? kp_diff_batches_size(&r->side->batches) : -1)
KP_FIELDS(side, struct diffjson_item, SIDE)

#define IS_BYTES kp_diff_is_bytes(r->row->group)
#define AMOUNT(IF, name, value) \
    IF(!IS_BYTES, MS, name##_ms, value) \
    IF(IS_BYTES, BYTES, name##_bytes, value)
#define AMOUNTS(F, IF) \
    AMOUNT(IF, a, r->row->middle[KP_DIFF_A]) \
    AMOUNT(IF, b, r->row->middle[KP_DIFF_B]) \
    AMOUNT(IF, change, r->row->change) \
    AMOUNT(IF, noise, r->row->noise) \
    AMOUNT(IF, a_spread, r->row->spread[KP_DIFF_A]) \
    AMOUNT(IF, b_spread, r->row->spread[KP_DIFF_B]) \
    IF(r->row->has_interval, MS, low_ms, r->row->low) \
    IF(r->row->has_interval, MS, high_ms, r->row->high) \
    F(FIXED, pairs, (4, r->row->pairs)) \
    F(BOOL, by_pairs, r->row->is_by_pairs) \
    F(BOOL, by_interval, r->row->is_by_interval) \
    F(TEXT, verdict, kp_diff_verdict_text(r->row))
KP_FIELDS(amounts, struct diffjson_item, AMOUNTS)

#define ROW(F, IF) \
    F(TEXT, name, kp_strings_get(r->diff->strings, r->row->name)) \
    F(PART, , (amounts, r)) \
    IF(!IS_BYTES, SHARE, of_change, kp_diff_share(r->diff, r->row)) \
    F(SOME, a_shapes, text_of(r->diff, r->row->shapes[KP_DIFF_A])) \
    F(SOME, b_shapes, text_of(r->diff, r->row->shapes[KP_DIFF_B])) \
    F(REAL, a_count, r->row->count[KP_DIFF_A]) \
    F(REAL, b_count, r->row->count[KP_DIFF_B])
KP_FIELDS(row, struct diffjson_item, ROW)

#define STEP(F, IF) \
    F(PART, , (amounts, &(struct diffjson_item){r, NULL, &r->step})) \
    F(FIXED, percent, (4, kp_diff_percent(r))) \
    F(MAYBE_FIXED, sample_percent, (4, sample_percent(r)))
KP_FIELDS(step, struct kp_diff, STEP)

static const struct diffjson_item *rank_line(const struct kp_diff_rank *r, struct diffjson_item *room)
{
    *room = (struct diffjson_item){r->of, NULL, kp_diff_line_most(r->of, &r->of->own)};
    return room->row ? room : NULL;
}

static long rank_most(const struct kp_diff *d)
{
    const struct kp_diff_rank *const most = kp_diff_rank_most(d, &(double){0});
    return most ? most->rank : -1;
}

#define RANK(F, IF) \
    F(WHOLE, rank, r->rank) \
    F(PART, , (amounts, &(struct diffjson_item){r->of, NULL, &r->of->own})) \
    F(MAYBE_OBJECT, line, (row, rank_line(r, &(struct diffjson_item){0})))
KP_FIELDS(rank, struct kp_diff_rank, RANK)

#define EXPLAINED(F, IF) \
    F(MS, rows_ms, r->rows_ns) \
    F(MS, no_op_ms, r->gap_ns) \
    F(BOOL, no_op_in_rows, r->is_gap_in_rows)
KP_FIELDS(explained, struct kp_diff_explained, EXPLAINED)

/* NULL: waits for a core hide no change of the step. */
static const struct diffjson_item *on_core(const struct kp_diff *d, struct diffjson_item *room)
{
    *room = (struct diffjson_item){d, NULL, &d->on_core};
    return kp_diff_is_hidden(d) ? room : NULL;
}

#define GROUP(group) \
    (row, r->group_from[KP_DIFF_##group + 1] - r->group_from[KP_DIFF_##group], \
     &(struct diffjson_item){r, NULL, &r->rows[r->group_from[KP_DIFF_##group] + i]})
#define DIFF(F, IF) \
    F(VERSION, schema, 1) \
    F(OBJECT, a, (side, &(struct diffjson_item){r, &r->sides[KP_DIFF_A], NULL})) \
    F(OBJECT, b, (side, &(struct diffjson_item){r, &r->sides[KP_DIFF_B], NULL})) \
    F(OBJECT, step, (step, r)) \
    F(MAYBE_OBJECT, on_core, (amounts, on_core(r, &(struct diffjson_item){0}))) \
    F(MAYBE_OBJECT, explained, (explained, explained(r, &(struct kp_diff_explained){0}))) \
    F(MAYBE_WHOLE, rank_most, rank_most(r)) \
    F(LIST, ranks, (rank, r->rank_count, &r->ranks[i])) \
    F(LIST, parts, GROUP(PARTS)) \
    F(LIST, lines, GROUP(LINES)) \
    F(LIST, ops, GROUP(OPS)) \
    F(LIST, gpu_ops, GROUP(GPU_OPS)) \
    F(LIST, kernels, GROUP(KERNELS)) \
    F(LIST, modules, GROUP(MODULES)) \
    F(LIST, memory, GROUP(MEMORY)) \
    F(LIST, ops_memory, GROUP(OPS_MEMORY))
KP_FIELDS(diff, struct kp_diff, DIFF)
/* clang-format on */

const struct kp_fields *const kp_diff_schema = &diff_fields;

void kp_diff_json(FILE *out, const struct kp_diff *d) { kp_fields_line(out, &diff_fields, d); }
