// SPDX-License-Identifier: Apache-2.0
/*
 * pagerows.c - the rows of the page's tables, of the whole trace and of each step, as `kprof report` counts them
 *
 * The page adds up the rows of the steps that its reader chooses. It counts nothing itself, so it cannot differ.
 */
#include <math.h>
#include <stdlib.h>

#include "export/answers/page/pageparts.h"
#include "export/read/frames/modulename.h"
#include "export/answers/top/toprows.h"

/* Figures of a row, by topcolumns.def. */
#define KP_FIGURE(type, field, joins, page) \
    static double field##_of(const struct kp_top_cost *cost) { return (double)cost->field; }
#include "export/answers/top/topcolumns.def"
#undef KP_FIGURE
static const struct figure {
    const char *key, *joins, *low, *high; /* key "": not of the page */
    double (*of)(const struct kp_top_cost *cost);
} figures[] = {
#define KP_FIGURE(type, field, joins, page) {page, #joins, "row." page "Low", "row." page "High", field##_of},
#include "export/answers/top/topcolumns.def"
#undef KP_FIGURE
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* Rows of steps, one behind the other: of ops, then of modules, then of kernels. */
struct step_rows {
    struct kp_page *page;
    struct kp_jsonout *head;
    uint32_t *name, *line, *low[FIGURES], *high[FIGURES];
    size_t rows, capacity;
};

static uint32_t name_of(struct kp_page *page, const struct kp_top *top, const struct kp_top_row *r)
{
    const bool is_module = top->by == KP_TOP_BY_MODULE;
    return kp_page_text(page, is_module ? kp_modulename_path_id(page->tree->trace, r->name)
                                        : kp_modulename_frame_id(page->tree->trace, r->name));
}

/* The number of the line's text + 1, 0: none, and in the lowest bit whether it is backward. */
static uint32_t line_of(struct kp_page *page, const struct kp_top *top, const struct kp_top_row *r)
{
    const bool is_backward = top->by == KP_TOP_BY_OP ? r->is_line_backward : r->is_backward;
    return (r->line ? kp_page_text(page, r->line) + 1 : 0) << 1 | is_backward;
}

/* Each row: the number of its name, line_of(), and the figures. */
static void rows_put(struct kp_page *page, enum kp_top_by by, const char *key, struct kp_jsonout *j)
{
    struct kp_top top;
    kp_top_build(&top, page->tree, &page->chosen, by);
    kp_top_order(&top, KP_TOP_SELF);
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < top.count; i++) {
        const struct kp_top_row *r = &top.rows[i];
        int64_t row[2 + FIGURES];
        size_t n = 0;
        row[n++] = name_of(page, &top, r);
        row[n++] = line_of(page, &top, r);
        for (int f = 0; f < FIGURES; f++)
            if (*figures[f].key) row[n++] = llrint(figures[f].of(&r->cost));
        kp_jsonout_wholes(j, NULL, row, n);
    }
    kp_jsonout_close(j, ']');
    kp_top_fini(&top);
}

/* ---- by step ---- */

static void column_grow(const struct step_rows *s, uint32_t **column)
{
    size_t had = s->capacity;
    *column = kp_kineto_grow(*column, &had, s->rows + 1, sizeof **column);
}

static void room_make(struct step_rows *s)
{
    if (s->rows < s->capacity) return;
    for (int f = 0; f < FIGURES; f++) column_grow(s, &s->low[f]), column_grow(s, &s->high[f]);
    column_grow(s, &s->line);
    s->name = kp_kineto_grow(s->name, &s->capacity, s->rows + 1, sizeof *s->name);
}

static uint64_t whole(double value) { return value > 0 ? (uint64_t)(value + 0.5) : 0; }

static void step_take(void *context, size_t step, const struct kp_top *top)
{
    struct step_rows *s = context;
    (void)step;
    kp_jsonout_whole(s->head, NULL, (int64_t)s->rows);
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *r = &top->rows[i];
        room_make(s);
        s->name[s->rows] = name_of(s->page, top, r);
        s->line[s->rows] = line_of(s->page, top, r);
        for (int f = 0; f < FIGURES; f++)
            kp_page_two_put(&s->low[f][s->rows], &s->high[f][s->rows], whole(figures[f].of(&r->cost)));
        s->rows++;
    }
}

/* The places at which the rows of each step begin, and the last ones end. */
static void steps_put(struct step_rows *s, enum kp_top_by by, const char *key)
{
    kp_jsonout_open(s->head, key, '[');
    kp_top_each_step(s->page->tree, &s->page->chosen, by, step_take, s);
    kp_jsonout_whole(s->head, NULL, (int64_t)s->rows);
    kp_jsonout_close(s->head, ']');
}

static void column_put(struct step_rows *s, const char *name, uint32_t *column)
{
    kp_page_blob_put(&s->page->blob, name, column, s->rows);
    free(column);
}

void kp_page_rows_put(struct kp_page *page, struct kp_jsonout *head)
{
    struct step_rows s = {.page = page, .head = head};
    kp_jsonout_open(head, "row_figures", '[');
    for (int f = 0; f < FIGURES; f++) {
        if (!*figures[f].key) continue;
        kp_jsonout_open(head, NULL, '[');
        kp_jsonout_text(head, NULL, figures[f].key);
        kp_jsonout_text(head, NULL, figures[f].joins);
        kp_jsonout_close(head, ']');
    }
    kp_jsonout_close(head, ']');
    rows_put(page, KP_TOP_BY_OP, "ops", head);
    rows_put(page, KP_TOP_BY_MODULE, "modules", head);
    rows_put(page, KP_TOP_BY_KERNEL, "kernels", head);
    steps_put(&s, KP_TOP_BY_OP, "step_ops");
    steps_put(&s, KP_TOP_BY_MODULE, "step_modules");
    steps_put(&s, KP_TOP_BY_KERNEL, "step_kernels");
    column_put(&s, "rowName", s.name);
    column_put(&s, "rowLine", s.line);
    for (int f = 0; f < FIGURES; f++) {
        if (*figures[f].key) column_put(&s, figures[f].low, s.low[f]), column_put(&s, figures[f].high, s.high[f]);
        else free(s.low[f]), free(s.high[f]);
    }
}
