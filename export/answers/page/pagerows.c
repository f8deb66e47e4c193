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

/* Rows of steps, one behind the other: of ops, then of modules, then of kernels. */
struct step_rows {
    struct kp_page *page;
    struct kp_jsonout *head;
    uint32_t *name, *line, *self_low, *self_high, *total_low, *total_high, *count, *gpu_low, *gpu_high;
    size_t rows, capacity;
};
enum { STEP_COLUMNS = 9 };

static uint32_t name_of(struct kp_page *page, const struct kp_top *top, const struct kp_top_row *r)
{
    const bool is_module = top->by == KP_TOP_BY_MODULE;
    return kp_page_text(page, is_module ? kp_modulename_path_id(page->tree->trace, r->name)
                                        : kp_modulename_frame_id(page->tree->trace, r->name));
}

static bool is_backward(const struct kp_top *top, const struct kp_top_row *r)
{
    return top->by == KP_TOP_BY_OP ? r->is_line_backward : r->is_backward;
}

/* Each row: name and line (numbers of texts, -1: none), self, total, count, the same of the GPU, bytes, backward. */
static void rows_put(struct kp_page *page, enum kp_top_by by, const char *key, struct kp_jsonout *j)
{
    struct kp_top top;
    kp_top_build(&top, page->tree, &page->chosen, by);
    kp_top_order(&top, KP_TOP_SELF);
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < top.count; i++) {
        const struct kp_top_row *r = &top.rows[i];
        const double total_ns = by == KP_TOP_BY_KERNEL ? r->cost.gpu_most_ns : r->cost.total_ns;
        const uint32_t name = name_of(page, &top, r);
        const int64_t line = r->line ? (int64_t)kp_page_text(page, r->line) : -1;
        kp_jsonout_wholes(j, NULL,
                          KP_JSONOUT_NUMBERS(name, line, llrint(r->cost.self_ns), llrint(total_ns), r->cost.count,
                                             llrint(r->cost.gpu_self_ns), llrint(r->cost.gpu_total_ns),
                                             r->cost.self_bytes, r->cost.gpu_self_bytes, is_backward(&top, r)));
    }
    kp_jsonout_close(j, ']');
    kp_top_fini(&top);
}

/* ---- by step ---- */

static void room_make(struct step_rows *s)
{
    uint32_t **const columns[STEP_COLUMNS] = {&s->name,       &s->line,  &s->self_low, &s->self_high, &s->total_low,
                                              &s->total_high, &s->count, &s->gpu_low,  &s->gpu_high};
    if (s->rows < s->capacity) return;
    size_t had = 0;
    for (int i = 0; i < STEP_COLUMNS; i++) {
        had = s->capacity;
        *columns[i] = kp_kineto_grow(*columns[i], &had, s->rows + 1, sizeof **columns[i]);
    }
    s->capacity = had;
}

static uint64_t whole(double ns) { return ns > 0 ? (uint64_t)(ns + 0.5) : 0; }

static void step_take(void *context, size_t step, const struct kp_top *top)
{
    struct step_rows *s = context;
    (void)step;
    kp_jsonout_whole(s->head, NULL, (int64_t)s->rows);
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *r = &top->rows[i];
        room_make(s);
        s->name[s->rows] = name_of(s->page, top, r);
        s->line[s->rows] = (r->line ? kp_page_text(s->page, r->line) + 1 : 0) << 1 | is_backward(top, r);
        kp_page_two_put(&s->self_low[s->rows], &s->self_high[s->rows], whole(r->cost.self_ns));
        kp_page_two_put(&s->total_low[s->rows], &s->total_high[s->rows],
                        whole(top->by == KP_TOP_BY_KERNEL ? r->cost.gpu_most_ns : r->cost.total_ns));
        kp_page_two_put(&s->gpu_low[s->rows], &s->gpu_high[s->rows], whole(r->cost.gpu_self_ns));
        s->count[s->rows++] = (uint32_t)r->cost.count;
    }
}

/* Where the rows of each step begin, and the last ones end. */
static void steps_put(struct step_rows *s, enum kp_top_by by, const char *key)
{
    kp_jsonout_open(s->head, key, '[');
    kp_top_each_step(s->page->tree, &s->page->chosen, by, step_take, s);
    kp_jsonout_whole(s->head, NULL, (int64_t)s->rows);
    kp_jsonout_close(s->head, ']');
}

void kp_page_rows_put(struct kp_page *page, struct kp_jsonout *head)
{
    static const char *const names[STEP_COLUMNS] = {"rowName",     "rowLine",     "rowSelfLow",
                                                    "rowSelfHigh", "rowTotalLow", "rowTotalHigh",
                                                    "rowCount",    "rowGpuLow",   "rowGpuHigh"};
    struct step_rows s = {.page = page, .head = head};
    rows_put(page, KP_TOP_BY_OP, "ops", head);
    rows_put(page, KP_TOP_BY_MODULE, "modules", head);
    rows_put(page, KP_TOP_BY_KERNEL, "kernels", head);
    steps_put(&s, KP_TOP_BY_OP, "step_ops");
    steps_put(&s, KP_TOP_BY_MODULE, "step_modules");
    steps_put(&s, KP_TOP_BY_KERNEL, "step_kernels");
    uint32_t *const columns[STEP_COLUMNS] = {s.name,       s.line,  s.self_low, s.self_high, s.total_low,
                                             s.total_high, s.count, s.gpu_low,  s.gpu_high};
    for (int i = 0; i < STEP_COLUMNS; i++) {
        kp_page_blob_put(&page->blob, names[i], columns[i], s.rows);
        free(columns[i]);
    }
}
