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
enum { VERDICT_WIDTH = 13, CALLS_WIDTH = 16 };

static const char NO_VERDICT[] = "too few steps to be certain", NO_CHANGE[] = "no change beyond noise",
                  NOT_CERTAIN[] = "not certain";
#define WITHOUT_WAITS "             Without the waits for a CPU core the change is %+.1f %%\n"

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
    if (kp_diff_is_bytes(row->group)) snprintf(out, CELL_BYTES, "%s%s", sign, kp_units_size((int64_t)amount));
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

/* Too narrow for all columns: a row leaves out its share of the change, and the noise. */
static bool is_narrow(FILE *out)
{
    const size_t columns = kp_terminal_columns(out);
    return columns && columns < NAME_LEAST + NUMBERS_WIDTH;
}

static bool has_room_for_calls(FILE *out)
{
    const size_t columns = kp_terminal_columns(out);
    return !columns || columns >= NAME_WIDTH + NUMBERS_WIDTH + CALLS_WIDTH;
}

static int row_width(FILE *out) { return name_width(out, is_narrow(out) ? NARROW_WIDTH : NUMBERS_WIDTH); }

/* ---- the head ---- */

static void text_row(FILE *out, const struct kp_diff *d, const char *title, const uint32_t *ids)
{
    if (!ids[KP_DIFF_A] && !ids[KP_DIFF_B]) return;
    fprintf(out, "%-12s ", title);
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        char shown[4 * CELL_BYTES];
        const int width = head_width(out);
        const char *const name = ids[side] ? kp_strings_get(d->strings, ids[side]) : "unknown";
        if (side) fputs("  ", out);
        kp_letters_pad(out, kp_letters_fit(shown, sizeof shown, name, (size_t)width, (size_t)width / 3, ".."),
                       side ? 0 : -width);
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

/* A time with its sign. Valid as long as that of kp_units_ms(). */
static const char *change_ms(double ns)
{
    static char texts[4][CELL_BYTES];
    static unsigned turn;
    char *const text = texts[turn++ % 4];
    snprintf(text, sizeof *texts, "%s%s", ns < 0 ? "" : "+", kp_units_ms(ns));
    return text;
}

static void steps_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_side *const sides = d->sides;
    fprintf(out, "%-12s ", sides[KP_DIFF_A].has_steps || sides[KP_DIFF_B].has_steps ? "steps" : "traces");
    fprintf(out, "%-*zu  %zu\n%-12s ", head_width(out), sides[KP_DIFF_A].samples, sides[KP_DIFF_B].samples,
            sides[KP_DIFF_A].has_steps ? "step time" : "time");
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        char text[2 * CELL_BYTES];
        snprintf(text, sizeof text, "%s%s, spread %s", kp_units_ms(d->step.middle[side]),
                 sides[side].is_ahead ? " on the GPU" : "", kp_units_ms(d->step.spread[side]));
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
        fprintf(out, "ops per step %-*s  %.4g\n", head_width(out), text, d->sides[KP_DIFF_B].ops);
    }
    if (!is_other_batch) return;
    const int64_t a = kp_diff_batches_size(&d->sides[KP_DIFF_A].batches);
    const int64_t b = kp_diff_batches_size(&d->sides[KP_DIFF_B].batches);
    fprintf(out, "batch        %-*" PRId64 "  %" PRId64 "\n", head_width(out), a, b);
    fprintf(out, "per sample   %-*s  %s\n", head_width(out), kp_units_ms(d->step.middle[KP_DIFF_A] / (double)a),
            kp_units_ms(d->step.middle[KP_DIFF_B] / (double)b));
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

/* It is less than half as much once these waits are taken out, or the other way around. told: the change of what has
 * `a` of A's steps and `b` of B's, in percent. percent: what it is then. */
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

/* The batch is not the same, so a step is other work. */
static void sample_change_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *step = &d->step;
    double percent, without;
    if (!kp_diff_sample_percent(d, &percent)) return;
    const double a = (double)kp_diff_batches_size(&d->sides[KP_DIFF_A].batches);
    const double b = (double)kp_diff_batches_size(&d->sides[KP_DIFF_B].batches);
    const double change = step->middle[KP_DIFF_B] / b - step->middle[KP_DIFF_A] / a;
    const double noise = 2 * hypot(step->spread[KP_DIFF_A] / a, step->spread[KP_DIFF_B] / b);
    const bool is_of_waits = is_change_of_waits(d, percent, 1 / a, 1 / b, &without);
    const char *verdict = change > 0 ? "slower" : "faster";
    if (step->verdict == KP_DIFF_UNKNOWN) verdict = NO_VERDICT;
    else if (fabs(change) <= noise) verdict = NO_CHANGE;
    else if (is_of_waits) verdict = NOT_CERTAIN;
    fprintf(out, "             The batch sizes differ. Per sample: %s (%+.1f %%)\n", verdict, percent);
    if (verdict == NOT_CERTAIN) fprintf(out, WITHOUT_WAITS, without);
}

/* A trace without steps counts as one. */
static const char *sample_word(const struct kp_diff *d)
{
    return d->sides[KP_DIFF_A].has_steps || d->sides[KP_DIFF_B].has_steps ? "step" : "trace";
}

/* How sure the change is: by its interval, by pairs of steps though it is small, or by what steps differ by. */
static void surety_put(FILE *out, const struct kp_diff *d, const struct kp_diff_row *step)
{
    if (step->verdict == KP_DIFF_UNKNOWN) fprintf(out, "Record at least 3 %ss per side\n", sample_word(d));
    else if (step->has_interval)
        fprintf(out, "99 %% confidence: %s to %s\n", change_ms(step->low), change_ms(step->high));
    else if (step->is_by_pairs)
        fprintf(out, "%.0f %% of all pairs of steps agree\n", 100 * fmax(step->pairs, 1 - step->pairs));
    else fprintf(out, "Steps of one run differ by up to %s\n", kp_units_ms(step->noise));
}

/* The work changed, though steps differ by more among themselves, as they wait for cores. */
static void hidden_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *const on_core = &d->on_core;
    const double a = on_core->middle[KP_DIFF_A];
    fprintf(out, "change       %s without waits for a CPU core: %s per step (%+.1f %%). ",
            kp_diff_verdict_text(on_core), change_ms(on_core->change), a > 0 ? 100 * on_core->change / a : 0);
    surety_put(out, d, on_core);
    fprintf(out, "             With these waits %s (%+.1f %%), which is within noise\n", change_ms(d->step.change),
            kp_diff_percent(d));
}

static void change_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_row *step = &d->step;
    double unused, without;
    if (kp_diff_is_hidden(d)) {
        hidden_put(out, d);
        sample_change_put(out, d);
        return;
    }
    const bool is_sure = step->verdict == KP_DIFF_MORE || step->verdict == KP_DIFF_LESS;
    const bool is_of_waits = is_sure && is_step_of_waits(d, &without);
    const bool is_step = kp_diff_sample_percent(d, &unused); /* the verdict is of the step alone */
    fprintf(out, "change       %s%s: %s per %s (%+.1f %%). ", is_step && is_sure && !is_of_waits ? "a step is " : "",
            step->verdict == KP_DIFF_UNKNOWN ? NO_VERDICT
            : is_of_waits                    ? NOT_CERTAIN
            : is_sure                        ? kp_diff_verdict_text(step)
                                             : NO_CHANGE,
            change_ms(step->change), sample_word(d), kp_diff_percent(d));
    surety_put(out, d, step);
    if (is_of_waits) fprintf(out, WITHOUT_WAITS, without);
    if (is_sure && kp_diff_may_be_the_machine(d))
        fputs("             In one run a busier machine looks the same. To be certain, record both again: kprof diff "
              "A1 A2 --vs B1 B2\n",
              out);
    sample_change_put(out, d);
}

/* The own line that changed most: of the rank that did, or of all. */
static void line_put(FILE *out, const struct kp_diff *d, const struct kp_diff_rank *rank)
{
    const struct kp_diff *const of = rank ? rank->of : d;
    const struct kp_diff_row *const line = kp_diff_line_most(of, rank ? &of->own : &of->step);
    char whose[CELL_BYTES] = "";
    if (!line || (!rank && d->step.verdict == KP_DIFF_NOISE)) return;
    if (rank) snprintf(whose, sizeof whose, " of rank %ld", rank->rank);
    kp_plain_fmt(out, "line         %s%s changed most: %s -> %s per step\n", kp_strings_get(of->strings, line->name),
                 whose, kp_units_ms(line->middle[KP_DIFF_A]), kp_units_ms(line->middle[KP_DIFF_B]));
}

/* Who the others wait for is seen in its own part of a step alone. */
static void rank_put(FILE *out, const struct kp_diff *d)
{
    double others;
    const struct kp_diff_rank *const rank = kp_diff_rank_most(d, &others);
    if (rank)
        fprintf(out, "rank         %ld changed most: %s -> %s per step outside collectives, most other ranks by %s\n",
                rank->rank, kp_units_ms(rank->of->own.middle[KP_DIFF_A]), kp_units_ms(rank->of->own.middle[KP_DIFF_B]),
                change_ms(others));
    line_put(out, d, rank);
}

/* How much of the change the rows below have, and where the rest lies. */
static void explained_put(FILE *out, const struct kp_diff *d)
{
    struct kp_diff_explained e;
    if (!kp_diff_explain(d, &e)) return;
    const double all = d->step.change, gap = e.is_gap_in_rows ? 0 : e.gap_ns, rest = all - e.rows_ns - gap;
    fprintf(out, "explained    %s of %s by the operators below", change_ms(e.rows_ns), change_ms(all));
    if (fabs(gap) >= fabs(all) / 20)
        fprintf(out, "; %s outside operators (--with-stack 1 shows the calls)", change_ms(gap));
    if (fabs(rest) >= fabs(all) / 20) fprintf(out, "; %s in changes within noise", change_ms(rest));
    fputs("\n", out);
}

/* Who waits more looks slower by that. */
static void core_wait_put(FILE *out, const struct kp_diff *d)
{
    if (!has_core_waits(d)) return;
    fprintf(out, "note         waits for a CPU core per step: A %s, B %s. Without them a step takes %s and %s\n",
            kp_units_ms(kp_diff_core_wait(d, KP_DIFF_A)), kp_units_ms(kp_diff_core_wait(d, KP_DIFF_B)),
            kp_units_ms(without_waits(d, KP_DIFF_A)), kp_units_ms(without_waits(d, KP_DIFF_B)));
}

static void only_one_put(FILE *out, bool has_a, bool has_b, const char *what)
{
    if (has_a != has_b) fprintf(out, "note         only %s has %s\n", has_a ? "A" : "B", what);
}

static void warnings_put(FILE *out, const struct kp_diff *d)
{
    const struct kp_diff_side *a = &d->sides[KP_DIFF_A], *b = &d->sides[KP_DIFF_B];
    if (a->torch && b->torch && a->torch != b->torch) fputs("note         the torch versions differ\n", out);
    if (a->host && b->host && a->host != b->host) fputs("note         the machines differ\n", out);
    core_wait_put(out, d);
    only_one_put(out, a->has_gpu, b->has_gpu, "GPU work");
    only_one_put(out, a->has_steps, b->has_steps, "steps, so the other is compared as a whole");
    if (d->step.verdict != KP_DIFF_NOISE && !(a->has_shapes && b->has_shapes))
        fprintf(out, "note         %s no input shapes (--record-shapes), so another batch size would not be seen\n",
                a->has_shapes   ? "B has"
                : b->has_shapes ? "A has"
                                : "the runs have");
    only_one_put(out, a->has_memory, b->has_memory, "memory (--profile-memory)");
    only_one_put(out, a->has_modules, b->has_modules, "modules (--with-stack 1)");
    only_one_put(out, a->has_lines, b->has_lines, "lines of the program (--with-stack ops)");
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
    kp_plain_fmt(out, "inputs       %zu op%s got other input shapes in the first call. Most changed: %s, %s -> %s\n", n,
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
    rank_put(out, d);
    explained_put(out, d);
    inputs_put(out, d);
    pairs_put(out, d);
    warnings_put(out, d);
}

/* ---- tables ---- */

/* The number that the verdict goes by: what steps differ by, else what shows the change. */
static const char *bound_text(char *out, const struct kp_diff_row *row)
{
    const bool is_one_sided = row->verdict == KP_DIFF_APPEARED || row->verdict == KP_DIFF_WENT;
    if (row->verdict == KP_DIFF_UNKNOWN || is_one_sided) return "-";
    if (row->is_by_interval) return "99 % sure";
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
    return is_step_of_waits(d, &(double){0}) ? NOT_CERTAIN : kp_diff_verdict_text(row);
}

static void row_put(FILE *out, const struct kp_diff *d, const struct kp_diff_row *row)
{
    char a[CELL_BYTES], b[CELL_BYTES], change[CELL_BYTES], bound[CELL_BYTES], share[CELL_BYTES] = "";
    const bool is_shared = !kp_diff_is_bytes(row->group) && d->step.verdict != KP_DIFF_NOISE;
    const double percent = is_shared ? 100 * kp_diff_share(d, row) : 0;
    const char *const verdict = row_verdict(d, row);
    const bool is_own = !row->is_by_interval || strcmp(verdict, kp_diff_verdict_text(row)) == 0; /* else less sure */
    if (is_shared) snprintf(share, sizeof share, "%+.1f %%", fabs(percent) < 0.05 ? 0 : percent);
    kp_terminal_row(out);
    kp_terminal_name(out, true);
    name_put(out, kp_strings_get(d->strings, row->name), row_width(out));
    kp_terminal_name(out, false);
    fprintf(out, " %11s %11s %12s", amount_text(a, row, row->middle[KP_DIFF_A], false),
            amount_text(b, row, row->middle[KP_DIFF_B], false), amount_text(change, row, row->change, true));
    if (!is_narrow(out)) fprintf(out, " %9s %11s", is_shared ? share : "-", is_own ? bound_text(bound, row) : "-");
    const bool has_calls = has_room_for_calls(out) && (row->count[KP_DIFF_A] > 0 || row->count[KP_DIFF_B] > 0);
    fprintf(out, "  %-*s", has_calls ? VERDICT_WIDTH : 0, verdict);
    if (has_calls) fprintf(out, "  %.4g -> %.4g", row->count[KP_DIFF_A], row->count[KP_DIFF_B]);
    if (has_calls && kp_diff_has_other_shapes(row))
        kp_plain_fmt(out, "  %s -> %s", shapes_of(d, row, KP_DIFF_A), shapes_of(d, row, KP_DIFF_B));
    fputs("\n", out);
}

static bool is_shown(const struct kp_diff_row *row, const struct kp_diff_show *show)
{
    if (row->group == KP_DIFF_PARTS) return true;
    return row->verdict != KP_DIFF_NOISE || show->has_all;
}

static void title_put(FILE *out, const struct kp_diff *d, int group)
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
    const bool has_calls = has_room_for_calls(out) && group != KP_DIFF_PARTS && group != KP_DIFF_MEMORY;
    fprintf(out, "  %-*s%s%s%s\n", has_calls ? VERDICT_WIDTH : 0, "verdict", has_calls ? "  calls per " : "",
            has_calls ? sample_word(d) : "",
            has_calls && group == KP_DIFF_OPS ? ", input shapes of the first call" : "");
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
    title_put(out, d, group);
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
