// SPDX-License-Identifier: Apache-2.0
/* diffjson.c - prints a comparison as one JSON object: both sides, the step, and every row of every group */
#include "export/answers/diff/diff.h"

#include <inttypes.h>

#include "export/show/plain.h"

static void text_put(FILE *out, const struct kp_diff *d, const char *key, uint32_t id)
{
    fprintf(out, ",\"%s\":", key);
    kp_plain_json(out, id ? kp_strings_get(d->strings, id) : NULL);
}

static void side_put(FILE *out, const struct kp_diff *d, int side)
{
    const struct kp_diff_side *s = &d->sides[side];
    fprintf(out, ",\"%s\":{\"files\":[", side ? "b" : "a");
    for (size_t i = 0; i < s->file_count; i++) {
        if (i) fputs(",", out);
        kp_plain_json(out, kp_strings_get(d->strings, s->files[i]));
    }
    fputs("]", out);
    text_put(out, d, "program", s->program);
    text_put(out, d, "torch", s->torch);
    text_put(out, d, "host", s->host);
    fprintf(out, ",\"samples\":%zu,\"samples_are\":\"%s\",\"gpu\":%s,\"dropped\":%" PRIu64 ",\"ops\":%.6g,\"batch\":",
            s->samples, s->has_steps ? "steps" : "traces", s->has_gpu ? "true" : "false", s->lost, s->ops);
    const int64_t batch = kp_diff_batches_size(&s->batches);
    if (batch) fprintf(out, "%" PRId64 "}", batch);
    else fputs("null}", out);
}

static void amounts_put(FILE *out, const struct kp_diff_row *row)
{
    const bool is_bytes = kp_diff_is_bytes(row->group);
    const char *unit = is_bytes ? "bytes" : "ms";
    const double by = is_bytes ? 1 : 1e6;
    const struct {
        const char *key;
        double amount;
    } all[] = {
        {"a", row->middle[KP_DIFF_A]}, {"b", row->middle[KP_DIFF_B]},        {"change", row->change},
        {"noise", row->noise},         {"a_spread", row->spread[KP_DIFF_A]}, {"b_spread", row->spread[KP_DIFF_B]}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fprintf(out, "%s\"%s_%s\":%.*f", i ? "," : "", all[i].key, unit, is_bytes ? 0 : 6, all[i].amount / by);
    fprintf(out, ",\"pairs\":%.4f,\"by_pairs\":%s,\"verdict\":\"%s\"", row->pairs, row->is_by_pairs ? "true" : "false",
            kp_diff_verdict_text(row));
}

static void row_put(FILE *out, const struct kp_diff *d, const struct kp_diff_row *row)
{
    fputs("{\"name\":", out);
    kp_plain_json(out, kp_strings_get(d->strings, row->name));
    fputs(",", out);
    amounts_put(out, row);
    if (!kp_diff_is_bytes(row->group)) fprintf(out, ",\"of_change\":%.6f", kp_diff_share(d, row));
    static const char *const keys[KP_DIFF_SIDES] = {"a_shapes", "b_shapes"};
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        if (!row->shapes[side]) continue;
        fprintf(out, ",\"%s\":", keys[side]);
        kp_plain_json(out, kp_strings_get(d->strings, row->shapes[side]));
    }
    fprintf(out, ",\"a_count\":%.6g,\"b_count\":%.6g}", row->count[KP_DIFF_A], row->count[KP_DIFF_B]);
}

void kp_diff_json(FILE *out, const struct kp_diff *d)
{
    fputs("{\"schema\":1", out);
    for (int side = 0; side < KP_DIFF_SIDES; side++) side_put(out, d, side);
    fputs(",\"step\":{", out);
    amounts_put(out, &d->step);
    double percent;
    fprintf(out, ",\"percent\":%.4f,\"sample_percent\":", kp_diff_percent(d));
    if (kp_diff_sample_percent(d, &percent)) fprintf(out, "%.4f}", percent);
    else fputs("null}", out);
    struct kp_diff_explained e;
    if (kp_diff_explain(d, &e))
        fprintf(out, ",\"explained\":{\"rows_ms\":%.6f,\"no_op_ms\":%.6f,\"no_op_in_rows\":%s}", e.rows_ns / 1e6,
                e.gap_ns / 1e6, e.is_gap_in_rows ? "true" : "false");
    else fputs(",\"explained\":null", out);
    for (int group = 0; group < KP_DIFF_GROUPS; group++) {
        fprintf(out, ",\"%s\":[", kp_diff_group_key(group));
        for (size_t i = d->group_from[group]; i < d->group_from[group + 1]; i++) {
            if (i > d->group_from[group]) fputs(",", out);
            row_put(out, d, &d->rows[i]);
        }
        fputs("]", out);
    }
    fputs("}\n", out);
}
