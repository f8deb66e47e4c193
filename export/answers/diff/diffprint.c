// SPDX-License-Identifier: Apache-2.0
/* diffprint.c - prints a comparison for people: a head with both sides, and a table a group */
#include "export/answers/diff/diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "export/show/plain.h"
#include "export/show/letters.h"
#include "export/show/terminal.h"
#include "export/answers/top/timeshares.h"
#include "export/show/units.h"

enum { NAME_WIDTH = 44, NAME_LEAST = 16, NUMBERS_WIDTH = 74, NARROW_WIDTH = 52, HEAD_WIDTH = 15, CELL_BYTES = 64 };

static const struct {
    const char *title, *rows;
} groups[] = {
    [KP_DIFF_PARTS] = {"parts of a step", "parts"},
    [KP_DIFF_LINES] = {"lines of the program, self time", "lines"},
    [KP_DIFF_OPS] = {"ops and functions, self time on the host", "ops"},
    [KP_DIFF_GPU_OPS] = {"ops, time of their kernels", "ops"},
    [KP_DIFF_KERNELS] = {"kernels and copies", "kernels"},
    [KP_DIFF_MODULES] = {"modules, self time", "modules"},
    [KP_DIFF_MEMORY] = {"memory", "rows"},
    [KP_DIFF_OPS_MEMORY] = {"ops, memory allocated less freed", "ops"},
};

const char *kp_diff_verdict_text(const struct kp_diff_row *row)
{
    const bool is_time = !kp_diff_is_bytes(row->group);
    switch (row->verdict) {
    case KP_DIFF_MORE: return is_time ? "slower" : "more";
    case KP_DIFF_LESS: return is_time ? "faster" : "less";
    case KP_DIFF_APPEARED: return "appeared";
    case KP_DIFF_WENT: return "went";
    case KP_DIFF_UNKNOWN: return "too few steps";
    default: return "within noise";
    }
}

/* ---- cells ---- */

static const char *amount_text(char *out, const struct kp_diff_row *row, double amount, bool with_sign)
{
    const char *sign = with_sign && amount >= 0 ? "+" : "";
    char bytes[CELL_BYTES];
    if (kp_diff_is_bytes(row->group))
        snprintf(out, CELL_BYTES, "%s%s", sign, kp_units_bytes(bytes, sizeof bytes, (int64_t)amount));
    else snprintf(out, CELL_BYTES, "%s%.3f", sign, amount / 1e6);
    return out;
}

static void name_put(FILE *out, const char *name, int width)
{
    kp_letters_name_put(out, name, (size_t)width, (size_t)width / 3);
}

/* ---- on a terminal names are as wide as it has room for ---- */

/* `others`: the columns of the rest of a row, which are numbers. */
static int name_width(FILE *out, int others)
{
    const int columns = (int)kp_terminal_columns(out), left = columns - others;
    return !columns || left > NAME_WIDTH ? NAME_WIDTH : left > NAME_LEAST ? left : NAME_LEAST;
}

/* Two names stand side by side. */
static int head_width(FILE *out)
{
    const int columns = (int)kp_terminal_columns(out);
    return name_width(out, columns - (columns - HEAD_WIDTH) / 2);
}

/* Too narrow for all numbers: a row leaves out its share of the change, and the noise. */
static bool is_narrow(FILE *out)
{
    const size_t columns = kp_terminal_columns(out);
    return columns && columns < NAME_LEAST + NUMBERS_WIDTH;
}

static int row_width(FILE *out) { return name_width(out, is_narrow(out) ? NARROW_WIDTH : NUMBERS_WIDTH); }

/* ---- the head ---- */

static void text_row(FILE *out, const struct kp_diff *d, const char *title, const uint32_t *ids)
{
    if (!ids[KP_DIFF_A] && !ids[KP_DIFF_B]) return;
    fprintf(out, "%-12s ", title);
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        if (side) fputs("  ", out);
        name_put(out, ids[side] ? kp_strings_get(d->strings, ids[side]) : "unknown", head_width(out));
    }
    fputs("\n", out);
}

static void files_put(FILE *out, const struct kp_diff *d)
{
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        const struct kp_diff_side *s = &d->sides[side];
        for (size_t i = 0; i < s->file_count; i++) {
            fprintf(out, "%-12s ", i ? "" : side ? "B" : "A");
            kp_plain_put(out, kp_strings_get(d->strings, s->files[i]));
            fputs("\n", out);
        }
    }
}

static void steps_put(FILE *out, const struct kp_diff *d)
{
    fprintf(out, "%-12s ", d->sides[KP_DIFF_A].has_steps || d->sides[KP_DIFF_B].has_steps ? "steps" : "traces");
    for (int side = 0; side < KP_DIFF_SIDES; side++)
        fprintf(out, "%s%-*zu", side ? "  " : "", side ? 0 : head_width(out), d->sides[side].samples);
    fprintf(out, "\n%-12s ", d->sides[KP_DIFF_A].has_steps ? "ms a step" : "ms");
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        char text[2 * CELL_BYTES];
        const double middle = d->step.middle[side], spread = d->step.spread[side];
        snprintf(text, sizeof text, "%.3f%s, spread %.3f (%.1f %%)", middle / 1e6,
                 d->sides[side].is_ahead ? " on the GPU" : "", spread / 1e6, middle > 0 ? 100 * spread / middle : 0);
        fprintf(out, "%s%-*s", side ? "  " : "", side ? 0 : head_width(out), text);
    }
    fputs("\n", out);
}

static void work_put(FILE *out, const struct kp_diff *d)
{
    double unused;
    const bool has_steps = d->sides[KP_DIFF_A].has_steps && d->sides[KP_DIFF_B].has_steps;
    const bool is_other_batch = kp_diff_sample_percent(d, &unused);
    char text[CELL_BYTES];
    if (has_steps && d->sides[KP_DIFF_A].ops + d->sides[KP_DIFF_B].ops > 0) {
        snprintf(text, sizeof text, "%.4g", d->sides[KP_DIFF_A].ops);
        fprintf(out, "ops a step   %-*s  %.4g\n", head_width(out), text, d->sides[KP_DIFF_B].ops);
    }
    if (!is_other_batch) return;
    const int64_t a = kp_diff_batches_size(&d->sides[KP_DIFF_A].batches);
    const int64_t b = kp_diff_batches_size(&d->sides[KP_DIFF_B].batches);
    fprintf(out, "batch        %-*" PRId64 "  %" PRId64 "\n", head_width(out), a, b);
    snprintf(text, sizeof text, "%.4f", d->step.middle[KP_DIFF_A] / 1e6 / (double)a);
    fprintf(out, "ms a sample  %-*s  %.4f\n", head_width(out), text, d->step.middle[KP_DIFF_B] / 1e6 / (double)b);
}

/* Does a step of either side wait for a core for long? */
static bool has_core_waits(const struct kp_diff *d)
{
    for (int side = KP_DIFF_A; side <= KP_DIFF_B; side++)
        if (kp_diff_core_wait(d, side) >= KP_CORE_WAITED_MUCH * d->step.middle[side]) return true;
    return false;
}

static double without_waits(const struct kp_diff *d, int side)
{
    return d->step.middle[side] - kp_diff_core_wait(d, side);
}

/* Without these waits it is less than half as much, or the other way around. told: the change of what has `a` of A's
 * steps and `b` of B's, in percent. percent: what it is then. */
static bool is_change_of_waits(const struct kp_diff *d, double told, double a, double b, double *percent)
{
    const double of_a = without_waits(d, KP_DIFF_A) * a, of_b = without_waits(d, KP_DIFF_B) * b;
    *percent = of_a > 0 ? 100 * (of_b - of_a) / of_a : 0;
    return has_core_waits(d) && of_a > 0 && (told > 0 ? *percent < told / 2 : *percent > told / 2);
}

static bool is_step_of_waits(const struct kp_diff *d, double *percent)
{
    return is_change_of_waits(d, kp_diff_percent(d), 1, 1, percent);
}

static void not_sure_put(FILE *out, double percent)
{
    fprintf(out, "not sure: others had the cores, and without waits for them it is %+.1f %%\n", percent);
}

/* The batch is not the same, so a step is other work. */
static void sample_change_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *step = &d->step;
    double percent, without;
    if (!kp_diff_sample_percent(d, &percent)) return;
    const int64_t a = kp_diff_batches_size(&d->sides[KP_DIFF_A].batches);
    const int64_t b = kp_diff_batches_size(&d->sides[KP_DIFF_B].batches);
    const double change = step->middle[KP_DIFF_B] / (double)b - step->middle[KP_DIFF_A] / (double)a;
    const double noise = 2 * hypot(step->spread[KP_DIFF_A] / (double)a, step->spread[KP_DIFF_B] / (double)b);
    const bool is_of_waits = is_change_of_waits(d, percent, 1 / (double)a, 1 / (double)b, &without);
    const char *verdict = change > 0 ? "slower" : "faster";
    if (step->verdict == KP_DIFF_UNKNOWN) verdict = "too few steps to tell";
    else if (fabs(change) <= noise) verdict = "within noise";
    else if (is_of_waits) verdict = NULL;
    fprintf(out, "             batch %" PRId64 " and %" PRId64 ": a step is other work. Per sample %+.1f %%: ", a, b,
            percent);
    if (verdict) fprintf(out, "%s\n", verdict);
    else not_sure_put(out, without);
}

/* Why a change of steps is no noise. */
static const char *reason_text(char *text, size_t bytes, const struct kp_diff_row *step)
{
    const double pairs = step->change > 0 ? step->pairs : 1 - step->pairs;
    if (fabs(step->change) > step->noise) snprintf(text, bytes, "noise %.3f ms", step->noise / 1e6);
    else
        snprintf(text, bytes, "so say %.0f %% of all pairs of steps, which differ by up to %.3f ms", 100 * pairs,
                 step->noise / 1e6);
    return text;
}

static void change_put(FILE *out, const struct kp_diff *d)
{
    char text[128];
    const struct kp_diff_row *step = &d->step;
    fprintf(out, "change       %+.3f ms a step, %+.1f %%: ", step->change / 1e6, kp_diff_percent(d));
    double percent;
    const bool is_step = kp_diff_sample_percent(d, &percent); /* the verdict is of the step alone */
    if (step->verdict == KP_DIFF_UNKNOWN)
        fputs("too few steps to tell it from noise (3 of each side are needed)\n", out);
    else if (step->verdict == KP_DIFF_NOISE)
        fprintf(out, "within noise: it may be chance, as steps of one run differ by up to %.3f ms\n",
                step->noise / 1e6);
    else if (is_step_of_waits(d, &percent)) not_sure_put(out, percent);
    else
        fprintf(out, "%s%s (%s)\n", is_step ? "the step is " : "", kp_diff_verdict_text(step),
                reason_text(text, sizeof text, step));
    if (step->verdict != KP_DIFF_NOISE && kp_diff_may_be_the_machine(d))
        fputs("             one run of each: a busier machine looks the same. Record both again, then kprof diff A1 A2 "
              "--vs B1 B2\n",
              out);
    sample_change_put(out, d);
}

/* The own line that changed most. */
static void line_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *line = kp_diff_line_most(d);
    if (!line || d->step.verdict == KP_DIFF_NOISE) return;
    kp_plain_fmt(out, "line         %s changed most: %.3f -> %.3f ms a step\n", kp_strings_get(d->strings, line->name),
                 line->middle[KP_DIFF_A] / 1e6, line->middle[KP_DIFF_B] / 1e6);
}

/* How much of the change the rows below have, and where the rest lies. */
static void explained_put(FILE *out, const struct kp_diff *d)
{
    struct kp_diff_explained e;
    if (!kp_diff_explain(d, &e)) return;
    const double all = d->step.change, gap = e.is_gap_in_rows ? 0 : e.gap_ns, rest = all - e.rows_ns - gap;
    fprintf(out, "rows         of ops explain %+.3f of the %+.3f ms", e.rows_ns / 1e6, all / 1e6);
    if (fabs(gap) >= fabs(all) / 20)
        fprintf(out, "; %+.3f ms lies in gaps between ops (Python, waiting; --with-stack 1 records its calls)",
                gap / 1e6);
    if (fabs(rest) >= fabs(all) / 20) fprintf(out, "; %+.3f ms in rows within noise, or beside others", rest / 1e6);
    fputs("\n", out);
}

/* Who waits more looks slower by that. */
static void core_wait_put(FILE *out, const struct kp_diff *d)
{
    const double a = kp_diff_core_wait(d, KP_DIFF_A), b = kp_diff_core_wait(d, KP_DIFF_B);
    if (!has_core_waits(d)) return;
    fprintf(out,
            "note         a step of A waits %.3f ms for a core, one of B %.3f ms: others had the cores; without these "
            "waits %.3f and %.3f ms\n",
            a / 1e6, b / 1e6, without_waits(d, KP_DIFF_A) / 1e6, without_waits(d, KP_DIFF_B) / 1e6);
}

static void warnings_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_side *a = &d->sides[KP_DIFF_A], *b = &d->sides[KP_DIFF_B];
    if (a->torch && b->torch && a->torch != b->torch) fputs("note         torch is not the same version\n", out);
    if (a->host && b->host && a->host != b->host) fputs("note         the machines are not the same\n", out);
    core_wait_put(out, d);
    if (a->has_gpu != b->has_gpu) fprintf(out, "note         only %s worked on a GPU\n", a->has_gpu ? "A" : "B");
    if (a->has_steps != b->has_steps)
        fprintf(out, "note         only %s has steps; the other is compared as a whole\n", a->has_steps ? "A" : "B");
    if (d->step.verdict != KP_DIFF_NOISE && !(a->has_shapes && b->has_shapes))
        fprintf(out, "note         %s shapes (--record-shapes), so another batch would not be seen\n",
                a->has_shapes   ? "B has no"
                : b->has_shapes ? "A has no"
                                : "the runs have no");
    if (a->has_memory != b->has_memory)
        fprintf(out, "note         only %s has memory (--profile-memory)\n", a->has_memory ? "A" : "B");
    if (a->has_modules != b->has_modules)
        fprintf(out, "note         only %s has modules (--with-stack 1)\n", a->has_modules ? "A" : "B");
    if (a->has_lines != b->has_lines)
        fprintf(out, "note         only %s has lines of the program (--with-stack ops)\n", a->has_lines ? "A" : "B");
    if (a->lost + b->lost)
        fprintf(out, "note         events were lost: %" PRIu64 " of A, %" PRIu64 " of B\n", a->lost, b->lost);
}

static const char *shapes_of(const struct kp_diff *d, const struct kp_diff_row *row, int side)
{
    return kp_strings_get(d->strings, row->shapes[side]);
}

/* How many ops got other inputs, and of these the one that changed most. */
static void inputs_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *most = NULL;
    size_t n = 0;
    for (size_t i = d->group_from[KP_DIFF_OPS]; i < d->group_from[KP_DIFF_OPS + 1]; i++) {
        if (!kp_diff_has_other_shapes(&d->rows[i])) continue;
        n++;
        if (!most || fabs(d->rows[i].change) > fabs(most->change)) most = &d->rows[i];
    }
    if (!n) return;
    kp_plain_fmt(out,
                 "inputs       %zu op%s got inputs of other shapes (in the first call); most changed %s: %s -> %s\n", n,
                 kp_units_s(n), kp_strings_get(d->strings, most->name), shapes_of(d, most, KP_DIFF_A),
                 shapes_of(d, most, KP_DIFF_B));
}

/* Explains "99 % pairs", which stands in place of the noise. */
static void pairs_put(FILE *out, const struct kp_diff *d)
{
    bool is_by_pairs = false;
    for (size_t i = 0; i < d->count; i++) is_by_pairs |= d->rows[i].is_by_pairs;
    if (is_by_pairs)
        fputs("pairs        \"N % pairs\": the change is smaller than the noise, but N % of all pairs (one step of A, "
              "one of B) agree on its direction\n",
              out);
}

static void head_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_side *a = &d->sides[KP_DIFF_A], *b = &d->sides[KP_DIFF_B];
    files_put(out, d);
    fprintf(out, "%-12s %-*s  %s\n", "", head_width(out), "A", "B");
    text_row(out, d, "program", (const uint32_t[]){a->program, b->program});
    text_row(out, d, "torch", (const uint32_t[]){a->torch, b->torch});
    text_row(out, d, "host", (const uint32_t[]){a->host, b->host});
    steps_put(out, d);
    work_put(out, d);
    change_put(out, d);
    line_put(out, d);
    explained_put(out, d);
    inputs_put(out, d);
    pairs_put(out, d);
    warnings_put(out, d);
}

/* ---- tables ---- */

/* The number that the verdict goes by: what steps differ by, or the share of their pairs that agree. */
static const char *bound_text(char *out, const struct kp_diff_row *row)
{
    const bool is_one_sided = row->verdict == KP_DIFF_APPEARED || row->verdict == KP_DIFF_WENT;
    if (row->verdict == KP_DIFF_UNKNOWN || is_one_sided) return "-";
    if (!row->is_by_pairs) return amount_text(out, row, row->noise, false);
    snprintf(out, CELL_BYTES, "%.0f %% pairs", 100 * (row->change > 0 ? row->pairs : 1 - row->pairs));
    return out;
}

/* A row is no surer than the head, unless it changed more than steps of one run differ by. */
static const char *row_verdict(const struct kp_diff *d, const struct kp_diff_row *row)
{
    const bool is_told = row->verdict == KP_DIFF_MORE || row->verdict == KP_DIFF_LESS;
    if (!is_told || kp_diff_is_bytes(row->group)) return kp_diff_verdict_text(row);
    if (d->step.verdict == KP_DIFF_NOISE)
        return fabs(row->change) > d->step.noise ? kp_diff_verdict_text(row) : "may be chance";
    return is_step_of_waits(d, &(double){0}) ? "not sure" : kp_diff_verdict_text(row);
}

static void row_put(FILE *out, const struct kp_diff *d, const struct kp_diff_row *row)
{
    char a[CELL_BYTES], b[CELL_BYTES], change[CELL_BYTES], bound[CELL_BYTES], share[CELL_BYTES] = "";
    const bool is_shared = !kp_diff_is_bytes(row->group) && d->step.verdict != KP_DIFF_NOISE;
    if (is_shared) snprintf(share, sizeof share, "%+.1f %%", 100 * kp_diff_share(d, row));
    kp_terminal_row(out);
    kp_terminal_name(out, true);
    name_put(out, kp_strings_get(d->strings, row->name), row_width(out));
    kp_terminal_name(out, false);
    fprintf(out, " %11s %11s %12s", amount_text(a, row, row->middle[KP_DIFF_A], false),
            amount_text(b, row, row->middle[KP_DIFF_B], false), amount_text(change, row, row->change, true));
    if (!is_narrow(out)) fprintf(out, " %9s %11s", is_shared ? share : "-", bound_text(bound, row));
    fprintf(out, "  %-13s", row_verdict(d, row));
    if (row->count[KP_DIFF_A] > 0 || row->count[KP_DIFF_B] > 0)
        fprintf(out, "  %.4g -> %.4g", row->count[KP_DIFF_A], row->count[KP_DIFF_B]);
    if (kp_diff_has_other_shapes(row))
        kp_plain_fmt(out, "  %s -> %s", shapes_of(d, row, KP_DIFF_A), shapes_of(d, row, KP_DIFF_B));
    fputs("\n", out);
}

static bool is_shown(const struct kp_diff_row *row, const struct kp_diff_show *show)
{
    if (row->group == KP_DIFF_PARTS) return true;
    return row->verdict != KP_DIFF_NOISE || show->has_all;
}

static void title_put(FILE *out, int group)
{
    const bool is_bytes = kp_diff_is_bytes(group);
    char title[CELL_BYTES];
    const size_t width = (size_t)row_width(out);
    fputs("\n", out);
    kp_terminal_row(out);
    kp_letters_fit(title, sizeof title, groups[group].title, width, width - 2, "..");
    fprintf(out, "%-*s %11s %11s %12s", (int)width, title, is_bytes ? "A" : "A ms", is_bytes ? "B" : "B ms",
            is_bytes ? "change" : "change ms");
    if (!is_narrow(out)) fprintf(out, " %9s %11s", "of change", "noise");
    fprintf(out, "  %-13s%s\n", "verdict",
            group == KP_DIFF_PARTS || group == KP_DIFF_MEMORY ? ""
            : group == KP_DIFF_OPS                            ? "  calls a step, input shapes of the first call"
                                                              : "  calls a step");
}

/* `most`: the largest change of the `quiet` rows. has_one: a larger one of these is shown. */
static void quiet_put(FILE *out, const struct kp_diff *d, const struct kp_diff_row *most, size_t quiet, bool has_one)
{
    char change[CELL_BYTES];
    const char *unit = kp_diff_is_bytes(most->group) ? "" : " ms";
    const char *rows = groups[most->group].rows;
    fprintf(out, "%zu %s%.*s within noise, the largest by %s%s: ", quiet, has_one ? "more " : "",
            (int)strlen(rows) - (quiet == 1), rows, amount_text(change, most, most->change, true), unit);
    kp_plain_put(out, kp_strings_get(d->strings, most->name));
    fputs(" (--all shows them)\n", out);
}

/*
 * Rows come by their change, so where one within noise comes before all that are shown, the table would begin with a
 * small one: it is shown, too, and its verdict says so. NULL: none does.
 */
static const struct kp_diff_row *quiet_first(const struct kp_diff *d, int group, const struct kp_diff_show *show)
{
    const struct kp_diff_row *const first = &d->rows[d->group_from[group]];
    if (is_shown(first, show)) return NULL;
    for (size_t i = d->group_from[group] + 1; i < d->group_from[group + 1]; i++)
        if (is_shown(&d->rows[i], show)) return fabs(first->change) > fabs(d->rows[i].change) ? first : NULL;
    return NULL;
}

static void group_put(FILE *out, const struct kp_diff *d, int group, const struct kp_diff_show *show)
{
    size_t shown = 0, more = 0, quiet = 0;
    const struct kp_diff_row *most = NULL; /* of those that are not shown; the first is the largest */
    if (d->group_from[group] == d->group_from[group + 1]) return;
    title_put(out, group);
    const struct kp_diff_row *const first = quiet_first(d, group, show);
    for (size_t i = d->group_from[group]; i < d->group_from[group + 1]; i++) {
        const struct kp_diff_row *row = &d->rows[i];
        if (row != first && !is_shown(row, show)) {
            if (!quiet++) most = row;
        } else if (show->most && shown >= show->most) {
            more++;
        } else {
            shown++;
            row_put(out, d, row);
        }
    }
    if (more) fprintf(out, "%zu more %s (-n 0 shows all)\n", more, groups[group].rows);
    if (quiet) quiet_put(out, d, most, quiet, first != NULL);
}

void kp_diff_print(FILE *out, const struct kp_diff *d, const struct kp_diff_show *show)
{
    head_put(out, d);
    for (int group = 0; group < KP_DIFF_GROUPS; group++) group_put(out, d, group, show);
}
