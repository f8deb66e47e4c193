// SPDX-License-Identifier: Apache-2.0
/* viewtabs.c - fills the tabs of findings, steps, ops and kernels with what advise and report compute */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/answers/advise/parts/finding.h"
#include "export/answers/ranks/stuck.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/frames/modulename.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toptable.h"
#include "export/show/units.h"
#include "export/answers/view/viewparts.h"

static const char *text_of(const struct kp_view *v, uint32_t id) { return kp_kineto_text(v->tree->trace, id); }

/* Writes "9: text" as a row below a finding, wrapped: a line for each 70 letters. */
static void lines_add(struct kp_view_tab *tab, int32_t finding, const char *key, const char *text)
{
    enum { WIDE = 64 };
    char line[KP_VIEW_COLUMNS_MAX + 128];
    if (!text) return;
    for (size_t n; *text; text += n) {
        n = strlen(text);
        if (n > WIDE) {
            for (n = WIDE; n > WIDE / 2 && text[n] != ' ';) n--;
            if (n == WIDE / 2) n = WIDE;
            while (n < strlen(text) && ((unsigned char)text[n] & 0xc0) == 0x80) n++; /* not within a letter */
        }
        snprintf(line, sizeof line, "%-8s%.*s", key, (int)n, text + (*text == ' '));
        line[strlen(line) - (n && *text == ' ' && line[strlen(line) - 1] == ' ')] = 0;
        kp_view_add(tab, finding, line);
        key = "";
    }
}

static void note_add(struct kp_view_tab *tab, const char *kind, const char *text)
{
    const int32_t row = kp_view_add(tab, KP_VIEW_NONE, kind);
    lines_add(tab, row, "", text);
    tab->rows[row].is_open = true;
}

/* How the program ended, where not by itself: what was recorded until then is judged below. */
static void ended_add(const struct kp_kineto *trace, const struct kp_advice *a, struct kp_view_tab *tab)
{
    const char *const oom = kp_kineto_fact(trace, "kprof.out_of_memory");
    if (oom && !kp_ended_oom(trace)) note_add(tab, "OUT OF MEMORY", oom);
    if (a->ended) note_add(tab, strcmp(a->ended_word, "killed") == 0 ? "KILLED" : "ENDED", a->ended);
}

static void findings_make(struct kp_view *v, const struct kp_advice *a)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_FINDINGS];
    *tab = (struct kp_view_tab){.title = "Findings",
                                .what = "what is slow",
                                .columns = {{"a step", KP_VIEW_TIME}, {"share", KP_VIEW_SHARE}},
                                .column_count = 2,
                                .sort = KP_VIEW_NONE,
                                .is_prose = true};
    const char *const stood = kp_kineto_fact(v->tree->trace, "kprof.stood");
    if (stood) note_add(tab, "STUCK", stood);
    ended_add(v->tree->trace, a, tab);
    if (stood) note_add(tab, "NOTE", KP_STUCK_UNJUDGED ".");
    if (stood) return;
    for (size_t i = 0; i < a->count; i++) {
        const struct kp_finding *f = &a->findings[i];
        char name[256], line[4096], once[64];
        snprintf(name, sizeof name, "%s: %s", f->is_critical ? "CRITICAL" : "WARNING", f->what);
        const int32_t row = kp_view_add(tab, KP_VIEW_NONE, name);
        tab->rows[row].values[0] = f->step_ns;
        tab->rows[row].values[1] = f->share;
        tab->rows[row].is_open = tab->rows[row].is_bold = true;
        snprintf(once, sizeof once, "%.1f ms, in step %ld", f->once_ns / 1e6, f->once_step);
        lines_add(tab, row, "once", f->once_ns > 0 ? once : NULL);
        lines_add(tab, row, f->is_gap ? "before" : "where", f->where);
        lines_add(tab, row, "module", f->module);
        lines_add(tab, row, "line", kp_finding_line(f, line, sizeof line));
        lines_add(tab, row, "change", f->change);
    }
    snprintf(tab->empty, sizeof tab->empty, "%s",
             a->is_well ? "Healthy: the steps compute for at least 90 % of their time."
                        : "No known mistake costs enough to be reported.");
    if (a->missing) note_add(tab, a->is_unrecorded ? "NOTE" : "INCOMPLETE", a->missing);
    struct kp_note notes[KP_NOTES_MAX];
    const size_t count = kp_advice_notes(a, notes);
    for (size_t i = 0; i < count; i++) note_add(tab, "NOTE", notes[i].text);
}

static void steps_make(struct kp_view *v)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_STEPS];
    struct kp_step_split *splits = kp_kineto_room(v->whole.step_count + 1, sizeof *splits);
    const bool has_gpu = kp_step_split_all(splits, v->tree, &v->whole);
    *tab = (struct kp_view_tab){.title = "Steps",
                                .what = "step (Enter: all tabs show it)",
                                .columns = {{"time", KP_VIEW_TIME},
                                            {has_gpu ? "compute" : "ops", KP_VIEW_TIME},
                                            {"loading", KP_VIEW_TIME},
                                            {has_gpu ? "idle" : "no operator", KP_VIEW_TIME},
                                            {"comm.", KP_VIEW_TIME},
                                            {"copies", KP_VIEW_TIME}},
                                .column_count = has_gpu ? 6 : 4,
                                .sort = KP_VIEW_NONE};
    for (size_t i = 0; i < v->whole.step_count; i++) {
        static const enum kp_split_part parts[] = {KP_SPLIT_COMPUTE, KP_SPLIT_LOADING, KP_SPLIT_IDLE, KP_SPLIT_COMM,
                                                   KP_SPLIT_COPIES};
        char name[40];
        snprintf(name, sizeof name, "step %ld", v->whole.steps[i].number);
        const int32_t row = kp_view_add(tab, KP_VIEW_NONE, name);
        tab->rows[row].step = v->whole.steps[i].number;
        tab->rows[row].values[0] = (double)splits[i].step_ns;
        for (int p = 0; p < 5; p++) tab->rows[row].values[p + 1] = (double)splits[i].part_ns[parts[p]];
    }
    if (kp_chosen_is_of_steps(&v->whole)) {
        const int32_t row = kp_view_add(tab, KP_VIEW_NONE, "all, with start-up and end");
        tab->rows[row].step = KP_VIEW_ALL;
        tab->rows[row].values[0] = (double)kp_spans_length(&v->whole.spans, NULL);
    }
    snprintf(tab->empty, sizeof tab->empty, "No steps; kprof run --schedule wait=1,warmup=1,active=3 records some.");
    free(splits);
}

enum { LINE_BYTES = 1024 };

static void line_add(const struct kp_view *v, struct kp_view_tab *tab, int32_t row, const struct kp_top_row *of)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "%s%s", of->is_line_backward ? KP_TOP_BACKWARD_OF : "", text_of(v, of->line));
    lines_add(tab, row, "line", line);
}

static enum kp_view_kind kind_of(enum kp_unit unit)
{
    return unit == KP_UNIT_COUNT ? KP_VIEW_COUNT : unit == KP_UNIT_SHARE ? KP_VIEW_SHARE : KP_VIEW_TIME;
}

/* Puts the rows of `top` into a tab, by the columns of topcolumns.def that the view has. */
static void rows_put(const struct kp_view *v, struct kp_view_tab *tab, const struct kp_top *top)
{
    const struct kp_top_report report = {.top = top};
    const struct kp_column *columns[KP_VIEW_COLUMNS_MAX];
    for (const struct kp_column *c = kp_top_columns; c < kp_top_columns + KP_TOP_COLUMNS; c++) {
        if (!c->brief || !c->is_shown(&report) || tab->column_count == KP_VIEW_COLUMNS_MAX) continue;
        columns[tab->column_count] = c;
        tab->columns[tab->column_count++] = (struct kp_view_column){c->brief, kind_of(c->unit)};
    }
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *r = &top->rows[i];
        const char *const name = text_of(v, kp_modulename_frame_id(v->tree->trace, r->name));
        const int32_t row = kp_view_add(tab, KP_VIEW_NONE, *name ? name : "(no name)");
        for (int c = 0; c < tab->column_count; c++) tab->rows[row].values[c] = fmax(columns[c]->get(&report, r), 0);
        if (r->line && top->by == KP_TOP_BY_OP) line_add(v, tab, row, r);
    }
}

static void ops_make(struct kp_view *v)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_OPS];
    struct kp_top top;
    kp_top_build(&top, v->tree, &v->chosen, KP_TOP_BY_OP);
    if (v->chosen.is_phase) kp_top_add_gap(&top, !v->chosen.ended_by); /* as in its report */
    kp_top_order(&top, KP_TOP_SELF);
    *tab = (struct kp_view_tab){.title = "Ops", .what = "op or function", .sort = top.has_gpu ? 4 : 0};
    rows_put(v, tab, &top);
    snprintf(tab->empty, sizeof tab->empty, "No op in the chosen time.");
    kp_top_fini(&top);
}

/* Kernels, copies and fills that were asked for in the chosen time, as in kprof report --by kernel. */
static void kernels_make(struct kp_view *v)
{
    struct kp_view_tab *tab = &v->tabs[KP_VIEW_KERNELS];
    struct kp_top top;
    *tab = (struct kp_view_tab){.title = "Kernels", .what = "kernel, copy or fill"};
    kp_top_build(&top, v->tree, &v->chosen, KP_TOP_BY_KERNEL);
    kp_top_order(&top, KP_TOP_SELF);
    rows_put(v, tab, &top);
    snprintf(tab->empty, sizeof tab->empty, "No GPU work was recorded.");
    kp_top_fini(&top);
}

/* ---- all of them ---- */

static void head_make(struct kp_view *v)
{
    struct kp_summary s;
    struct kp_stepparts parts = {0};
    char wall[40], step[40], text[240];
    const char *script = kp_kineto_fact(v->tree->trace, "kprof.script");
    kp_summary_make(&s, v->tree, &v->whole);
    kp_stepparts_add(&parts, v->tree, &v->whole);
    kp_view_cell(wall, sizeof wall, KP_VIEW_TIME, (double)s.wall_ns);
    kp_view_cell(step, sizeof step, KP_VIEW_TIME, (double)s.step_median_ns);
    int n = snprintf(v->head, sizeof v->head, "%s%s%s  %s", script ? script : "", script ? "  " : "",
                     kp_path_base(v->label), wall);
    if (s.steps && n > 0 && (size_t)n < sizeof v->head)
        n +=
            snprintf(v->head + n, sizeof v->head - (size_t)n, ", %zu step%s of %s", s.steps, kp_units_s(s.steps), step);
    if (kp_stepparts_has(&parts) && n > 0 && (size_t)n < sizeof v->head)
        n += snprintf(v->head + n, sizeof v->head - (size_t)n, ": %s%s",
                      kp_stepparts_has_gpu(&parts) ? "on the host " : "",
                      kp_stepparts_text(text, sizeof text, &parts, false));
    kp_stepparts_fini(&parts);
    if (s.lost && n > 0 && (size_t)n < sizeof v->head)
        snprintf(v->head + n, sizeof v->head - (size_t)n, ", %s%" PRIu64 " events dropped",
                 s.is_lost_least ? "at least " : "", s.lost);
}

static void chosen_make(struct kp_view *v)
{
    char why[200];
    const long step = v->step >= 0 ? v->step : -1;
    const struct kp_choice choice = {.first_step = step, .last_step = step};
    kp_chosen_fini(&v->chosen);
    if (kp_chosen_make(&v->chosen, v->tree, &choice, why, sizeof why) == 0) return;
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    v->step = KP_VIEW_NONE;
    (void)kp_chosen_make(&v->chosen, v->tree, &all, why, sizeof why);
}

void kp_view_choose(struct kp_view *v, long step)
{
    v->step = step;
    chosen_make(v);
    if (v->step == KP_VIEW_NONE && kp_chosen_is_of_steps(&v->chosen))
        kp_spans_cut(&v->chosen.spans, &v->chosen.in_steps);
    for (int i = KP_VIEW_OPS; i < KP_VIEW_TABS; i++) kp_view_tab_fini(&v->tabs[i]);
    ops_make(v);
    kp_view_paths_make(v);
    kernels_make(v);
    kp_view_blocks_make(v);
    for (int i = 0; i < KP_VIEW_TABS; i++) kp_view_settle(&v->tabs[i]);
}

int kp_view_make(struct kp_view *v, struct kp_tree *tree, const struct kp_advice *advice, const char *label, char *why,
                 size_t why_bytes)
{
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    *v = (struct kp_view){.tree = tree, .label = label, .step = KP_VIEW_NONE};
    const int rc = kp_chosen_make(&v->whole, tree, &all, why, why_bytes);
    if (rc) return rc;
    head_make(v);
    findings_make(v, advice);
    steps_make(v);
    kp_view_choose(v, KP_VIEW_NONE);
    return 0;
}

void kp_view_fini(struct kp_view *v)
{
    for (int i = 0; i < KP_VIEW_TABS; i++) kp_view_tab_fini(&v->tabs[i]);
    kp_chosen_fini(&v->whole);
    kp_chosen_fini(&v->chosen);
}
