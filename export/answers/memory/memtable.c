// SPDX-License-Identifier: Apache-2.0
/* memtable.c - writes memory as text: for each device the peak, live blocks by op, what grows, and the timeline */
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/memory/memblocks.h"

#include <stdlib.h>
#include <string.h>

#include "export/show/plain.h"
#include "export/show/letters.h"
#include "export/show/terminal.h"
#include "export/show/units.h"

enum { NAME_WIDTH = 40, PLACE_WIDTH = 60, PLACE_BYTES = 256 };
#define PLACE_TITLE "Module, call site"

static void step_text(const struct kp_memview *view, int64_t at_ns, char *out, size_t bytes)
{
    long step = kp_mem_step_at(view, at_ns);
    if (step < 0) snprintf(out, bytes, "-");
    else snprintf(out, bytes, "step %ld", view->steps[step].number);
}

static void name_put(FILE *out, const char *text, size_t width)
{
    kp_letters_name_put(out, text, width, (width - 2) / 2);
}

/* Writes shapes in at most `width` letters, cut behind a whole input. */
static void shapes_put(FILE *out, const char *text, size_t width)
{
    static const char tail[] = ", ...]";
    size_t kept = 0, depth = 0;
    if (strlen(text) > width)
        for (size_t n = 0; n + sizeof tail - 1 <= width; n++) { /* shapes are ASCII */
            if (text[n] == ',' && depth == 1) kept = n;
            depth += text[n] == '[';
            depth -= text[n] == ']';
        }
    if (!kept) name_put(out, text, width);
    else fprintf(out, "%.*s%s%*s", (int)kept, text, tail, (int)(width - kept - (sizeof tail - 1)), "");
}

/* The place that takes memory comes first: a terminal cuts the text behind it. */
static void place_put(FILE *out, const struct kp_memview *view, const struct kp_mem_group *row, size_t width)
{
    char place[PLACE_BYTES], more[24];
    size_t used = strlen(kp_mem_place_text(view, row, place, sizeof place));
    const int bytes = row->others ? snprintf(more, sizeof more, ", and %u more", row->others) : 0;
    if (bytes > 0 && used + (size_t)bytes < sizeof place) memcpy(place + used, more, (size_t)bytes + 1);
    name_put(out, place, width);
    fputs("  ", out);
}

/* A narrow terminal has room for a row's place and its outermost op alone. */
static bool is_narrow(FILE *out)
{
    enum { WIDE = 140 };
    const size_t columns = kp_terminal_columns(out);
    return columns && columns < WIDE;
}

/* The columns that the places of the first rows take, but no more than a line has room for. */
static size_t place_width(FILE *out, const struct kp_memview *view, const struct kp_mem_groups *g, size_t shown)
{
    const size_t most = is_narrow(out) ? 2 * kp_terminal_columns(out) / 7 : PLACE_WIDTH;
    char place[PLACE_BYTES];
    size_t width = sizeof PLACE_TITLE - 1;
    for (size_t i = 0; i < shown; i++) {
        const size_t more = g->rows[i].others ? sizeof ", and 99 more" - 1 : 0;
        const size_t its = kp_letters_columns(kp_mem_place_text(view, &g->rows[i], place, sizeof place)) + more;
        if (its > width) width = its;
    }
    return width < most ? width : most;
}

static void ops_title_put(FILE *out)
{
    if (is_narrow(out)) fputs("Outermost op\n", out);
    else fprintf(out, "%-*s  %s\n", NAME_WIDTH, "Outermost op", "Op");
}

static void ops_put(FILE *out, const struct kp_memview *view, const struct kp_mem_group *row)
{
    const char *const op = kp_kineto_text(view->tree->trace, row->op),
                      *const top = kp_kineto_text(view->tree->trace, row->top),
                      *const none = row->is_older ? "(before recording)" : "(outside any op)";
    if (is_narrow(out)) {
        kp_plain_fmt(out, "%s\n", *top ? top : *op ? op : none);
        return;
    }
    name_put(out, top, NAME_WIDTH);
    kp_plain_fmt(out, "  %s\n", *op ? op : none);
}

/* gap: columns between bytes and blocks that a table has. */
static void rest_put(FILE *out, const struct kp_mem_groups *g, size_t shown, int gap)
{
    const struct kp_mem_group rest = kp_mem_groups_rest(g, shown);
    const size_t more = g->count - shown;
    if (more)
        fprintf(out, "  %12s%*s %7zu  and %zu more row%s\n", kp_units_size(rest.bytes), gap, "", rest.count, more,
                kp_units_s(more));
}

static void live_put(FILE *out, const struct kp_memview *view, const struct kp_mem_curve *c,
                     const struct kp_mem_show *show)
{
    struct kp_mem_groups g;
    kp_mem_groups_live(&g, view, (size_t)(c->device - view->devices), c->peak_ns);
    kp_mem_groups_alike(&g, view);
    const size_t shown = kp_mem_groups_shown(&g, show), width = place_width(out, view, &g, shown);
    fprintf(out, "\n  Live at the peak, by op\n  %12s %7s  %-17s %-*s  ", "Bytes", "Blocks", "Category", (int)width,
            PLACE_TITLE);
    ops_title_put(out);
    for (size_t i = 0; i < shown; i++) {
        fprintf(out, "  %12s %7zu  %-17s ", kp_units_size(g.rows[i].bytes), g.rows[i].count,
                kp_mem_category_name(g.rows[i].category));
        place_put(out, view, &g.rows[i], width);
        ops_put(out, view, &g.rows[i]);
    }
    rest_put(out, &g, shown, 0);
    if (c->device->before_bytes)
        fprintf(out, "  %12s %7s  %s\n", kp_units_size(c->device->before_bytes), "-",
                kp_mem_category_name(KP_MEM_BEFORE));
    kp_mem_groups_fini(&g);
}

static bool is_kept_told(const struct kp_mem_groups *g, size_t shown)
{
    for (size_t i = 0; i < shown; i++)
        if (g->rows[i].kept != g->rows[i].bytes) return true;
    return false;
}

static void taken_row_put(FILE *out, const struct kp_memview *view, const struct kp_mem_group *row, bool with_kept,
                          size_t width)
{
    const char *op = kp_kineto_text(view->tree->trace, row->op);
    fprintf(out, "  %12s ", kp_units_size(row->bytes));
    if (with_kept) fprintf(out, "%12s ", kp_units_size(row->kept));
    fprintf(out, "%7zu  ", row->count);
    place_put(out, view, row, width);
    name_put(out, *op ? op : "(outside any op)", NAME_WIDTH);
    if (row->shapes) fputs("  ", out), shapes_put(out, kp_kineto_text(view->tree->trace, row->shapes), NAME_WIDTH);
    fputc('\n', out);
}

/* Who takes most: what torch's "Self CPU Mem" is about, without what was given back. */
static void taken_put(FILE *out, const struct kp_memview *view, size_t device, const struct kp_mem_show *show)
{
    const bool has_shapes = view->tree->trace->record_shapes;
    struct kp_mem_groups g;
    kp_mem_groups_taken(&g, view, device, show->from_ns, show->to_ns);
    const size_t shown = kp_mem_groups_shown(&g, show), width = place_width(out, view, &g, shown);
    const bool with_kept = is_kept_told(&g, shown);
    fprintf(out, "\n  Allocated most, freed or not, by op\n  %12s ", "Bytes");
    if (with_kept) fprintf(out, "%12s ", "At op's end");
    fprintf(out, "%7s  %-*s  %-*s  %s\n", "Blocks", (int)width, PLACE_TITLE, NAME_WIDTH, "Op",
            has_shapes ? "Input shapes that take most" : "");
    for (size_t i = 0; i < shown; i++) taken_row_put(out, view, &g.rows[i], with_kept, width);
    rest_put(out, &g, shown, with_kept ? 13 : 0);
    if (with_kept)
        fprintf(
            out,
            "  At op's end: the part that was still there when the op ended. kprof report --sort mem%s has the same\n",
            has_shapes ? " --by op" : "");
    kp_mem_groups_fini(&g);
}

/* The names are torch's (decisions/023). */
static void words_put(FILE *out, const struct kp_mem_curve *c)
{
    static const char *const words[KP_MEM_CATEGORIES] = {
        [KP_MEM_TEMPORARY] = "Temporary: allocated and freed within one op, or one optimizer step",
        [KP_MEM_ACTIVATION] = "Activation: made in a forward pass, and live after its op",
        [KP_MEM_AUTOGRAD] = "Autograd detail: made in a backward pass, and freed before it ends",
        [KP_MEM_UNKNOWN] = "Unknown: none of these, such as blocks of evaluation and data loading",
        [KP_MEM_BEFORE] = "Before recording: allocated before recording began, so its op is unknown"};
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
        if (c->most.of[k] && words[k]) fprintf(out, "  %s\n", words[k]);
}

static void categories_put(FILE *out, const struct kp_mem_curve *c)
{
    fprintf(out, "\n  %-17s %12s %12s %12s %12s\n", "Category", "At the peak", "Highest", "At the end", "At the start");
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
        if (c->most.of[k])
            fprintf(out, "  %-17s %12s %12s %12s %12s\n", kp_mem_category_name(k), kp_units_size(c->peak.of[k]),
                    kp_units_size(c->most.of[k]), kp_units_size(c->end.of[k]), kp_units_size(c->begin.of[k]));
    fprintf(out, "  %-17s %12s %12s %12s %12s\n", "All", kp_units_size(c->peak.total), kp_units_size(c->most.total),
            kp_units_size(c->end.total), kp_units_size(c->begin.total));
    words_put(out, c);
}

static bool are_alike(const struct kp_mem_sum *sums, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (sums[i].total != sums[0].total || memcmp(sums[i].of, sums[0].of, sizeof sums[0].of) != 0) return false;
    return true;
}

/* A terminal has room for the first categories alone; the drawing has all. */
static bool has_room(FILE *out, unsigned shown)
{
    enum { FIXED = 48, EACH = 18 };
    const size_t columns = kp_terminal_columns(out);
    return !columns || FIXED + (shown + 1) * EACH <= columns;
}

static void timeline_put(FILE *out, const struct kp_memview *view, const struct kp_mem_curve *c,
                         const struct kp_mem_show *show)
{
    enum { LINES = 20 };
    int64_t at[LINES];
    struct kp_mem_sum *slices = kp_mem_curve_slices(c, show->from_ns, show->to_ns, LINES, at);
    fprintf(out, "\n  Timeline: %s in %d equal parts, each at its highest moment\n  %12s %-20s %12s",
            show->is_part ? "these steps" : "the window", LINES, "ms", "Step", "All");
    for (unsigned k = 0, shown = 0; k < KP_MEM_CATEGORIES; k++)
        if (c->most.of[k] && has_room(out, shown++)) fprintf(out, " %17s", kp_mem_category_name(k));
    fputc('\n', out);
    const bool is_one = are_alike(slices, LINES);
    for (size_t i = 0; i < (is_one ? 1 : LINES); i++) {
        char step[64];
        step_text(view, at[i], step, sizeof step);
        if (is_one) snprintf(step, sizeof step, "the same in all");
        fprintf(out, "  %12.3f %-20s %12s", kp_mem_ms(view, at[i]), step, kp_units_size(slices[i].total));
        for (unsigned k = 0, shown = 0; k < KP_MEM_CATEGORIES; k++)
            if (c->most.of[k] && has_room(out, shown++)) fprintf(out, " %17s", kp_units_size(slices[i].of[k]));
        fputc('\n', out);
    }
    free(slices);
}

static void leaks_put(FILE *out, const struct kp_memview *view, size_t device, const struct kp_mem_show *show)
{
    struct kp_mem_groups g;
    if (view->step_count < 3) {
        fprintf(out, "\n  Growth from step to step is unknown: it takes three steps, the recording has %zu\n",
                view->step_count);
        const char *const missed = kp_kineto_missed_call(view->tree->trace);
        if (missed) kp_plain_fmt(out, "  %s\n", missed);
        return;
    }
    kp_mem_groups_leaks(&g, view, device);
    const size_t shown = kp_mem_groups_shown(&g, show), width = place_width(out, view, &g, shown);
    if (!g.count) {
        fputs("\n  Nothing grows from step to step\n", out);
        kp_mem_groups_fini(&g);
        return;
    }
    fprintf(out,
            "\n  Grows from step to step: allocated in one step, still there when the last step ends\n  %12s %7s %12s  "
            "%-*s  ",
            "Bytes", "Blocks", "A step", (int)width, PLACE_TITLE);
    if (!is_narrow(out)) fputs("Steps that left some  ", out);
    ops_title_put(out);
    for (size_t i = 0; i < shown; i++) {
        const struct kp_mem_group *row = &g.rows[i];
        char steps[48];
        snprintf(steps, sizeof steps, "%ld, in %ld to %ld", row->steps, view->steps[row->first_step].number,
                 view->steps[row->last_step].number);
        fprintf(out, "  %12s %7zu %12s  ", kp_units_size(row->bytes), row->count,
                kp_units_size(row->bytes / row->steps));
        place_put(out, view, row, width);
        if (!is_narrow(out)) fprintf(out, "%-20s  ", steps);
        ops_put(out, view, row);
    }
    rest_put(out, &g, shown, 0);
    kp_mem_groups_fini(&g);
}

static void outs_put(FILE *out, const struct kp_memview *view, size_t device, const struct kp_mem_show *show)
{
    for (size_t i = 0; i < view->out_count; i++) {
        const struct kp_mem_out *o = &view->outs[i];
        char step[64];
        if (o->device != device || o->at_ns < show->from_ns || o->at_ns > show->to_ns) continue;
        step_text(view, o->at_ns, step, sizeof step);
        kp_plain_fmt(out, "\n  Out of memory at %.3f ms (%s): %s requested, %s in use, in %s\n",
                     kp_mem_ms(view, o->at_ns), step, kp_units_size(o->bytes), kp_units_size(o->allocated),
                     o->place.op < 0 ? "(outside any op)" : kp_mem_op_name(view, o->place.op));
    }
}

/* The option that another recording needs, in the words of kprof report. */
static void missing_put(FILE *out, const struct kp_kineto *trace)
{
    const bool no_shapes = !trace->record_shapes, no_lines = !trace->has_stacks && !trace->with_stack;
    if (!no_shapes && !no_lines) return;
    fprintf(out, "Not recorded: %s%s%s\n", no_shapes ? "shapes (--record-shapes)" : "",
            no_shapes && no_lines ? ", " : "", no_lines ? "your lines (--with-stack ops)" : "");
}

static void device_put(FILE *out, const struct kp_memview *view, size_t device, const struct kp_mem_show *show)
{
    const struct kp_mem_device *d = &view->devices[device];
    struct kp_mem_curve c;
    char step[64];
    kp_mem_curve_build(&c, view, device, show->from_ns, show->to_ns);
    step_text(view, c.peak_ns, step, sizeof step);
    if (*step == '-') snprintf(step, sizeof step, "in no step");
    fprintf(out, "%s: peak %s at %.3f ms after the profiler's start (%s)\n  %zu block%s recorded", d->name,
            kp_units_size(c.peak.total), kp_mem_ms(view, c.peak_ns), step, d->count, kp_units_s(d->count));
    if (d->reserved_most >= 0) fprintf(out, ", at most %s reserved", kp_units_size(d->reserved_most));
    fprintf(out, "%s\n", d->knows_before ? "" : ". " KP_MEM_BEFORE_MISSING);
    missing_put(out, view->tree->trace);
    outs_put(out, view, device, show);
    if (d->count || d->before_bytes) {
        leaks_put(out, view, device, show);
        categories_put(out, &c);
        live_put(out, view, &c, show);
        taken_put(out, view, device, show);
        timeline_put(out, view, &c, show);
    }
    fputc('\n', out);
    kp_mem_curve_fini(&c);
}

void kp_memtable_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    if (view->no_addresses) fputs("Some events of memory have no address (traces of 2021): they are left out\n", out);
    if (show->is_part) {
        char steps[80];
        kp_units_steps(steps, sizeof steps, show->first_step, show->last_step);
        fprintf(out, "S%s: %.1f of the recording's %.1f ms (--step all shows all)\n\n", steps + 1,
                (double)(show->to_ns - show->from_ns) / 1e6, kp_mem_ms(view, view->end_ns));
    }
    for (size_t d = 0; d < view->device_count; d++)
        if (kp_mem_shows(show, d)) device_put(out, view, d, show);
}
